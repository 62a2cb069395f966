"""A Canary with revertOnDeletion that is being deleted: the target serves alone again before it goes (spec state-machine 12, A9, C19, C20)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import lifecycle
from harness.controller.core.actions.base import decision, noted
from harness.controller.core.decision import Decision
from harness.controller.core.status import entered

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene

COUNT_AGAIN: Final = 0.5
"""Seconds between two counts of the target's pods."""


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
    again = scene.deadline_in
    if scene.world.ready_pods is not None:
        again = min(again, COUNT_AGAIN)  # no watch tells of pods
    return replace(noted(scene, "Normal", text), requeue_after=None if late else again)


def give_back(scene: Scene) -> Decision:
    """Point apex and route at the target."""
    return Decision(writes=lifecycle.traffic_back(scene))


def count_pods(scene: Scene) -> Decision:
    """Have the target's ready pods counted before traffic is given back.

    Its status may lie for a moment: after two changes of its size in a row it still shows pods that are on their way out.
    """
    return Decision(reads_pods=True, pods=scene.workload.counted(scene.pair))


def reverted(scene: Scene) -> Decision:
    """Say that it is done, before the Canary goes and nothing more can be said."""
    text = f"{scene.target_name} serves alone"
    note = scene.note("Normal", f"Reverted: {scene.names.target} serves alone")
    return decision(scene, (), note, entered(scene.status, "Terminated", scene.now, text))


def release(scene: Scene) -> Decision:
    """Let the Canary go."""
    return Decision(writes=lifecycle.finalizer(scene.canary, wanted=False))


def give_up(scene: Scene) -> Decision:
    """The target never became ready: the Canary goes all the same, and with it the primary, so the traffic is the target's (case C19 d)."""
    text = (
        f"{scene.target_name} was not ready within {scene.settings.deadline:g} s"
        f" ({scene.reverted.message}); the Canary goes all the same, and {scene.names.target} keeps its pods"
    )
    note = scene.note("Warning", f"Reverted too early: {text}")
    entry = entered(scene.status, "Terminated", scene.now, text, reason="NotReady")
    return decision(scene, lifecycle.traffic_back(scene), note, entry)


def nothing_to_revert(scene: Scene) -> Decision:
    """The target is gone, or was never taken over: let the Canary go (case C19)."""
    text = f"Nothing to revert: {lifecycle.irrevocable(scene)}"
    entry = entered(scene.status, "Terminated", scene.now, text)
    return decision(scene, (), scene.note("Normal", text), entry)
