"""The conditions in a Canary's status.

Promoted: the compatible one, on which clients wait. Its `lastUpdateTime` is when the phase was entered; the progress
deadline counts from it (P11).
CanaryReady: exists during a run only. Since when the target is ready, or that it is not; reason Analysing once traffic was shifted.
Unsteady: exists only after the target lost readiness in a run; lastTransitionTime is from when the deadline counts since.
Accepted: exists only while it is False: why the Canary is left alone (G1, A6).
Repairing: exists only in a run that follows a promotion that failed, while the traffic cannot go to the primary.
Held: exists only while a gate of a run is closed; the reason says which.
Mirroring: exists only while the canary gets a copy of the traffic.
PostRollout: how the post-rollout hooks went; Unknown while they are still to be called. Only where there are any.
ChangePending: exists only while the Canary is suspended and its target has changed.
RoutesKept: exists from a freeze, or a restart under freezeOnFailure, until the promotion or a rollback: the traffic stays with the target.
RollingBack: exists only from the decision for a roll-back to its end, where nothing else remembers it: the cause.
Queued: True while a run has no slot for its analysis (limit on starts). Reason StartLimit: it waits for its turn; SlotGivenUp: it cannot go
on now. lastTransitionTime is when the change was seen, or the slot given up; the deadline of a run that has begun stands still from there.
Unmeasured: exists only while metrics give no verdict (429, time-out); lastTransitionTime is since when.
Restored: whether a failed revision was taken out of the target again; Unknown while it is still to be. Only with analysis.restore.
Warned: exists only while something about the Canary cannot work as it is; the message says what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from harness.controller.core.moments import seconds, stamp

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

PROMOTED: Final = "Promoted"
CANARY_READY: Final = "CanaryReady"
ACCEPTED: Final = "Accepted"
HELD: Final = "Held"
MIRRORING: Final = "Mirroring"
POST_ROLLOUT: Final = "PostRollout"
CHANGE_PENDING: Final = "ChangePending"
WARNED: Final = "Warned"
UNSTEADY: Final = "Unsteady"
REPAIRING: Final = "Repairing"
ROUTES_KEPT: Final = "RoutesKept"
ROLLING_BACK: Final = "RollingBack"
QUEUED: Final = "Queued"
UNMEASURED: Final = "Unmeasured"
RESTORED: Final = "Restored"
RESCALED: Final = "Rescaled"
ANALYSING: Final = "Analysing"

State = Literal["True", "False", "Unknown"]

_STATES: Final[dict[str, State]] = {
    "Initialized": "True",
    "Succeeded": "True",
    "Failed": "False",
    "Frozen": "False",
}


def state_of(phase: str) -> State:
    """Return the status of condition Promoted in a phase (spec canary-api 8)."""
    return _STATES.get(phase, "Unknown")


def find(status: JSON, kind: str) -> JSON | None:
    """Return the condition of that type, or None."""
    for entry in status.get("conditions") or []:
        if entry.get("type") == kind:
            return dict(entry)
    return None


def since(status: JSON, kind: str, field: str = "lastTransitionTime") -> float | None:
    """Return a time of a condition, in seconds since the epoch."""
    return seconds((find(status, kind) or {}).get(field))


def put(
    conditions: list[JSON],
    kind: str,
    state: State,
    reason: str,
    message: str,
    *,
    now: float,
    renew: bool = False,
) -> list[JSON]:
    """Return `conditions` with this one set; an entry of equal status and reason stays untouched unless `renew`.

    lastTransitionTime is kept when only the reason differs.
    """
    old = next((entry for entry in conditions if entry.get("type") == kind), None)
    same_state = old is not None and old.get("status") == state
    if old is not None and same_state and old.get("reason") == reason and not renew:
        return conditions
    entry: JSON = {
        "type": kind,
        "status": state,
        "reason": reason,
        "message": message,
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": old.get("lastTransitionTime") if old and same_state else stamp(now),
    }
    if old is None:
        return [*conditions, entry]
    return [entry if item is old else item for item in conditions]


def reworded(conditions: list[JSON], kind: str, message: str) -> list[JSON]:
    """Return `conditions` with another message in one that is there; its times stay, since nothing has changed but what is known."""
    return [
        {**entry, "message": message} if entry.get("type") == kind else entry
        for entry in conditions
    ]


def drop(conditions: list[JSON], kind: str) -> list[JSON]:
    """Return `conditions` without that type."""
    return [entry for entry in conditions if entry.get("type") != kind]
