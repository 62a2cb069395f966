"""What can be due in any phase."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import conditions as cond
from harness.controller.core import lifecycle, upkeep
from harness.controller.core.actions.base import asking, conditions, decision, noted, status
from harness.controller.core.decision import Decision
from harness.controller.core.status import difference
from harness.controller.core.warnings import REASON

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene


def suspended(scene: Scene) -> Decision:
    """Say once that nothing will be done, and write nothing but that a change waits (A5, C03)."""
    found = noted(scene, "Normal", "Suspended: nothing is done until spec.suspend is false")
    if not scene.change_pending:
        return replace(found, status=resumed(scene).status)
    text = f"{scene.target_name} has changed; the change is taken up when spec.suspend is false"
    # Nobody is asked now: a provider that gave no verdict before gets its full time again.
    left = cond.drop(conditions(scene), cond.UNMEASURED)
    held = cond.put(left, cond.CHANGE_PENDING, "True", "Suspended", text, now=scene.now)
    waiting = scene.note("Warning", f"Suspended with a change pending: {text}")
    fields = difference(scene.status, {"conditions": held}, scene.now, touch=False)
    return replace(found, notes=(*found.notes, waiting), status=fields)


def resumed(scene: Scene) -> Decision:
    """Take the notice of a pending change back."""
    left = cond.drop(cond.drop(conditions(scene), cond.CHANGE_PENDING), cond.UNMEASURED)
    return status(scene, {"conditions": left}, touch=False)


def refuse(scene: Scene) -> Decision:
    """Say on the Canary why it is left alone; no other write (G1, A6)."""
    why = scene.refused
    if why is None:
        msg = "refuse() without a refusal"
        raise LookupError(msg)
    old = cond.find(scene.status, cond.ACCEPTED) or {}
    changed = old.get("message") != why.message
    new = cond.put(
        conditions(scene),
        cond.ACCEPTED,
        "False",
        why.reason,
        why.message,
        now=scene.now,
        renew=changed,
    )
    note = scene.note("Warning", f"Not handled: {why.message}")
    return decision(scene, (), note, {"conditions": new}, touch=False)


def accept(scene: Scene) -> Decision:
    """Take the refusal back."""
    left = cond.drop(conditions(scene), cond.ACCEPTED)
    return status(scene, {"conditions": left}, touch=False)


def warn(scene: Scene) -> Decision:
    """Say what cannot work as it is (O5), or take it back."""
    text = " ".join(scene.warnings)
    if not text:
        return status(scene, {"conditions": cond.drop(conditions(scene), cond.WARNED)}, touch=False)
    new = cond.put(conditions(scene), cond.WARNED, "True", REASON, text, now=scene.now, renew=True)
    return decision(scene, (), scene.note("Warning", text), {"conditions": new}, touch=False)


def target_missing(scene: Scene) -> Decision:
    """Say that the target is missing; its watch wakes us."""
    return noted(scene, "Warning", f"{scene.target_name} does not exist")


def foreign_primary(scene: Scene) -> Decision:
    """Leave an object alone that has the primary's name but is somebody else's."""
    text = f"{scene.primary_name} {scene.foreign_primary}: left alone"
    return noted(scene, "Warning", text)


def keep_finalizer(scene: Scene) -> Decision:
    """Add our finalizer, or remove it: for spec.revertOnDeletion, and while a target is being restored by adoption."""
    wanted = not lifecycle.held(scene.canary)
    return Decision(writes=lifecycle.finalizer(scene.canary, wanted=wanted))


def hindered(scene: Scene) -> Decision:
    """Say what is missing before the primary can be made (case C05)."""
    return noted(scene, "Warning", upkeep.hindrance(scene))


def mend(scene: Scene) -> Decision:
    """Make what must exist."""
    return Decision(writes=upkeep.upkeep(scene))


def discard(scene: Scene) -> Decision:
    """Remove the pods that served before the last promotion."""
    return Decision(writes=scene.workload.leftovers(scene.pair))


def drain(scene: Scene) -> Decision:
    """Wait until they may go."""
    return Decision(requeue_after=max(scene.drained_in, 0.0))


def primary_missing(scene: Scene) -> Decision:
    """Refuse to remake the primary from a template that was never promoted (P13)."""
    text = (
        f"{scene.primary_name} is gone and {scene.names.target} holds another revision than the"
        " promoted one: put the promoted template back to have it made again"
    )
    if upkeep.can_create_primary(scene):
        # It is not made but parked, and that takes pods that run.
        text = f"{scene.primary_name} is gone: {scene.names.target} is scaled up, to be parked in its place"
    return noted(scene, "Warning", text)


def ask_after(scene: Scene) -> Decision:
    """Call the post-rollout hooks."""
    return asking(scene.after)


def told_after(scene: Scene) -> Decision:
    """Remember how the post-rollout hooks went."""
    went = scene.after
    good = went.outcome == "passed"
    text = "The post-rollout hooks agreed" if good else f"{went.name}: {went.message}"
    held = cond.put(
        conditions(scene),
        cond.POST_ROLLOUT,
        "True" if good else "False",
        "Called" if good else "HookFailed",
        text,
        now=scene.now,
        renew=True,
    )
    note = scene.note(
        "Normal" if good else "Warning",
        "Post-rollout hooks called" if good else f"Post-rollout hook failed: {text}",
    )
    return decision(scene, (), note, {"conditions": held}, touch=False)
