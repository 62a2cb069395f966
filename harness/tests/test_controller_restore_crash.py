"""The controller killed at every write of a restoration: it ends in the same place, analyses nothing twice, and argues with nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.tests.controller_restore import BROKEN, REVERT, runs, told
from harness.tests.controller_sim import (
    Sim,
    configmap,
    daemonset,
    deployment,
    image,
    image_of,
    target_ref,
    with_configmap,
)
from harness.tests.controller_stories import Story
from harness.tests.test_controller_crash import FEWEST, compare

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
WEIGHTS: JSON = {key: REVERT[key] for key in ("interval", "threshold", "restore")}
GATEWAY: JSON = {
    "provider": "gatewayapi:v1",
    "service": {"port": 80, "gatewayRefs": [{"name": "gateway"}]},
    "analysis": {**WEIGHTS, "stepWeight": 30, "maxWeight": 60},
}
HOOKS = [{"type": "post-rollout", "name": "after", "url": "http://after.test/"}]
METRICS = [{"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 101}}]


def release(sim: Sim, name: str) -> None:
    sim.edit(sim.plural, "web", image(name))
    sim.run(until="Progressing")


def fail(sim: Sim) -> None:
    sim.delay = BROKEN
    release(sim, "app:2")
    sim.run(until="Failed")
    sim.run(15)


def fail_twice(sim: Sim) -> None:
    fail(sim)
    release(sim, "app:2")
    sim.run(until="Failed")
    sim.run(15)


def fail_and_fix(sim: Sim) -> None:
    fail(sim)
    release(sim, "app:4")
    sim.run(until="Succeeded")


def fail_with_configs(sim: Sim) -> None:
    sim.edit("configmaps", "settings", {"data": {"a": "2"}})
    fail(sim)


def ends(reason: str, image_: str, count: int = 1) -> Callable[[Sim], bool]:
    return lambda s: (told(s)[1], image_of(s.target), runs(s)) == (reason, image_, count)


BACK = ends("Reverted", "app:1")
SPEC: JSON = {"analysis": REVERT}
STORIES = (
    Story("reverted", fail, BACK, SPEC),
    Story("failed-checks", fail, BACK, {"analysis": {**REVERT, "metrics": METRICS}}),
    Story("hooks", fail, BACK, {"analysis": {**REVERT, "webhooks": HOOKS}}),
    Story(
        "weights", fail, BACK, {**GATEWAY, "analysis": {**GATEWAY["analysis"], "metrics": METRICS}}
    ),
    Story("history-0", fail, BACK, SPEC, deployment(revisionHistoryLimit=0)),
    Story("applied-again", fail_twice, ends("AppliedAgain", "app:2", 2), SPEC),
    Story("fixed", fail_and_fix, ends("", "app:4", 2), SPEC),
    Story(
        "daemonset",
        fail,
        BACK,
        {**SPEC, "targetRef": target_ref("DaemonSet")},
        daemonset(),
        "daemonsets",
    ),
    Story(
        "configs",
        fail_with_configs,
        BACK,
        SPEC,
        with_configmap(deployment()),
        others={"configmaps": configmap(a="1")},
    ),
)


@pytest.mark.thorough
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_killed_after_any_write_the_restoration_ends_in_the_same_place(
    story: Story, record_property: Callable[[str, object], None]
) -> None:
    undisturbed = story.tell(story.begin())
    assert story.end(undisturbed), told(undisturbed)
    writes = len(undisturbed.actions) + len(undisturbed.notes)
    for number in range(1, writes + 1):
        sim = story.begin()
        sim.kill_after = number
        story.tell(sim)
        assert sim.kill_after is None, "this write never came"
        problems = compare(sim, undisturbed)
        assert not problems, f"killed after write {number}: {sim.actions[-6:]}"
    record_property("crash points", f"{story.name} {writes}")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_killed_once_after_each_write_in_a_row_the_restoration_ends_in_the_same_place(
    story: Story,
) -> None:
    undisturbed = story.tell(story.begin())
    assert story.end(undisturbed), (told(undisturbed), image_of(undisturbed.target))
    sim = story.begin()
    sim.kill_each = True
    story.tell(sim)
    assert sim.restarts > FEWEST
    assert not compare(sim, undisturbed)


@pytest.mark.parametrize("every", [5, 7])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_with_others_faster_than_some_writes_it_ends_in_the_same_place(
    story: Story, every: int
) -> None:
    undisturbed = story.tell(story.begin())
    sim = story.begin()
    sim.conflict_every = every
    story.tell(sim)
    assert story.end(sim)
    assert not [path for path in compare(sim, undisturbed) if not path.startswith("replaced")]
