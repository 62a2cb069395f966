"""A Canary with revertOnDeletion that is being deleted: the target serves alone again before it goes (spec state-machine 12, A9, C19, C20)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import lifecycle
from harness.controller.core.actions.base import decision, noted
from harness.controller.core.decision import Decision
from harness.controller.core.status import entered

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene


def announce(scene: Scene) -> Decision:
    """Enter Terminating; from here on a bound counts."""
    text = f"{scene.target_name} is being restored before the Canary goes"
    note = scene.note("Normal", f"Terminating: {scene.names.target} is to serve alone again")
    entry = entered(scene.status, "Terminating", scene.now, text, renew=True)
    return decision(scene, (), note, entry)


def restore(scene: Scene) -> Decision:
    """Bring the target's pods back, as many as the primary has."""
    return Decision(writes=lifecycle.pods_back(scene))


def wait_for_target(scene: Scene) -> Decision:
    """Wait until the target is ready, or the bound is reached."""
    text = f"Waiting for {scene.target_name} before traffic is given back: {scene.reverted.message}"
    late = scene.deadline_in <= 0
    return replace(noted(scene, "Normal", text), requeue_after=None if late else scene.deadline_in)


def give_back(scene: Scene) -> Decision:
    """Point apex and route at the target."""
    return Decision(writes=lifecycle.traffic_back(scene))


def release(scene: Scene) -> Decision:
    """Let the Canary go."""
    note = scene.note("Normal", f"Reverted: {scene.names.target} serves alone")
    return Decision(writes=lifecycle.finalizer(scene.canary, wanted=False), notes=(note,))


def give_up(scene: Scene) -> Decision:
    """The target never became ready: the Canary goes all the same, and with it the primary, so the traffic is the target's (case C19 d)."""
    text = (
        f"{scene.target_name} was not ready within {scene.settings.deadline:g} s"
        f" ({scene.reverted.message}); the Canary goes all the same, and {scene.names.target} keeps its pods"
    )
    return Decision(
        writes=lifecycle.traffic_back(scene) + lifecycle.finalizer(scene.canary, wanted=False),
        notes=(scene.note("Warning", f"Reverted too early: {text}"),),
    )


def nothing_to_revert(scene: Scene) -> Decision:
    """The target is gone, or was never taken over: let the Canary go (case C19)."""
    note = scene.note("Normal", f"Nothing to revert: {lifecycle.irrevocable(scene)}")
    return Decision(writes=lifecycle.finalizer(scene.canary, wanted=False), notes=(note,))
