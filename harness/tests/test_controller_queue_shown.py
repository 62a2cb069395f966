"""How a line is shown: `drill explain`, and metrics that are worked out when they are asked for (deviation D4)."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core import conditions as cond
from harness.controller.explain import Explanation, explain
from harness.controller.explain_text import to_text
from harness.controller.look import world_of
from harness.controller.shell.line import Line
from harness.controller.shell.metrics import Metrics
from harness.controller.sources import from_cluster
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_limited import THIRD, Limited, limited, queued, release, waiting
from harness.tests.controller_runs import hook
from harness.tests.controller_rush import Rush
from harness.tests.controller_sim import no, running, yes
from harness.tests.controller_stories_routed import GATEWAY
from harness.tests.controller_town import Town

if TYPE_CHECKING:
    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
OWN = "rollout_drill_controller"


# -- explain -----------------------------------------------------------------------------------------------------------------


def others(sim: Limited) -> list[JSON]:
    """Two that wait as well, before and after this one, and one that does not."""
    found = []
    for number, (name, at) in enumerate(
        [("early", "2020-01-01T00:00:00Z"), ("late", "2030-01-01T00:00:00Z"), ("idle", "")]
    ):
        more = copy.deepcopy(sim.canary)
        more["metadata"] |= {"name": name, "uid": f"other-{100 + number}"}
        more["spec"]["targetRef"]["name"] = name
        more["metadata"].pop("annotations", None)
        more["status"]["phase"] = "Initialized"
        conditions = more["status"]["conditions"]
        kept = cond.drop(conditions, cond.QUEUED)
        if at:
            kept.append(waiting(sim) | {"lastTransitionTime": at})
        more["status"]["conditions"] = kept
        found.append(more)
    return found


def look(sim: Limited) -> Explanation:
    objects = copy.deepcopy([*sim.objects.values(), *others(sim)])
    return explain(world_of(sim.canary, objects), sim.canary, sim.now)


def test_explain_says_where_it_stands_in_the_line() -> None:
    sim = queued()
    found = look(sim)
    since = waiting(sim)["lastTransitionTime"]
    assert found.queue == {"position": 2, "waiting": 3, "since": since, "priority": 0}
    assert found.to_json()["queue"] == found.queue
    text = to_text(found)
    assert f"waits for its turn: number 2 of 3, in line since {since}" in text
    assert (found.verdict, found.does, found.writes, found.says) == ("changed", "queued", (), ())
    sim.edit("canaries", "web", {"metadata": {"annotations": {"rollout-drill/priority": "7"}}})
    assert look(sim).queue["position"] == 1
    assert "priority 7" in to_text(look(sim))


def test_explain_says_that_a_run_waits_behind_its_gate() -> None:
    steps: JSON = {
        "stepWeight": 20,
        "iterations": 0,
        "webhooks": [hook("confirm-traffic-increase", "more")],
    }
    sim = limited(spec=GATEWAY, **steps)
    release(sim)
    sim.run(5)
    sim.script["more"] = no()
    sim.run(5)
    sim.turn = THIRD
    sim.script["more"] = yes()
    sim.run(5)
    found = look(sim)
    assert found.queue["position"] == 1, "it regains its slot before the others start"
    assert found.does == "queued-run"
    assert "nothing is asked and no deadline runs before its turn" in to_text(found)
    assert found.held == {}


def test_explain_lists_canaries_of_a_cluster_only_for_one_that_waits() -> None:
    def read(sim: Sim, *more: JSON) -> tuple[JSON, set[str]]:
        cluster = FakeCluster()
        for obj in (*sim.objects.values(), *more):
            cluster.add(copy.deepcopy(obj))
        canary, world = asyncio.run(from_cluster(cluster.client(), "n", "web"))
        return explain(world, canary, sim.now).queue, {asked.verb for asked in cluster.requests}

    sim = queued()
    place, verbs = read(sim, *others(sim))
    assert (place["position"], place["waiting"]) == (2, 3)
    assert verbs == {"get", "list"}
    assert read(running()) == ({}, {"get"})


def test_who_is_suspended_in_the_line_is_explained_as_suspended() -> None:
    sim = queued()
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.settle()
    assert look(sim).does == "suspended"


# -- metrics -----------------------------------------------------------------------------------------------------------------


def value(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"{OWN}_{name}", {"namespace": "n", **labels})


def test_positions_are_worked_out_when_they_are_asked_for() -> None:
    metrics, town = Metrics(), Town(2)
    metrics.line("n", town.line)
    for name in "abcd":
        town.change(name)
    town.work()
    assert value(metrics, "analyses_limit") == 2
    assert value(metrics, "analyses") == 2
    assert value(metrics, "queue_length") == 2
    assert [value(metrics, "queue_position", name=name) for name in "abcd"] == [None, None, 1, 2]
    town.set("a", "Succeeded")
    town.work()
    assert [value(metrics, "queue_position", name=name) for name in "cd"] == [None, 1]
    metrics.leading(on=False)
    assert value(metrics, "analyses_limit") is None, "another process knows better now"


def test_without_a_limit_there_is_no_such_series() -> None:
    text, _ = Metrics().text()
    for name in ("analyses", "queue_length", "queue_position"):
        assert f"{OWN}_{name}" not in text.decode()


@pytest.mark.parametrize("limit", [None, 1])
def test_the_controller_gives_its_line_to_whoever_counts(limit: int | None) -> None:
    async def story() -> Metrics:
        metrics, rush = Metrics(), Rush(3, limit)
        async with rush.controller(meter=metrics):
            await rush.settled()
            rush.change()
            await asyncio.sleep(2)
        return metrics

    metrics = run_virtual(story())
    places = [value(metrics, "queue_position", name=f"web0{number}") for number in range(3)]
    assert places == ([None, 1, 2] if limit else [None] * 3)
    assert value(metrics, "analyses") == limit


def test_a_view_of_an_empty_line() -> None:
    view = Line(3, "", lambda _: True).view
    assert (view.limit, view.used, view.waiting) == (3, 0, ())
