"""Living with a Canary CRD that has no `status.lastTrackedRevision` (decision D10).

The API server prunes such a field without a word. The fence is then kept in an annotation of the Canary, together with the hash
it belongs to: two objects' worth of state cannot be written at once, and a fence beside another hash would prove the wrong thing.
Everything else works as always. A condition and an event on each Canary say what to apply; once the CRD has the field, the fence
moves into the status, and condition and annotation go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.decision import JSON, Write

if TYPE_CHECKING:
    from collections.abc import Mapping

FENCE_FIELD: Final = "lastTrackedRevision"
ANNOTATION: Final = "rollout-drill/last-tracked-revision"
"""Value: applied hash, a space, fence."""
CONDITION: Final = "Degraded"
REASON: Final = "FenceFieldMissing"
MESSAGE: Final = (
    "The installed CRD of Canaries has no field status.lastTrackedRevision. The change fence is kept in annotation"
    f" {ANNOTATION} meanwhile. Apply the CRD that comes with this controller (fixtures/crds/canaries.yaml); nothing needs a restart"
)


def kept_fence(canary: JSON) -> str:
    """Return the fence in the annotation; empty when there is none, or when it belongs to another hash than the applied one."""
    applied, _, fence = _value(canary).partition(" ")
    return (
        fence if applied and applied == (canary.get("status") or {}).get("lastAppliedSpec") else ""
    )


def annotated(canary: JSON) -> bool:
    """Whether the Canary carries the annotation."""
    return bool(_value(canary))


def keep(canary: JSON, applied: str, fence: str) -> tuple[Write, ...]:
    """Return the write that keeps a fence in the annotation; nothing when it is there."""
    value = f"{applied} {fence}"
    return () if _value(canary) == value else (_write(canary, {ANNOTATION: value}),)


def drop(canary: JSON) -> tuple[Write, ...]:
    """Return the write that removes the annotation."""
    return (_write(canary, {ANNOTATION: None}),)


def without_fence(status: JSON | None) -> JSON | None:
    """Return a status patch without the field that would be pruned; None when only the time of the change would be left."""
    if status is None or FENCE_FIELD not in status:
        return status
    left = {key: value for key, value in status.items() if key != FENCE_FIELD}
    return left if set(left) - {"lastTransitionTime"} else None


def _value(canary: JSON) -> str:
    return str((canary["metadata"].get("annotations") or {}).get(ANNOTATION) or "")


def _write(canary: JSON, annotations: Mapping[str, str | None]) -> Write:
    meta = canary["metadata"]
    body: JSON = {"metadata": {"annotations": dict(annotations)}}
    return Write("patch", "canaries", meta["name"], body, meta["resourceVersion"])
