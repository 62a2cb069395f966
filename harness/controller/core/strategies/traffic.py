"""Where traffic goes: a function of phase and status alone, so that a route can be put right in every pass (O18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core.routers.base import Split

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

RUNNING: Final = frozenset({"Progressing", "WaitingPromotion", "Frozen", "Promoting", "Finalising"})
"""Phases in which traffic may be divided."""
FULL: Final = 100


def weight_of(status: JSON) -> int:
    """Return the canary's share as the status has it."""
    return int(status.get("canaryWeight") or 0)


def split_of(status: JSON) -> Split:
    """Return the split that belongs to a status.

    Outside a run the primary serves alone; but after a promotion that failed, the canary is the only healthy copy (case C10).
    """
    phase = str(status.get("phase") or "")
    if phase in RUNNING:
        mirrored = cond.find(status, cond.MIRRORING) is not None
        return Split(weight_of(status), mirror=mirrored)
    if (phase == "Failed" and kept_canary(status)) or phase == "Waiting":
        return Split(weight_of(status))  # all or nothing: no run is under way
    return Split()


def kept_canary(status: JSON) -> bool:
    """Whether the last promotion failed, so that the canary was kept."""
    return (cond.find(status, cond.PROMOTED) or {}).get("reason") == "PromotionFailed"
