"""What checks see of a pod: one flat dict per pod, made from the raw object alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import condition, dig, images_of, labels_of, name_of, owner_of

if TYPE_CHECKING:
    from harness.model.timeline import JSON

HASH_LABELS: Final = (
    "pod-template-hash",
    "rollouts-pod-template-hash",
    "controller-revision-hash",
)
"""Labels that tell a pod's revision, whichever controller made it."""
APP_LABELS: Final = ("app.kubernetes.io/name", "app")


def pod_hash(pod: JSON) -> str:
    """Return the revision a pod belongs to, or an empty text."""
    labels = labels_of(pod)
    return next((str(labels[key]) for key in HASH_LABELS if key in labels), "")


def guessed_app(pod: JSON) -> str:
    """Return the owning workload's name from the pod alone, for when its ReplicaSet was not seen (yet).

    A ReplicaSet of a Deployment is called after it with the pods' hash behind, so its name gives the Deployment away.
    """
    owner = owner_of(pod)
    if owner is not None:
        suffix = f"-{pod_hash(pod)}"
        return owner[1].removesuffix(suffix) if owner[0] == "ReplicaSet" else owner[1]
    labels = labels_of(pod)
    return next((str(labels[key]) for key in APP_LABELS if key in labels), name_of(pod))


def pod_view(pod: JSON, app: str, role: str) -> dict[str, Any]:
    """Return the fields of a pod that checks see, all but its age."""
    scheduled = condition(pod, "PodScheduled")
    node = str(dig(pod, "spec.nodeName", ""))
    refused = scheduled.get("status") == "False" and not node
    ready = condition(pod, "Ready").get("status") == "True"
    reason, message = _why(pod, scheduled if refused else {}, ready=ready)
    return {
        "name": name_of(pod),
        "uid": str(dig(pod, "metadata.uid", "")),
        "app": app,
        "role": role,
        "hash": pod_hash(pod),
        "node": node,
        "phase": str(dig(pod, "status.phase", "Pending")),
        "ready": ready,
        "scheduled": bool(node),
        "unschedulable": refused and scheduled.get("reason") == "Unschedulable",
        "gated": refused and scheduled.get("reason") == "SchedulingGated",
        "reason": reason,
        "message": message,
        "terminating": dig(pod, "metadata.deletionTimestamp") is not None,
        "images": images_of(dig(pod, "spec", {})),
    }


def _why(pod: JSON, refused: JSON, *, ready: bool) -> tuple[str, str]:
    """Return why a pod is not running or not ready: the scheduler's word first, then its containers', then the kubelet's."""
    if refused:
        return str(refused.get("reason", "")), str(refused.get("message", ""))
    for field in ("initContainerStatuses", "containerStatuses"):
        for status in dig(pod, f"status.{field}", []):
            waiting = dig(status, "state.waiting")
            if isinstance(waiting, dict):
                return str(waiting.get("reason", "")), str(waiting.get("message", ""))
    if dig(pod, "status.reason"):
        return str(dig(pod, "status.reason")), str(dig(pod, "status.message", ""))
    if ready:
        return "", ""
    entry = condition(pod, "Ready")
    return str(entry.get("reason", "")), str(entry.get("message", ""))


def pod_state(view: dict[str, Any]) -> str:
    """Return a pod's state in words, e.g. `ready`, `not ready`, `Pending: Unschedulable`, `ready, terminating`."""
    if view["gated"] or view["unschedulable"]:
        state = f"{view['phase']}: {view['reason']}"
    elif view["ready"]:
        state = "ready"
    elif view["phase"] in {"Failed", "Succeeded"}:
        state = str(view["phase"])
    else:
        state = "not ready"
    return f"{state}, terminating" if view["terminating"] else state
