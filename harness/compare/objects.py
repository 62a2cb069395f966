"""The objects that were there when observation ended, without what servers and controllers generate.

Left out as a whole are pods and ReplicaSets (their workloads say what they are, and where they were is told for every phase), events,
and what belongs to the cluster, and what Knative makes of a Service, which is its own account of that. Left out of the others: whatever counts writes or says when and by whom, and the status of everything
but the rollout object, which is Kubernetes' own account of what is compared already.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import dig, kind_of, name_of
from harness.model.timeline import ObjectSeen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.compare.names import Names
    from harness.model.timeline import JSON, Observation, RolloutKind

_LEFT_OUT: Final = frozenset({"Pod", "ReplicaSet", "Event", "Node"})
_OF_THE_CLUSTER: Final = frozenset({("ConfigMap", "kube-root-ca.crt")})
_METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers")
"""What of an object's metadata is its maker's."""
_OUR_LABELS: Final = frozenset({"rollout-drill/run", "rollout-drill/drill"})
_NOTED: Final = frozenset(
    {
        *("serving.knative.dev/creator", "serving.knative.dev/lastModifier"),
        "deprecated.daemonset.template.generation",
    }
)
"""Annotations in which Knative's webhook notes who wrote an object, and Kubernetes how often a DaemonSet was written."""
_WHEN: Final = frozenset(
    {
        *("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime"),
        "observedGeneration",
    }
)
_ASSIGNED: Final = frozenset({"clusterIP", "clusterIPs", "healthCheckNodePort", "nodePort"})
"""Fields of a Service that the API server fills in."""
_DIGEST: Final = re.compile(r"\[sha256:[0-9a-f]{12}\]")
"""What stands for a secret value; its salt is another one in every run."""
ASSIGNED: Final = "(assigned)"
PRESENT: Final = "(present)"


def last_objects(observations: Iterable[Observation]) -> dict[tuple[str, str], JSON]:
    """Return the objects that exist after the observations, by kind and name."""
    found: dict[tuple[str, str], JSON] = {}
    for seen in observations:
        if not isinstance(seen, ObjectSeen):
            continue
        key = kind_of(seen.object), name_of(seen.object)
        if seen.change == "DELETED":
            found.pop(key, None)
        elif key[0] in _LEFT_OUT or key in _OF_THE_CLUSTER or _made_by_knative(seen.object):
            continue
        else:
            found[key] = seen.object
    return found


def _made_by_knative(obj: JSON) -> bool:
    owners = (
        str(dig(owner, "apiVersion", "")) for owner in dig(obj, "metadata.ownerReferences", [])
    )
    return any(owner.partition("/")[0].endswith("knative.dev") for owner in owners)


def normal_objects(
    objects: dict[tuple[str, str], JSON], kind: RolloutKind, names: Names
) -> dict[str, Any]:
    """Return the objects in normal form, by `Kind/name`."""
    found: dict[str, Any] = {}
    digests: dict[str, str] = {}
    for (of_kind, name), obj in sorted(objects.items()):
        title = f"{of_kind}/{names.text(name)}"
        number = sum(1 for known in found if known.partition("#")[0] == title) + 1
        # Names that differ in what was generated only would fall together.
        title = f"{title}#{number}" if number > 1 else title
        found[title] = secretless(names.translate(_object(obj, kind)), title, digests)
    return found


def _object(obj: JSON, kind: RolloutKind) -> JSON:
    rollout = obj.get("kind") == kind.kind
    kept = {k: v for k, v in obj.items() if k not in {"metadata", "status"}}
    metadata = {k: v for k, v in dig(obj, "metadata", {}).items() if k in _METADATA}
    labels = {k: v for k, v in metadata.get("labels", {}).items() if k not in _OUR_LABELS}
    metadata["labels"] = labels
    notes = metadata.get("annotations", {})
    metadata["annotations"] = {k: v for k, v in notes.items() if k not in _NOTED}
    metadata = {k: v for k, v in metadata.items() if v}
    kept["metadata"] = metadata
    if rollout and dig(obj, "status"):
        kept["status"] = _status(obj, kind)
    found: JSON = _timeless(kept)
    return _unassigned(found) if obj.get("kind") == "Service" else found


def _status(obj: JSON, kind: RolloutKind) -> JSON:
    """Return a rollout object's status. An empty field says the same as none."""
    status = {k: v for k, v in obj["status"].items() if v not in ({}, [], None, "")}
    fence = kind.fence_path.removeprefix("status.")
    if fence in status:
        # It counts writes; that it is kept is what matters.
        status[fence] = PRESENT
    return status


def _timeless(value: Any) -> Any:
    """Return a value without times, and with lists of conditions as mappings by type: their order says nothing."""
    if isinstance(value, dict):
        kept = {k: _timeless(v) for k, v in value.items() if k not in _WHEN}
        conditions = kept.get("conditions")
        if isinstance(conditions, list) and all(_typed(entry) for entry in conditions):
            kept["conditions"] = {entry["type"]: entry for entry in conditions}
        return kept
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _typed(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("type"), str)


def _unassigned(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: ASSIGNED if k in _ASSIGNED and v not in ("None", ["None"]) else _unassigned(v)
            for k, v in value.items()
        }
    return [_unassigned(item) for item in value] if isinstance(value, list) else value


def secretless(value: Any, path: str, digests: dict[str, str]) -> Any:
    """Return a value with each digest of a secret as the place at which it was seen first, so that equal ones still are equal."""
    if isinstance(value, dict):
        return {k: secretless(v, f"{path}.{k}", digests) for k, v in sorted(value.items())}
    if isinstance(value, list):
        return [secretless(v, f"{path}[{i}]", digests) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value
    return _DIGEST.sub(lambda m: f"(as {digests.setdefault(m.group(), path)})", value)
