"""The controller killed between any two writes: whatever it was doing, it ends in the same place."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from harness.tests.controller_sim import (
    Sim,
    canary,
    deployment,
    image,
    never_ready,
)

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]


# -- killed between any two writes -------------------------------------------------------------------------------------------


def _promote(sim: Sim) -> None:
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")


def _restart_mid_run(sim: Sim) -> None:
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(4)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")


def _roll_back(sim: Sim) -> None:
    sim.delay = never_ready("web")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")


def _fail_promotion(sim: Sim) -> None:
    sim.delay = never_ready("web-primary")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")


def _abort(sim: Sim) -> None:
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")


def _story(act: Callable[[Sim], None], kill_after: int | None) -> Sim:
    sim = Sim()
    sim.kill_after = kill_after
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    act(sim)
    sim.run(60)
    return sim


def _essence(sim: Sim) -> Any:
    """The objects without what counts writes or tells the time, and the events."""
    objects = copy.deepcopy(sim.objects)
    for obj in objects.values():
        for key in ("resourceVersion", "generation", "uid", "managedFields", "ownerReferences"):
            obj["metadata"].pop(key, None)
        status = obj.get("status", {})
        status.pop("observedGeneration", None)
        status.pop("lastTransitionTime", None)
        status.pop("lastTrackedRevision", None)
        for condition in status.get("conditions", []):
            condition.pop("lastTransitionTime")
            condition.pop("lastUpdateTime")
    stories = [m for m in sim.messages() if not m.startswith("Waiting")]
    return objects, sorted(stories)


@pytest.mark.parametrize("act", [_promote, _restart_mid_run, _roll_back, _fail_promotion, _abort])
def test_killed_after_any_write_it_ends_in_the_same_place(act: Callable[[Sim], None]) -> None:
    undisturbed = _story(act, None)
    writes = len(undisturbed.actions) + len(undisturbed.notes)
    assert writes > 12
    for number in range(1, writes + 1):
        sim = _story(act, number)
        assert sim.kill_after is None, "this write never came"
        assert _essence(sim) == _essence(undisturbed), f"killed after write {number}"
        assert [a for a in sim.actions if a[0] == "replace"] == [
            a for a in undisturbed.actions if a[0] == "replace"
        ], "the primary was rolled twice"
