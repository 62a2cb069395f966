"""The fence after a write of our own: taken from the answer, not from a second read (spec change-detection B6).

Scaling moves the generation, so a fence from before it would be stale at once. A second read could bring somebody else's change
along and fence it in; the answer of a write is the object as this very write left it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core.snapshots import REVISION, Fence, snapshot

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Decision, Write


def refreshed(decision: Decision, write: Write, answer: JSON) -> Decision:
    """Return a Decision whose status has the fence of `answer`, the object that `write` returned.

    Unchanged when the write was not to the target, or when the answer holds another template than the one that was compared, unless the
    decision says what is to be remembered then.

    The generation is too new for the revision annotation to count by itself. But the template has not changed since it did count,
    so the annotation still belongs to it.
    """
    refresh = decision.refresh
    if refresh is None or (write.resource, write.name) != (refresh.resource, refresh.name):
        return decision
    after = snapshot(answer)
    if after.hash != refresh.hash and refresh.otherwise is not None:
        pair = {"lastAppliedSpec": after.hash, "lastTrackedRevision": str(after.fence)}
        return replace(decision, status=refresh.otherwise | pair)
    if decision.status is None or after.hash != refresh.hash:
        return decision
    fence = _with_revision(after.fence, refresh.revision, answer)
    return replace(decision, status=decision.status | {"lastTrackedRevision": str(fence)})


def _with_revision(fence: Fence, revision: str, answer: JSON) -> Fence:
    noted = (answer["metadata"].get("annotations") or {}).get(REVISION)
    known = bool(revision) and noted == revision and not answer["spec"].get("paused")
    return replace(fence, revision=revision) if known else fence
