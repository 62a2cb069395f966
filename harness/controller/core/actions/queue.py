"""The line before an analysis: joining it, waiting in it, giving a slot up and going on with one (deviation D4).

Condition Queued is all that is remembered: since when, and whether its reason was told. The present position is not in the status, which
would have to be written for everybody whenever somebody starts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import line, upkeep
from harness.controller.core.actions.base import conditions, decision, status
from harness.controller.core.decision import JSON, Decision, Note
from harness.controller.core.moments import seconds, stamp

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene

LIMIT: Final = "StartLimit"
"""Reason of condition Queued: it waits for its turn."""
GIVEN_UP: Final = "SlotGivenUp"
"""The same: it cannot go on now; once it can, it asks for a turn."""
_CLOCKS: Final = ((cond.PROMOTED, "lastUpdateTime"), (cond.UNSTEADY, "lastTransitionTime"))
"""Where the deadline of a run counts from (`Scene.clock`)."""


# -- guards ------------------------------------------------------------------------------------------------------------------


def turn_missing(scene: Scene) -> bool:
    """Whether there is a limit, and no turn has been granted yet: `queue` is what to do then."""
    turn = scene.world.turn
    return scene.world.policy.limited and not (turn is not None and turn.granted)


def joined(scene: Scene) -> bool:
    """Whether it is in the line, or was when somebody still limited the starts."""
    return cond.find(scene.status, cond.QUEUED) is not None


def to_start(scene: Scene) -> bool:
    """Whether there is a run to start."""
    return scene.new_revision or scene.phase == "Waiting"


def pointless(scene: Scene) -> bool:
    """Whether it waits for nothing any more: the change was taken back, or no pod would be judged."""
    return joined(scene) and (not scene.new_revision or scene.nothing_to_run)


def regains(scene: Scene) -> bool:
    """Whether a gate has opened, the analysis goes on behind it, and the slot was given up meanwhile.

    What goes on with the promotion needs none: nothing is analysed any more.
    """
    promotes = scene.begun and scene.at_end and not scene.mirroring
    return scene.phase == line.PHASE and line.at_gate(scene.status) and not promotes


def stalled(scene: Scene) -> bool:
    """Whether its slot is of no use to it: it goes on when a person has done something, and there is no deadline for that."""
    if not (scene.world.policy.limited and line.holds(scene.canary)):
        return False
    if scene.settings.suspended or scene.refused is not None or scene.world.target is None:
        return True
    if scene.foreign_primary or upkeep.hindrance(scene):
        return True
    return not (scene.primary_exists or upkeep.can_create_primary(scene))


# -- actions -----------------------------------------------------------------------------------------------------------------


def queue(scene: Scene) -> Decision:
    """Ask for a turn; without one, say so once and wait until the line calls. Nothing else is written while the position moves.

    The revision that waits is not recorded (D1): another one takes its place in the line over.
    """
    turn = scene.world.turn
    if turn is None:
        return Decision(asks_turn=True)
    if (cond.find(scene.status, cond.QUEUED) or {}).get("reason") == LIMIT:
        return Decision()
    what = "has a new revision"
    if scene.phase == line.PHASE:
        what = "could go on with its analysis"
    text = (
        f"{scene.target_name} {what}; {turn.limit}: it waits for its turn, as number {turn.position} of {turn.waiting}"
        " when it joined the line"
    )
    held = conditions(scene)
    if (cond.find(scene.status, cond.HELD) or {}).get("reason") != cond.UNSTEADY:
        held = cond.drop(held, cond.HELD)  # the gate has agreed
    seen = line.entrant(scene.canary, scene.now).seen
    held = cond.put(held, cond.QUEUED, "True", LIMIT, text, now=seen)
    # The text holds what a second attempt, after a crash, may see otherwise; the occasion is the same.
    note = scene.note("Normal", f"Waiting for its turn: {text}")
    key = f"{note.key.removesuffix(note.message)}queued|{scene.snapshot.hash}"
    return decision(scene, (), replace(note, key=key), {"conditions": held}, touch=False)


def leave(scene: Scene) -> Decision:
    """There is nothing to start any more."""
    left = cond.drop(conditions(scene), cond.QUEUED)
    return status(scene, {"conditions": left}, touch=False)


def give_up(scene: Scene) -> Decision:
    """Leave the slot to others. It is theirs once the status says so: whatever is edited meanwhile, nobody has it twice."""
    return status(scene, {"conditions": _given_up(scene, conditions(scene))}, touch=False)


def regained(scene: Scene) -> Decision:
    """Go on with the analysis. What is asked is asked anew; the deadline counts on from where it stood when the wait began."""
    since = cond.since(scene.status, cond.QUEUED)
    waited = max(scene.now - since, 0.0) if since is not None else 0.0
    left = [_later(entry, waited, scene.now) for entry in cond.drop(conditions(scene), cond.QUEUED)]
    found = status(scene, {"conditions": left}, touch=False)
    return replace(found, notes=turn_came(scene))


# -- for those who begin or change a run --------------------------------------------------------------------------------------


def turn_came(scene: Scene) -> tuple[Note, ...]:
    """Return the event for the end of a wait; none when there was none, or none that anybody was told of."""
    entry = cond.find(scene.status, cond.QUEUED) or {}
    if entry.get("reason") != LIMIT:
        return ()
    since = entry.get("lastTransitionTime")
    return (
        scene.note("Normal", f"The turn of {scene.names.target} has come; it waited since {since}"),
    )


def without_slot(scene: Scene, held: list[JSON]) -> list[JSON]:
    """Return the conditions of a run that goes on or starts over, marked when it has no slot: it gets one before anything is asked."""
    if not scene.world.policy.limited or line.holds(scene.canary):
        return held
    return _given_up(scene, held)


def _given_up(scene: Scene, held: list[JSON]) -> list[JSON]:
    old = cond.find(scene.status, cond.QUEUED)
    if old is not None:
        return [*cond.drop(held, cond.QUEUED), old]
    text = f"{scene.names.target} has no slot for its analysis: it gets one before the analysis goes on"
    return cond.put(held, cond.QUEUED, "True", GIVEN_UP, text, now=scene.now)


def _later(entry: JSON, waited: float, now: float) -> JSON:
    """Return a condition from which a deadline counts with its time moved by what was waited, never into the future."""
    fields = dict(_CLOCKS)
    field = fields.get(entry["type"])
    if entry["type"] == cond.CANARY_READY and entry.get("reason") == cond.RESCALED:
        field = "lastTransitionTime"
    time = seconds(entry.get(field)) if field else None
    if field is None or time is None:
        return entry
    return {**entry, field: stamp(min(time + waited, now))}
