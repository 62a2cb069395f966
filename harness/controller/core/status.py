"""The Canary's status: merge patches that hold what changes, and nothing when nothing does (P15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import conditions as cond
from harness.controller.core.moments import stamp

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

ANALYSED: Final = frozenset({"Progressing", "WaitingPromotion"})
_ANEW: Final = frozenset({"Progressing", "Promoting", "Succeeded"})
"""Phases in which it does not matter any more what became of a target that failed before."""
_ADOPTED: Final = "Adopted"
"""Reason of condition Restored that whoever lets the adopting target go on takes away."""
KEPT: Final = ANALYSED | {"Frozen"}
"""Phases in which a revision is where its analysis brought it."""


def difference(status: JSON, fields: JSON, now: float, *, touch: bool = True) -> JSON | None:
    """Return the merge patch that sets `fields`, or None when they are all set.

    `touch` moves lastTransitionTime along, which tracking writes must not (spec change-detection B5).
    """
    patch = {
        key: _merge(status.get(key), value)
        for key, value in fields.items()
        if status.get(key) != value
    }
    if not patch:
        return None
    if touch:
        patch["lastTransitionTime"] = stamp(now)
    return patch


def _merge(held: Any, wanted: Any) -> Any:
    """Return what turns a map into another one: a merge patch keeps keys that it does not name."""
    if not isinstance(held, dict) or not isinstance(wanted, dict):
        return wanted
    return {key: None for key in held if key not in wanted} | wanted


def entered(
    status: JSON,
    phase: str,
    now: float,
    message: str,
    fields: JSON | None = None,
    *,
    reason: str = "",
    renew: bool = False,
) -> JSON:
    """Return the fields of a status in a phase: the phase, its Promoted condition, and `fields`.

    The counters are always there, as the API promises; what is said of a run ends with the run, and a closed gate with the phase.
    `renew` restarts the phase's clock when the phase stays the same.
    """
    conditions: list[JSON] = list(status.get("conditions") or [])
    if phase not in KEPT or renew:
        conditions = cond.drop(conditions, cond.CANARY_READY)
        conditions = cond.drop(conditions, cond.UNSTEADY)
        conditions = cond.drop(conditions, cond.MIRRORING)
    if phase not in KEPT and phase != "Promoting":
        conditions = cond.drop(conditions, cond.REPAIRING)
    if phase not in KEPT:
        conditions = cond.drop(conditions, cond.ROUTES_KEPT)
    conditions = cond.drop(conditions, cond.HELD)
    conditions = cond.drop(conditions, cond.ROLLING_BACK)
    conditions = cond.drop(conditions, cond.QUEUED)
    conditions = cond.drop(conditions, cond.UNMEASURED)
    if phase in ("Progressing", "Promoting"):
        conditions = cond.drop(conditions, cond.POST_ROLLOUT)
    if phase in _ANEW and (cond.find(status, cond.RESTORED) or {}).get("reason") != _ADOPTED:
        conditions = cond.drop(conditions, cond.RESTORED)
    conditions = cond.put(
        conditions,
        cond.PROMOTED,
        cond.state_of(phase),
        reason or phase,
        message,
        now=now,
        renew=renew,
    )
    counters = {key: status.get(key) or 0 for key in ("canaryWeight", "failedChecks", "iterations")}
    return {"phase": phase, "conditions": conditions, **counters, **(fields or {})}
