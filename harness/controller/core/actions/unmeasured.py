"""A metrics provider that has too much to do (429, time-outs): nothing is concluded from that, and the round is made again.

The condition says since when. It is the clock of `Policy.no_verdict_timeout`, so a restart of the controller changes nothing, and it is written
once: a provider under load must not make the API server the next one. Counters, weight and lastTransitionTime stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import conditions as cond
from harness.controller.core.actions.base import conditions, decision, status
from harness.controller.core.decision import Decision

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene


def measured(scene: Scene) -> bool:
    """Whether there is a verdict again after there was none; a failed check that only stands for a missing verdict is none."""
    if cond.find(scene.status, cond.UNMEASURED) is None:
        return False
    went = scene.checkup
    return went.outcome not in ("asking", "unmeasured") and not went.undecided


def wait(scene: Scene) -> Decision:
    """Say once that there is no verdict, and make the round again when the provider wants to be asked."""
    went = scene.checkup
    if cond.find(scene.status, cond.UNMEASURED) is not None:
        return Decision(requeue_after=went.again_in)
    held = cond.put(
        conditions(scene), cond.UNMEASURED, "True", went.undecided, went.message, now=scene.now
    )
    patience = scene.world.policy.no_verdict_timeout
    note = scene.note(
        "Warning",
        f"No verdict on {scene.names.target}: {went.message}; asked again, and after {patience:g} s without any it counts as a failed check",
    )
    found = decision(scene, (), note, {"conditions": held}, touch=False)
    return replace(found, keeps_answers=True)


def over(scene: Scene) -> Decision:
    """Take it back; the same answers decide the next pass."""
    left = cond.drop(conditions(scene), cond.UNMEASURED)
    return replace(status(scene, {"conditions": left}, touch=False), keeps_answers=True)
