"""The strategies that split traffic, step by step, in virtual time (spec state-machine 5 and 6)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.settings import Settings
from harness.tests.controller_sim import Sim
from harness.tests.controller_sim_make import canary, deployment, image, image_of
from harness.tests.controller_sim_outside import no, scripted, yes

JSON = dict[str, Any]
MATCH = [{"headers": {"x-canary": {"exact": "yes"}}}]


def routed(**analysis: Any) -> JSON:
    return {
        "provider": "gatewayapi:v1",
        "service": {"port": 80, "gatewayRefs": [{"name": "gateway"}]},
        "analysis": {"interval": "2s", "threshold": 2, **analysis},
    }


def started(until: str = "Succeeded", **analysis: Any) -> Sim:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**routed(**analysis)))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    if until:
        sim.run(until=until)
    return sim


def shares(sim: Sim) -> list[int]:
    """The canary's shares that were announced, in order."""
    texts = [text for text in sim.messages() if text.startswith("Traffic of web:")]
    return [int(text.split()[3]) for text in texts]


@pytest.mark.parametrize(
    ("analysis", "expected"),
    [
        ({"stepWeight": 20, "maxWeight": 50}, [20, 40, 50]),
        ({"stepWeight": 50}, [50, 100]),
        ({"stepWeights": [5, 30, 90]}, [5, 30, 90]),
        ({"stepWeight": 60, "stepWeights": [1]}, [60, 100]),
    ],
)
def test_weights_are_visited_one_interval_each(analysis: JSON, expected: list[int]) -> None:
    sim = started(**analysis)
    assert shares(sim) == expected
    assert image_of(sim.primary) == "app:2"
    assert sim.status["canaryWeight"] == 0
    assert sim.traffic()["web-canary"] == 0
    promoting = next(t for t, phase, _ in sim.history if phase == "Promoting")
    progressing = next(t for t, phase, _ in sim.history if phase == "Progressing")
    assert promoting - progressing >= 2 * len(expected)


def test_the_largest_weight_is_never_passed() -> None:
    analysis = {"stepWeight": 30, "maxWeight": 40}
    assert Settings.of(canary(**routed(**analysis)), splits=True).steps == (30, 40)


def test_traffic_goes_back_to_the_primary_step_by_step() -> None:
    sim = started(stepWeight=50, maxWeight=50, stepWeightPromotion=20)
    assert shares(sim) == [50, 30, 10]
    promoting = next(t for t, phase, _ in sim.history if phase == "Promoting")
    finalising = next(t for t, phase, _ in sim.history if phase == "Finalising")
    assert finalising - promoting == pytest.approx(3 * 2, abs=0.1)


def test_mirroring_comes_before_the_first_share() -> None:
    sim = started(until="", stepWeight=50, maxWeight=50, mirror=True)
    sim.run(until="Progressing")
    sim.run(2)
    assert sim.condition("Mirroring")["status"] == "True"
    assert shares(sim) == []
    assert "RequestMirror" in str(sim.objects["httproutes", "web"]["spec"]["rules"])
    sim.run(3)
    assert not sim.condition("Mirroring")
    assert shares(sim) == [50]
    assert "RequestMirror" not in str(sim.objects["httproutes", "web"]["spec"]["rules"])
    sim.run(until="Succeeded")


def test_a_b_sends_those_who_match_to_the_canary_for_the_whole_run() -> None:
    sim = started(until="Progressing", iterations=2, match=MATCH)
    sim.run(2)
    assert sim.status["canaryWeight"] == 100
    matched, others = sim.objects["httproutes", "web"]["spec"]["rules"]
    assert matched["matches"][0]["headers"][0]["name"] == "x-canary"
    assert [ref["name"] for ref in others["backendRefs"]] == ["web-primary"]
    sim.run(until="Succeeded")
    assert sim.status["canaryWeight"] == 0


def test_blue_green_behind_a_route_moves_all_traffic_before_the_primary_rolls() -> None:
    sim = started(until="Promoting", iterations=2)
    assert sim.traffic() == {"web-primary": 0, "web-canary": 100}
    assert shares(sim) == [100]
    sim.run(until="Succeeded")
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}


def test_a_drifted_route_is_mended_with_its_weights_kept() -> None:
    sim = started(until="Progressing", stepWeight=20, maxWeight=60)
    sim.run(1.5)
    assert sim.status["canaryWeight"] == 20
    rules = [{"backendRefs": [{"name": "web-primary", "port": 80}]}]
    sim.edit("httproutes", "web", {"spec": {"rules": rules}})
    sim.run(0.5)
    assert sim.traffic() == {"web-primary": 80, "web-canary": 20}


def test_nothing_is_judged_while_the_route_is_not_accepted() -> None:
    sim = started(until="Progressing", stepWeight=20, maxWeight=60)
    sim.run(1.5)
    sim.gateway_delay = None
    sim.run(60)
    assert sim.phase == "Progressing"
    assert len(shares(sim)) <= 2
    assert any("Waiting for the route" in text for text in sim.messages())
    sim.gateway_delay = 0.2
    sim.run(until="Succeeded")


def test_a_new_revision_in_mid_run_takes_the_traffic_back_first() -> None:
    sim = started(until="Progressing", stepWeight=20, maxWeight=60)
    sim.run(6)
    assert sim.status["canaryWeight"] > 20
    sim.edit("deployments", "web", image("app:3"))
    sim.settle()
    assert (sim.status["canaryWeight"], sim.traffic()["web-canary"]) == (0, 0)
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


def test_failed_checks_take_the_traffic_back() -> None:
    sim = started(
        until="",
        stepWeight=20,
        maxWeight=60,
        metrics=[{"name": "m", "query": "q", "thresholdRange": {"min": 1}}],
    )
    sim.hooks = scripted({"m": no("no values: the query found nothing")})
    sim.run(until="Failed")
    assert sim.status["failedChecks"] == 2
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}
    assert image_of(sim.primary) == "app:1"
    sim.settle()
    assert sim.ready_pods("web") == 0


def test_a_promotion_that_fails_leaves_all_traffic_on_the_canary() -> None:
    def delay(name: str, template: JSON, _index: int) -> float | None:
        broken = name == "web-primary" and "app:2" in str(template)
        return None if broken else 1.0

    sim = started(until="", stepWeight=50, maxWeight=50)
    sim.delay = delay
    sim.run(until="Failed")
    sim.settle()
    assert sim.status["canaryWeight"] == 100
    assert sim.traffic() == {"web-primary": 0, "web-canary": 100}
    assert sim.ready_pods("web") == 3


def test_skipping_the_analysis_moves_no_traffic_to_the_canary() -> None:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**routed(stepWeight=50), skipAnalysis=True))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert shares(sim) == []
    assert image_of(sim.primary) == "app:2"


def test_a_rollback_that_a_hook_asked_for_is_carried_out_even_if_it_changes_its_mind() -> None:
    """The traffic goes first, then the pods: by then the hook may answer otherwise, and so may the pods of another deadline."""
    undo = {"type": "rollback", "name": "undo", "url": "http://undo.test/"}
    sim = Sim()
    sim.script["undo"] = no()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**routed(stepWeight=20, maxWeight=60, webhooks=[undo])))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    while not sim.traffic()["web-canary"]:
        sim.run(0.2)
    sim.script["undo"] = yes()
    sim.before_status = lambda _: sim.script.update(undo=no())
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "RollbackHook"
    assert not sim.condition("RollingBack")
