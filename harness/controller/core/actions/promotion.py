"""From an analysis that was passed to a primary that runs the new revision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import frozen, restore, upkeep
from harness.controller.core.actions.base import (
    alerting,
    decision,
    post_rollout,
    routed,
    status,
)
from harness.controller.core.decision import Decision
from harness.controller.core.status import entered
from harness.controller.core.strategies.traffic import FULL
from harness.controller.core.tracking import refresh_for

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene


def promote(scene: Scene) -> Decision:
    """Bring the target's template to the primary; the primary's deadline counts from here."""
    names, skipped = scene.names, scene.settings.skip_analysis or scene.phase == frozen.PHASE
    weighted = scene.settings.strategy == "weights"
    done = scene.iterations if skipped or weighted else scene.settings.iterations
    copies = scene.workload.copies
    text = f"{scene.primary_name} takes over the template of {names.target}"
    if not copies:
        text = f"The ReplicaSet of {scene.target_name} takes over with its pods"
    fields = {"iterations": done}
    if skipped and scene.weight and not (scene.repairing or scene.routes_kept):
        fields["canaryWeight"] = 0
    entry = entered(scene.status, "Promoting", scene.now, text, fields)
    how = "1 iteration passed" if done == 1 else f"{done} iterations passed"
    if scene.phase == frozen.PHASE:
        how = "somebody decided so while it was frozen"
    elif skipped:
        how = "analysis skipped"
    elif weighted:
        how = f"analysis passed at a weight of {scene.weight} %"
    onto = f" to {names.primary}" if copies else ""
    note = scene.note("Normal", f"Promotion of {names.target}{onto}: {how}")
    return decision(scene, upkeep.promotion(scene), note, entry)


def step_back(scene: Scene) -> Decision:
    """The primary runs the new revision: it takes the traffic over step by step (spec state-machine 6)."""
    weight = max(scene.weight - scene.settings.promotion_step, 0)
    text = f"Traffic of {scene.names.target}: {weight} % to the canary, {FULL - weight} % to the primary"
    fields = routed(scene, {"canaryWeight": weight})
    return decision(scene, (), scene.note("Normal", text), fields)


def wait_to_step_back(scene: Scene) -> Decision:
    """Wait until the next share is due."""
    return Decision(requeue_after=max(scene.due_in, 0.0))


def finalise(scene: Scene) -> Decision:
    """The primary has rolled: all traffic goes to it."""
    text = f"{scene.primary_name} is rolled out{scene.goes}"
    entry = entered(scene.status, "Finalising", scene.now, text, {"canaryWeight": 0})
    return status(scene, routed(scene, entry))


def wait_for_route(scene: Scene) -> Decision:
    """The target keeps running until the route leads to the primary."""
    note = scene.note("Warning", f"Waiting for the route: {scene.route_waits}")
    return Decision(notes=(note,))


def succeed(scene: Scene) -> Decision:
    """Scale the target to zero and record the promoted revision."""
    names = scene.names
    idle = f"; {names.target} is scaled to zero" if scene.workload.scales else ""
    text = f"{scene.primary_name} runs the new revision{idle}"
    fields: JSON = {
        "canaryWeight": 0,
        "iterations": 0,
        "lastPromotedSpec": scene.tracking.applied,
        **scene.workload.remembered(scene.pair),
    }
    if restore.FIELD in scene.status:
        # Whatever failed before may fail, and be taken out of the target, once more: its source has moved on since.
        fields[restore.FIELD] = None
    entry = post_rollout(scene, entered(scene.status, "Succeeded", scene.now, text, fields))
    note = scene.note(
        "Normal", f"Promotion completed: {scene.primary_name} serves the new revision"
    )
    found = decision(scene, upkeep.to_zero(scene), alerting(note, "info", facts=True), entry)
    return replace(found, refresh=refresh_for(scene, scene.tracking.applied))


def failed(scene: Scene) -> Decision:
    """The primary missed its deadline. The target stays up and gets the traffic: it is the only healthy copy (C10)."""
    names = scene.names
    why = scene.primary_ready.message or f"{scene.primary_short}: not the promoted template"
    text = (
        f"{scene.primary_name} was not ready within {scene.settings.deadline:g} s of the"
        f" promotion ({why}); {names.target} keeps running"
    )
    entry = entered(
        scene.status,
        "Failed",
        scene.now,
        text,
        {"canaryWeight": FULL},
        reason="PromotionFailed",
    )
    fields = routed(scene, post_rollout(scene, entry))
    note = alerting(scene.note("Warning", f"Promotion failed: {text}"), "error")
    return decision(scene, (), note, fields)
