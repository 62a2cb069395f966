"""From a target that serves by itself to a primary that has taken over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import upkeep
from harness.controller.core.actions.base import (
    ZERO,
    alerting,
    decision,
    noted,
    status,
)
from harness.controller.core.decision import JSON, Decision
from harness.controller.core.status import entered
from harness.controller.core.tracking import refresh_for

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene


def announce(scene: Scene) -> Decision:
    """Enter Initializing; the deadline of the bootstrap counts from here."""
    text = f"{scene.target_name} is being initialised"
    fields: JSON = {}
    if scene.world.target is not None:
        # Where the primary has no name of its own, the status tells the layout from here on.
        fields = scene.workload.remembered(scene.pair)
    return status(scene, entered(scene.status, "Initializing", scene.now, text, fields))


def lead_to_primary(scene: Scene) -> Decision:
    """Point apex and route at the primary, which is ready, while the target still runs (C28)."""
    return Decision(writes=upkeep.traffic(scene))


def wait_for_route(scene: Scene) -> Decision:
    """Wait until whoever plays the route has taken it up."""
    text = f"Waiting for the route: {scene.route_waits}"
    late = scene.deadline_in <= 0
    found = noted(scene, "Warning", text)
    return replace(found, requeue_after=None if late else scene.deadline_in)


def initialise(scene: Scene) -> Decision:
    """Let the primary take over: the apex was first, now the target to zero, then the status (C28).

    Recorded is the revision that the primary was made from. If the target has moved on meanwhile, its fence must not prove that
    nothing happened, so the counter is stored as one that no object has, and the next pass starts a run (D2).
    """
    names, now = scene.names, scene.snapshot
    moved = scene.overtaken
    known = scene.primary_hash if moved else now.hash
    fields: JSON = {
        "lastAppliedSpec": known,
        "lastPromotedSpec": known,
        "lastTrackedRevision": str(now.fence.open() if moved else now.fence),
        **scene.workload.remembered(scene.pair),
        **(upkeep.copied_configs(scene) if moved else scene.config_fields),
    }
    text = f"{scene.serves}; {names.target} waits for a new revision"
    entry = entered(scene.status, "Initialized", scene.now, text, ZERO | fields)
    note = scene.note("Normal", f"Initialised: {scene.serves}{scene.goes}")
    note = alerting(note, "info", facts=True)
    writes = upkeep.to_zero(scene)
    return replace(decision(scene, writes, note, entry), refresh=refresh_for(scene, known))


def failed(scene: Scene) -> Decision:
    """Fail without touching the live target or the apex Service (P1)."""
    why = scene.primary_ready.message or f"route: {scene.route_waits}"
    text = (
        f"{scene.primary_name} did not become ready within {scene.settings.deadline:g} s ({why});"
        f" {scene.names.target} was left running"
    )
    entry = entered(scene.status, "Failed", scene.now, text, reason="InitializationFailed")
    note = alerting(scene.note("Warning", f"Initialisation failed: {text}"), "error")
    return decision(scene, (), note, entry)


def repair(scene: Scene) -> Decision:
    """Try again with the target's new template; no traffic has reached the primary yet."""
    text = f"{scene.target_name} is being initialised"
    entry = entered(scene.status, "Initializing", scene.now, text, renew=True)
    note = scene.note(
        "Normal", f"New revision before the first success: {scene.primary_short} remade"
    )
    return decision(scene, upkeep.promotion(scene), note, entry)


def wait_for_first(scene: Scene) -> Decision:
    """Knative has not made a revision yet that could serve as primary."""
    text = f"Waiting for the first revision of {scene.target_name}"
    return Decision(notes=(scene.note("Normal", text),))


def wait_for_primary(scene: Scene) -> Decision:
    """Wait until the primary is ready, or the deadline passes."""
    note = scene.note("Normal", f"Waiting for {scene.primary_name} to be rolled out")
    late = scene.deadline_in <= 0
    return Decision(notes=(note,), requeue_after=None if late else scene.deadline_in)
