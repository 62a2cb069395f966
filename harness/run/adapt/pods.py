"""Where the pods of an object are described: the one place that knows which kinds have a pod template, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.timeline import JSON

_TEMPLATE: Final = ("spec", "template", "spec")
_POD_SPECS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
}
"""Group and kind -> path of the pod spec. Kinds of other projects that have such a name may have another shape."""
KNATIVE: Final = ("serving.knative.dev", "Service")
"""Has a pod template too, in which Knative refuses what a flag of its own does not allow; so it is left as it is."""
_NAMED: Final = 3


def kind_of(obj: JSON) -> tuple[str, str]:
    """Return group and kind of an object."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0], str(obj.get("kind", ""))


def pod_spec(obj: JSON) -> dict[str, Any] | None:
    """Return the pod spec within an object, to be read or changed in place; None when it has none, or has it in a form of its own."""
    path = _POD_SPECS.get(kind_of(obj))
    found: Any = obj
    for key in path or ():
        found = found.get(key) if isinstance(found, dict) else None
    return found if path and isinstance(found, dict) else None


def containers(spec: JSON) -> list[dict[str, Any]]:
    """Return all containers of a pod spec, the initial ones first."""
    rows = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return [row for row in rows if isinstance(row, dict)]


def label(obj: JSON) -> str:
    """Return kind and name."""
    return f"{obj.get('kind', '?')} {(obj.get('metadata') or {}).get('name', '?')}"


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Return names in a sentence; of many only the first ones, with how many more there are."""
    shown = list(dict.fromkeys(names))
    if len(shown) > most + 1:
        shown = [*shown[:most], f"{len(shown) - most} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
