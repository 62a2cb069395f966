"""On how many nodes a DaemonSet under analysis was ready, so that a node that joins is not taken for a revision that fails.

A new node asks for one pod more, and until that is available a DaemonSet is not rolled out. None of the pods that were ready has been lost by
it: the new one has the deadline for itself, like those of a Deployment that is scaled up, and the run goes on when it is there. So
the number is remembered where readiness is: in the message of condition CanaryReady. A node that leaves only makes it smaller.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core.settings import FULL
from harness.controller.core.snapshots import observed

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

_TOLD: Final = re.compile(r"ready on (\d+) nodes?\b|\bof (\d+) pods\b")
"""In the messages of `words`, and of a DaemonSet that is not rolled out."""


def words(target: JSON) -> str:
    """Return ` on 3 nodes` to follow `is ready`; empty for what is not spread over nodes."""
    if target["kind"] != "DaemonSet":
        return ""
    number = _count(target, "desiredNumberScheduled")
    return f" on {number} {'node' if number == 1 else 'nodes'}"


def told(status: JSON) -> int | None:
    """Return on how many nodes the target was ready, or is asked to be, when that was noted last; None when it never was."""
    entry = cond.find(status, cond.CANARY_READY) or {}
    found = _TOLD.search(str(entry.get("message") or ""))
    return int(found[1] or found[2]) if found else None


def moved(target: JSON, status: JSON) -> bool:
    """Whether the number of eligible nodes is another one than was noted."""
    if target["kind"] != "DaemonSet" or not observed(target):
        return False
    return told(status) != _count(target, "desiredNumberScheduled")


def joined(target: JSON, status: JSON, percent: int) -> bool:
    """Whether nodes have joined, and the pods of those that were there before are as available as they have to be (`percent`)."""
    before = told(status)
    if before is None or target["kind"] != "DaemonSet" or not observed(target):
        return False
    more = _count(target, "desiredNumberScheduled") > before
    return more and _count(target, "numberAvailable") >= before * percent // FULL


def still_joining(target: JSON, status: JSON) -> bool:
    """Whether still more nodes have joined while the pods of others are waited for."""
    entry = cond.find(status, cond.CANARY_READY) or {}
    before = told(status)
    waits = entry.get("status") == "False" and entry.get("reason") == cond.RESCALED
    return (
        waits
        and before is not None
        and moved(target, status)
        and _count(target, "desiredNumberScheduled") > before
    )


def _count(target: JSON, field: str) -> int:
    return int((target.get("status") or {}).get(field) or 0)
