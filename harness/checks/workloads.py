"""What checks see of a workload: a Deployment, DaemonSet or StatefulSet, or a ReplicaSet of nobody's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import condition, dig, images_of, name_of, owner_of, whole
from harness.checks.pods import pod_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model.timeline import JSON

KINDS: Final = ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet")
"""Workload kinds, in the order in which a name is looked up."""
REVISION: Final = "deployment.kubernetes.io/revision"

ABSENT: Final[dict[str, Any]] = {
    "exists": False,
    "uid": "",
    "desired": 0,
    "replicas": 0,
    "updated": 0,
    "ready": 0,
    "available": 0,
    "hash": "",
    "images": [],
    "node_selector": {},
    "uids": [],
    "generation": 0,
    "observed": 0,
}
"""A workload of which it is known that it does not exist."""

_COUNTED: Final = {
    "updated": "status.updatedReplicas",
    "available": "status.availableReplicas",
}
_SCHEDULED: Final = {
    "updated": "status.updatedNumberScheduled",
    "available": "status.numberAvailable",
}
_LISTED: Final = ("kind", "name", "role", "desired", "replicas", "ready", "available", "updated")
_SINGLE: Final = (
    *("name", "uid", "desired", "replicas", "updated", "ready", "available", "hash", "images"),
    *("node_selector", "uids"),
)


def workload_view(
    workload: JSON,
    role: str,
    pods: Iterable[Mapping[str, Any]],
    sets: Iterable[JSON],
    refused: str,
) -> dict[str, Any]:
    """Return everything that is known of a workload.

    Args:
        workload: The raw object.
        role: `primary`, `target` or `other`.
        pods: Views of the pods it owns. They are counted here: they come from one watch, a workload's own counters lag.
        sets: The ReplicaSets it owns.
        refused: Message of a FailedCreate event, for kinds that have no condition for it.
    """
    owned = list(pods)
    kind = str(workload.get("kind", ""))
    view: dict[str, Any] = {
        "kind": kind,
        "name": name_of(workload),
        "uid": str(dig(workload, "metadata.uid", "")),
        "role": role,
        "replicas": sum(1 for pod in owned if not pod["terminating"]),
        "ready": sum(1 for pod in owned if pod["ready"] and not pod["terminating"]),
        "images": images_of(dig(workload, "spec.template.spec", {})),
        "node_selector": dict(dig(workload, "spec.template.spec.nodeSelector", {}) or {}),
        "uids": sorted(pod["uid"] for pod in owned if not pod["terminating"]),
        "generation": whole(dig(workload, "metadata.generation")),
        "observed": whole(dig(workload, "status.observedGeneration")),
    }
    desired = dig(
        workload, "status.desiredNumberScheduled" if kind == "DaemonSet" else "spec.replicas"
    )
    if desired is not None:
        view["desired"] = whole(desired)
    paths = _SCHEDULED if kind == "DaemonSet" else _COUNTED
    for key, path in paths.items():
        view[key] = whole(dig(workload, path))
    sets = list(sets)
    current = current_hash(workload, sets, owned)
    if current:
        view["hash"] = current
    message = _create_failure([workload, *sets])
    if not message and refused and len(owned) < view.get("desired", 0):
        message = refused
    view["createFailed"] = bool(message)
    view["message"] = message
    return view


def listed(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload as an entry of `workloads`."""
    return {key: view[key] for key in (*_LISTED, "createFailed", "message") if key in view}


def single(view: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """Return a workload as `primary` or `target`; None is one that does not exist."""
    if view is None:
        return {"name": name, **ABSENT}
    kept = (*_SINGLE, "generation", "observed")
    return {"exists": True, **{key: view[key] for key in kept if key in view}}


def current_hash(workload: JSON, sets: list[JSON], pods: list[Mapping[str, Any]]) -> str:
    """Return the hash of the revision a workload is at, or an empty text while it is not known.

    A Deployment carries the number of its revision, and so do its ReplicaSets. Other kinds have their revisions in objects
    that are not watched, so their newest pod speaks for them (`pods` is in the order in which they were first seen).
    """
    if workload.get("kind") == "ReplicaSet":
        return pod_hash(workload)
    number = dig(workload, "metadata.annotations", {}).get(REVISION)
    if sets:
        newest = max(sets, key=_revision)
        same = [s for s in sets if number and str(_revision(s)) == str(number)]
        return pod_hash((same or [newest])[0])
    if workload.get("kind") != "Deployment" and pods:
        return str(pods[-1]["hash"])
    return ""


def _revision(replica_set: JSON) -> int:
    text = str(dig(replica_set, "metadata.annotations", {}).get(REVISION, "0"))
    return int(text) if text.isdigit() else 0


def _create_failure(objects: Iterable[JSON]) -> str:
    for obj in objects:
        entry = condition(obj, "ReplicaFailure")
        if entry.get("status") == "True":
            return str(entry.get("message") or entry.get("reason") or "pods cannot be created")
    return ""


def is_top(obj: JSON, rollout_kind: str = "") -> bool:
    """Whether an object is a workload of its own; a Deployment's ReplicaSet is not, one that a rollout object keeps itself is."""
    if obj.get("kind") != "ReplicaSet":
        return True
    owner = owner_of(obj)
    return owner is None or owner[0] == rollout_kind
