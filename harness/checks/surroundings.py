"""What checks see of Services and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import condition, dig, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.timeline import JSON

_KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})


def service_view(
    service: JSON, role: str, templates: Sequence[tuple[str, Mapping[str, str]]]
) -> dict[str, Any]:
    """Return a Service as checks see it.

    Args:
        service: The raw object.
        role: `apex`, `primary`, `target` or `other`.
        templates: `primary` and `target`, each with the labels of its pod template, as far as the workloads exist.
    """
    raw = dig(service, "spec.selector", {})
    selector = {str(key): str(value) for key, value in raw.items()}
    selected = {
        whose
        for whose, have in templates
        if selector and all(have.get(key) == value for key, value in selector.items())
    }
    return {
        "name": name_of(service),
        "role": role,
        "selector": selector,
        "selects": "both" if len(selected) > 1 else "".join(selected) or "none",
    }


def node_view(node: JSON) -> dict[str, Any]:
    """Return a node as checks see it; one with a taint that keeps pods out is not schedulable."""
    taints = [taint.get("effect") for taint in dig(node, "spec.taints", [])]
    cordoned = bool(dig(node, "spec.unschedulable", default=False))
    return {
        "name": name_of(node),
        "ready": condition(node, "Ready").get("status") == "True",
        "schedulable": not cordoned and not _KEEPS_OUT.intersection(taints),
    }
