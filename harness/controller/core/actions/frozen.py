"""A failed analysis that is frozen, and the ways out of that (spec freeze-and-adopt 3; phase Frozen).

The status comes first and the people are told after it: a crash in between leads to the same freeze, never to a roll-back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import frozen, tracking, upkeep
from harness.controller.core.actions import failure, promotion, queue
from harness.controller.core.actions.base import (
    alerting,
    asking,
    conditions,
    decision,
    noted,
    post_rollout,
    status,
)
from harness.controller.core.actions.run import GATES, held_text, run_begins
from harness.controller.core.change import tracking_fields
from harness.controller.core.decision import Decision
from harness.controller.core.status import entered
from harness.controller.core.tracking import refresh_for

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene

LATER: Final = "until another revision comes, or somebody promotes it or takes it back"


# -- the freeze --------------------------------------------------------------------------------------------------------------


def failed_checks(scene: Scene) -> Decision:
    """Too many failed checks."""
    return _freeze(scene, failure.failed_checks_cause(scene))


def not_ready(scene: Scene) -> Decision:
    """The target missed its deadline; its pods may have migrated data already, so this is frozen too (spec freeze-and-adopt 3.1)."""
    return _freeze(scene, failure.not_ready_cause(scene))


def _freeze(scene: Scene, cause: str) -> Decision:
    text = f"{scene.target_name} is frozen: {cause}. Pods and routes stay as they are {LATER}"
    entry = entered(scene.status, frozen.PHASE, scene.now, text)
    kept = frozen.keep(list(entry["conditions"]), frozen.UNTOLD, _where(scene), scene.now)
    return status(scene, post_rollout(scene, entry | {"conditions": kept}))


def _where(scene: Scene) -> str:
    target = scene.names.target
    if not scene.router.splits:
        return f"No live traffic is led to {target}; only its pods stay"
    return f"The traffic of {target} stays with it: {scene.weight} %"


def tell(scene: Scene) -> Decision:
    """Tell people of the freeze; that it was told is remembered, since events do not last."""
    promoted = cond.find(scene.status, cond.PROMOTED) or {}
    note = scene.note("Warning", str(promoted.get("message") or f"{scene.target_name} is frozen"))
    # The same fact, whatever is edited in the Canary between the event and the status.
    note = replace(note, key=f"{frozen.PHASE}|{promoted.get('lastUpdateTime')}")
    told = frozen.keep(conditions(scene), frozen.KEPT, _where(scene), scene.now)
    return decision(
        scene, (), alerting(note, "error", facts=True), {"conditions": told}, touch=False
    )


# -- while it is frozen ------------------------------------------------------------------------------------------------------


def unproven(scene: Scene) -> Decision:
    """The status cannot be compared with the target: it stays frozen, and the present pair is taken for the frozen one."""
    fields = tracking_fields(scene.tracking, scene.snapshot) | scene.config_fields
    text = (
        f"{scene.target_name} stays frozen: whether it still holds the frozen revision cannot be told, since another controller"
        " or version wrote the status. If it was changed meanwhile, change it once more"
    )
    return decision(scene, (), scene.note("Warning", text), fields, touch=False)


def readiness(scene: Scene) -> Decision:
    """Frozen pods have become unready, or ready again: said, and no more (spec freeze-and-adopt 3.2)."""
    ready = scene.target_ready.ready
    text = (
        f"{scene.target_name} is ready" if ready else f"Frozen pods: {scene.target_ready.message}"
    )
    state: cond.State = "True" if ready else "False"
    reason = "Ready" if ready else "NotReady"
    held = cond.put(conditions(scene), cond.CANARY_READY, state, reason, text, now=scene.now)
    note = scene.note("Normal" if ready else "Warning", text)
    # Each turn once: what was said before it, and since when, is the same for whoever comes after a crash.
    froze = cond.since(scene.status, cond.PROMOTED, "lastUpdateTime")
    before = cond.since(scene.status, cond.CANARY_READY)
    note = replace(note, key=f"{frozen.PHASE}|{froze}|{state}|{before}")
    found = note if ready else alerting(note, "warn")
    return decision(scene, (), found, {"conditions": held}, touch=False)


def ask(scene: Scene) -> Decision:
    """Ask the next rollback hook, or the next gate before another revision."""
    return asking(scene.frozen_checkup)


def rest(scene: Scene) -> Decision:
    """Wait for another revision, for an order, or for the next round of rollback hooks."""
    return Decision(requeue_after=scene.frozen_checkup.again_in)


def hold(scene: Scene) -> Decision:
    """Another revision waits for confirm-rollout. Its pods roll all the same, since the frozen ones run: only the analysis waits."""
    gate = scene.frozen_checkup
    if cond.find(scene.status, cond.HELD) is not None:
        return Decision(requeue_after=gate.again_in)
    said = held_text(scene, gate.gate, gate.name, gate.message)
    reason, _ = GATES[gate.gate]
    # It may have closed again while the analysis waited for its turn: that place is lost.
    held = cond.drop(conditions(scene), cond.QUEUED)
    held = cond.put(held, cond.HELD, "True", reason, said, now=scene.now)
    note = scene.note("Warning", said)
    return decision(scene, (), note if gate.muted else alerting(note, "warn"), {"conditions": held})


def withdrawn(scene: Scene) -> Decision:
    """The revision that waited was taken back: the target holds the frozen one again."""
    left = cond.drop(conditions(scene), cond.HELD)
    note = scene.note("Normal", f"New revision of {scene.names.target} was withdrawn")
    return decision(scene, (), note, {"conditions": left}, touch=False)


def track(scene: Scene) -> Decision:
    """Remember what the comparison found."""
    return tracking.track(scene)


# -- the ways out ------------------------------------------------------------------------------------------------------------


def replaced(scene: Scene) -> Decision:
    """Another revision takes the frozen one's place, under its traffic, and is analysed from the beginning."""
    names = scene.names
    text = f"New revision of {names.target} replaces the frozen one"
    if scene.router.splits and scene.weight:
        text += f"; those who met the frozen one meet it at once ({scene.weight} %)"
    note = alerting(scene.note("Normal", text), "info", facts=True)
    found = decision(scene, upkeep.to_run(scene), note, run_begins(scene))
    found = replace(found, notes=(*queue.turn_came(scene), *found.notes))
    return replace(found, refresh=refresh_for(scene, scene.snapshot.hash))


def promoted(scene: Scene) -> Decision:
    """Somebody decided: the frozen revision is promoted, and its traffic stays with it until the primary has it, too."""
    return promotion.promote(scene)


def hindered(scene: Scene) -> Decision:
    """Somebody decided to promote pods that are not ready: that would take the primary's down as well."""
    text = f"{scene.target_name} is not promoted before it is ready: {scene.target_ready.message}"
    return noted(scene, "Warning", text)


def taken_back(scene: Scene) -> Decision:
    """The template that was promoted was put back."""
    return failure.abort(scene)


def ordered_back(scene: Scene) -> Decision:
    """An annotation asks for the roll-back."""
    return _back(scene, "ManualRollback", f"annotation {frozen.ORDER} asks for it")


def flag_off(scene: Scene) -> Decision:
    """The flag was taken away: the operator asks for what happens without it."""
    return _back(scene, "Failed", "spec.analysis.freezeOnFailure is no longer set")


def hook_asked(scene: Scene) -> Decision:
    """A rollback hook asks for the end. That is remembered first: the hook may have another opinion when it is asked again."""
    held = cond.put(
        conditions(scene),
        cond.ROUTES_KEPT,
        "False",
        frozen.GIVEN_UP,
        f"{scene.frozen_checkup.name} asked for the roll-back",
        now=scene.now,
        renew=True,
    )
    return status(scene, {"conditions": held}, touch=False)


def hook_back(scene: Scene) -> Decision:
    """Carry out what a rollback hook asked for."""
    said = str((cond.find(scene.status, cond.ROUTES_KEPT) or {}).get("message") or "")
    return _back(scene, frozen.GIVEN_UP, said)


def order_spent(scene: Scene) -> Decision:
    """Remove an order that was carried out, or that was none for what is frozen."""
    return Decision(writes=frozen.forget_order(scene.canary))


def _back(scene: Scene, reason: str, cause: str) -> Decision:
    """Roll back. The target may hold another revision than the frozen one by now: then that is what was taken back."""
    fields: JSON = tracking_fields(scene.tracking, scene.snapshot) | scene.config_fields
    fields.pop("lastPromotedSpec", None)
    return failure.roll_back(scene, reason, cause, fields, severity="warn")
