"""After a promotion that failed only the canary serves: the run that follows takes no traffic to the broken primary (deviation P2, case C10)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_runs import asked, hook, metric, weighted
from harness.tests.controller_sim import Sim, image, image_of, never_ready, no, number, yes

JSON = dict[str, Any]
BLUE_GREEN: JSON = {"stepWeight": None, "maxWeight": None, "iterations": 2}
MATCH: JSON = BLUE_GREEN | {"match": [{"headers": {"x-canary": {"exact": "yes"}}}]}
MIRROR: JSON = {"mirror": True}


def broken(**analysis: Any) -> Sim:
    """A promotion has failed, and of the primary not one pod is left, as with strategy Recreate."""
    hooks = [
        hook("pre-rollout", "smoke"),
        hook("confirm-promotion", "finish"),
        hook("rollback", "undo"),
    ]
    sim = weighted(*hooks, metrics=[metric("m")], **analysis)
    sim.delay = never_ready("web-primary")
    sim.run(until="Failed")
    sim.pods["web-primary"] = [pod for pod in sim.pods["web-primary"] if pod.ready_at is None]
    sim.settle()
    sim.cuts[:] = [sim.t]
    return sim


@pytest.mark.parametrize(
    "analysis",
    [{}, BLUE_GREEN, MATCH, MIRROR],
    ids=["weights", "blue-green", "a/b", "mirrored"],
)
def test_the_repair_is_checked_and_asked_about_like_any_run(analysis: JSON) -> None:
    sim = broken(**analysis)
    sim.script["finish"] = no()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="WaitingPromotion")
    assert sim.condition("Repairing")["status"] == "True"
    assert sim.status["canaryWeight"] == 100
    sim.run(10)
    names = [name for _, name in asked(sim)]
    assert names.index("smoke") < names.index("m") < names.index("finish")
    assert image_of(sim.primary) == "app:2"
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"
    assert not sim.condition("Repairing")
    assert sim.status["canaryWeight"] == 0
    assert sim.lowest()[-1][1] >= 1


def test_without_an_analysis_alike() -> None:
    sim = broken()
    sim.edit("canaries", "web", {"spec": {"skipAnalysis": True}})
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")
    assert sim.lowest()[-1][1] >= 1


def test_a_change_in_the_middle_of_the_repair_alike() -> None:
    sim = broken()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(2)
    sim.edit("deployments", "web", image("app:4"))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:4"
    assert sim.lowest()[-1][1] >= 1


@pytest.mark.parametrize("how", ["checks", "hook"])
def test_a_repair_that_fails_keeps_what_has_pods(how: str) -> None:
    sim = broken()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    sim.script |= {"m": number(0)} if how == "checks" else {"undo": yes()}
    sim.run(until="Failed")
    sim.run(30)
    assert (sim.phase, sim.status["canaryWeight"], sim.ready_pods("web")) == ("Failed", 100, 3)
    assert sim.condition("Promoted")["reason"] == "PromotionFailed"
    assert sim.lowest()[-1][1] >= 1
    sim.script.clear()
    sim.edit("deployments", "web", image("app:4"))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:4"


def test_a_primary_that_has_recovered_gets_its_traffic_back_at_the_next_run() -> None:
    sim = broken()
    sim.delay = lambda *_: 1.0
    sim.pods["web-primary"].clear()
    sim.run(5)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    assert not sim.condition("Repairing")
    sim.run(0.5)
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}
    sim.run(until="Succeeded")
    assert sim.lowest()[-1][1] >= 1


def test_after_an_a_b_test_everybody_gets_the_only_healthy_copy() -> None:
    sim = broken(**MATCH)
    assert sim.traffic() == {"web-primary": 0, "web-canary": 100}
    assert sim.serving() == 3
