"""A failed analysis that is frozen: what stays, and what the next revision meets, in virtual time (spec freeze-and-adopt 3)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_freezing import (
    AB,
    WEIGHTS,
    begun,
    freeze,
    matched,
    said,
    spec,
)
from harness.tests.controller_sim import Sim, never_ready
from harness.tests.controller_sim_make import canary, deployment, image, image_of
from harness.tests.controller_sim_outside import no, number, yes

JSON = dict[str, Any]


# -- the freeze --------------------------------------------------------------------------------------------------------------


def test_a_failed_analysis_leaves_pods_routes_and_counters_as_they_are() -> None:
    sim = freeze(begun(**AB))
    promoted = sim.condition("Promoted")
    assert (promoted["status"], promoted["reason"]) == ("False", "Frozen")
    assert "scaled to zero" not in promoted["message"]
    assert "request-success-rate" in promoted["message"]
    assert sim.status["failedChecks"] == 1
    assert sim.status["canaryWeight"] == 100
    assert matched(sim) == "web-canary"
    assert sim.ready_pods("web") == 3
    assert image_of(sim.primary) == "app:1"
    version = sim.canary["metadata"]["resourceVersion"]
    sim.run(600)
    assert sim.phase == "Frozen"
    assert sim.canary["metadata"]["resourceVersion"] == version
    assert said(sim, "Deployment web is frozen") == 1


def test_without_the_flag_it_is_rolled_back() -> None:
    sim = begun(**AB | {"freezeOnFailure": False})
    sim.run(2)
    sim.script["request-success-rate"] = number(50)
    sim.run(until="Failed")
    sim.run(1)
    assert sim.ready_pods("web") == 0


@pytest.mark.parametrize("fields", [{"routed": False, "iterations": 2}, AB, WEIGHTS])
def test_pods_that_are_not_ready_in_time_are_frozen_too(fields: JSON) -> None:
    sim = begun(Sim(never_ready("web")), more={"progressDeadlineSeconds": 20}, **fields)
    sim.run(until="Frozen")
    assert "not ready within 20 s" in sim.condition("Promoted")["message"]
    assert sim.target["spec"]["replicas"] == 3


def test_a_rollback_hook_is_an_order_and_freezes_nothing() -> None:
    hook = {"type": "rollback", "name": "undo", "url": "http://undo.test/"}
    sim = begun(**AB | {"webhooks": [hook]})
    sim.run(2)
    sim.script["undo"] = yes()
    sim.run(until="Failed")


def test_a_promotion_that_fails_ends_as_ever() -> None:
    sim = begun(Sim(never_ready("web-primary")), more={"progressDeadlineSeconds": 20}, **AB)
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "PromotionFailed"


def test_people_are_told_once_and_after_the_status() -> None:
    hook = {"type": "post-rollout", "name": "after", "url": "http://after.test/"}
    sim = begun(**AB | {"webhooks": [hook]})
    sim.run(2)
    sim.script["request-success-rate"] = number(50)
    while sim.phase != "Frozen":
        assert not said(sim, "Deployment web is frozen")
        sim.run(0.05)
    sim.run(5)
    sim.restart()
    sim.run(60)
    assert said(sim, "Deployment web is frozen") == 1
    assert [name for _, name in sim.calls].count("after") == 1
    assert sim.condition("PostRollout")["status"] == "True"


def test_pods_that_become_unready_while_frozen_are_said_and_no_more() -> None:
    sim = freeze(begun(**AB))
    for pod in sim.pods["web"][:1]:
        pod.ready_at = None
    sim.run(5)
    assert sim.phase == "Frozen"
    assert said(sim, "Frozen pods:") == 1
    sim.pods["web"][0].ready_at = sim.now
    sim.run(5)
    assert said(sim, "Deployment web is ready") == 1
    assert sim.condition("CanaryReady")["status"] == "True"


def test_an_unhealthy_primary_takes_nobody_out_of_the_freeze() -> None:
    sim = freeze(begun(**AB))
    for pod in sim.pods["web-primary"]:
        pod.ready_at = None
    sim.run(2000)
    assert sim.phase == "Frozen"
    assert matched(sim) == "web-canary"


# -- another revision --------------------------------------------------------------------------------------------------------


def test_a_fixed_revision_takes_the_place_without_a_moment_of_the_old_one() -> None:
    sim = freeze(begun(**AB))
    sim.script["request-success-rate"] = number(100)
    sim.edit("deployments", "web", image("app:3"))
    while sim.phase != "Promoting":
        sim.run(0.1)
        assert matched(sim) == "web-canary"
        assert sim.behind("web-canary")
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"
    assert not sim.condition("RoutesKept")
    assert sim.status["canaryWeight"] == 0


def test_the_first_check_of_a_replacement_waits_for_a_whole_metric_window() -> None:
    sim = freeze(begun(**AB))
    sim.script["request-success-rate"] = number(100)
    before = len(sim.calls)
    begin = sim.t
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Promoting")
    first = next(t for t, name in sim.calls[before:] if name == "request-success-rate")
    assert first - begin >= 8


def test_hooks_before_a_run_are_called_for_a_replacement_too() -> None:
    hook = {"type": "pre-rollout", "name": "smoke", "url": "http://smoke.test/"}
    sim = freeze(begun(**AB | {"webhooks": [hook]}))
    sim.script["request-success-rate"] = number(100)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")
    assert [name for _, name in sim.calls].count("smoke") == 2


def test_a_replacement_that_fails_is_frozen_again() -> None:
    sim = freeze(begun(**AB))
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    assert (sim.status["failedChecks"], sim.status["iterations"]) == (0, 0)
    sim.run(until="Frozen")
    sim.run(1)
    assert matched(sim) == "web-canary"
    assert said(sim, "Deployment web is frozen") == 2


def test_weights_never_fall_and_a_replacement_passes_as_many_checks_as_any_other() -> None:
    sim = freeze(begun(**WEIGHTS), after=5.0)
    weight = sim.status["canaryWeight"]
    assert weight in (40, 60)
    sim.script["request-success-rate"] = number(100)
    before = len(sim.calls)
    sim.edit("deployments", "web", image("app:3"))
    seen = []
    while sim.phase != "Promoting":
        sim.run(0.1)
        seen.append(sim.traffic()["web-canary"])
    assert min(seen) == weight
    assert sorted(seen) == seen
    checks = [name for _, name in sim.calls[before:]].count("request-success-rate")
    assert checks == 3
    sim.run(until="Succeeded")


def test_the_gate_before_a_run_holds_the_analysis_of_a_replacement() -> None:
    hook = {"type": "confirm-rollout", "name": "start", "url": "http://start.test/"}
    sim = freeze(begun(**AB | {"webhooks": [hook]}))
    sim.script["request-success-rate"] = number(100)
    sim.script["start"] = no()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(20)
    assert sim.phase == "Frozen"
    assert sim.condition("Held")["reason"] == "ConfirmRollout"
    assert matched(sim) == "web-canary"
    sim.script["start"] = yes()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


def test_a_replacement_that_is_withdrawn_at_the_gate_leaves_it_frozen() -> None:
    hook = {"type": "confirm-rollout", "name": "start", "url": "http://start.test/"}
    sim = freeze(begun(**AB | {"webhooks": [hook]}))
    sim.script["start"] = no()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(5)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(20)
    assert sim.phase == "Frozen"
    assert not sim.condition("Held")


def test_a_new_revision_in_mid_run_keeps_the_traffic_where_it_is_under_the_flag() -> None:
    sim = begun(**AB)
    sim.run(2)
    assert matched(sim) == "web-canary"
    sim.edit("deployments", "web", image("app:3"))
    while sim.phase != "Promoting":
        sim.run(0.1)
        assert matched(sim) == "web-canary"
    sim.run(until="Succeeded")


def test_without_the_flag_a_new_revision_in_mid_run_takes_it_back() -> None:
    sim = begun(**AB | {"freezeOnFailure": False})
    sim.run(2)
    sim.edit("deployments", "web", image("app:3"))
    sim.settle()
    assert matched(sim) == "web-primary"


# -- warnings ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "replicas", "word"),
    [
        ({"type": "Recreate"}, 3, "Recreate"),
        ({"rollingUpdate": {"maxUnavailable": 3}}, 3, "all 3 pods"),
        ({"rollingUpdate": {"maxUnavailable": "100%"}}, 2, "all 2 pods"),
        ({}, 1, "one replica"),
        ({}, 3, ""),
        ({"rollingUpdate": {"maxUnavailable": 2}}, 3, ""),
    ],
)
def test_a_target_that_rolls_through_a_moment_without_pods_is_warned_of(
    strategy: JSON, replicas: int, word: str
) -> None:
    sim = Sim()
    sim.add("deployments", deployment(replicas=replicas, strategy=strategy))
    sim.add("canaries", canary(**spec(**AB)))
    sim.run(until="Initialized")
    sim.run(1)
    warned = sim.condition("Warned")
    assert bool(warned) == bool(word)
    assert word in warned.get("message", "")
