"""Webhooks of every type in virtual time: when they are called, what they are told, what a failure does (spec canary-api 6)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.tests.controller_runs import (
    INTERVAL,
    asked,
    hook,
    metric,
    phases_told,
    prepared,
    severities,
    started,
    weighted,
)
from harness.tests.controller_sim import Sim, image, image_of, no, number, yes

JSON = dict[str, Any]
START_GATE = hook("confirm-rollout", "start")
SMOKE = hook("pre-rollout", "smoke")
MORE = hook("confirm-traffic-increase", "more")
FINISH = hook("confirm-promotion", "finish")
UNDO = hook("rollback", "undo")
AFTER = hook("post-rollout", "after")


# -- confirm-rollout ---------------------------------------------------------------------------------------------------------


def closed(*hooks: JSON) -> Sim:
    sim = started(START_GATE, *hooks)
    sim.script["start"] = no()
    sim.run(until="Waiting")
    return sim


def test_confirm_rollout_holds_the_start_and_is_asked_once_an_interval() -> None:
    sim = closed()
    applied = sim.status["lastAppliedSpec"]
    sim.run(9)
    assert (sim.phase, sim.ready_pods("web")) == ("Waiting", 0)
    assert sim.target["spec"]["replicas"] == 0
    assert sim.status["lastAppliedSpec"] == applied
    times = [t for t, _ in asked(sim, "start")]
    assert len(times) == 5
    assert all(later - earlier >= INTERVAL for earlier, later in itertools.pairwise(times))
    assert phases_told(sim, "start") == ["Initialized", *["Waiting"] * 4]
    assert severities(sim) == [("warn", "Waiting for")]
    assert sim.condition("Held")["reason"] == "ConfirmRollout"
    sim.script["start"] = yes()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"
    assert sim.condition("Held") == {}


def test_no_revision_no_question() -> None:
    sim = prepared(START_GATE, UNDO)
    sim.run(100)
    assert sim.calls == []


def test_a_gate_that_is_removed_lets_the_run_start() -> None:
    sim = closed()
    sim.edit("canaries", "web", {"spec": {"analysis": {"webhooks": []}}})
    sim.run(INTERVAL + 0.5)
    assert sim.phase == "Progressing"


def test_a_waiting_revision_that_is_taken_back_is_withdrawn() -> None:
    sim = closed()
    sim.edit("deployments", "web", image("app:1"))
    sim.run(0.5)
    assert sim.phase == "Succeeded"
    assert [text for text in sim.messages() if "withdrawn" in text]
    before = len(sim.calls), len(sim.actions)
    sim.run(100)
    assert (len(sim.calls), len(sim.actions)) == before
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Waiting")


@pytest.mark.parametrize(("back", "phase"), [("app:1", "Succeeded"), ("app:2", "Failed")])
def test_after_a_failure_a_waiting_revision_can_be_taken_back_too(back: str, phase: str) -> None:
    sim = started(START_GATE, hook("rollout", "load"))
    sim.script["load"] = no()
    sim.run(until="Failed")
    sim.script["start"] = no()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Waiting")
    sim.edit("deployments", "web", image(back))
    sim.run(until=phase)
    sim.script["start"] = yes()
    sim.run(60)
    assert (sim.phase, image_of(sim.primary)) == (phase, "app:1")
    assert sim.phases().count("Progressing") == 1
    sim.script["load"] = yes()
    sim.edit("deployments", "web", image("app:4"))
    sim.run(until="Progressing")
    sim.run(until="Succeeded")


def test_a_change_while_waiting_is_asked_about_anew() -> None:
    sim = closed()
    sim.edit("deployments", "web", image("app:3"))
    sim.script["start"] = yes()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"
    assert sim.phases().count("Progressing") == 1


def test_a_rollback_hook_rejects_a_revision_that_waits() -> None:
    """Deviation P5."""
    sim = closed(UNDO, AFTER)
    sim.script["undo"] = yes()
    sim.run(until="Failed")
    sim.run(60)
    assert sim.condition("Promoted")["reason"] == "RollbackHook"
    assert phases_told(sim, "undo") == ["Waiting"]
    assert phases_told(sim, "after") == ["Failed"]
    assert severities(sim)[-1] == ("warn", "Rolling back")
    assert (sim.phase, image_of(sim.primary), sim.ready_pods("web")) == ("Failed", "app:1", 0)
    sim.script["undo"] = no()
    sim.script["start"] = yes()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")


# -- pre-rollout and rollout -------------------------------------------------------------------------------------------------


def test_pre_rollout_comes_once_and_before_any_traffic() -> None:
    sim = weighted(SMOKE, metrics=[metric("m")])
    sim.run(until="Succeeded")
    assert [name for _, name in asked(sim)][:2] == ["smoke", "m"]
    assert phases_told(sim, "smoke") == ["Progressing"]
    called = asked(sim, "smoke")[0][0] + sim.cuts[0]
    assert next(t for t, weight in sim.weights if weight == 20) > called


def test_pre_rollout_that_fails_counts_once_an_interval_and_blocks_traffic() -> None:
    sim = weighted(SMOKE, threshold=3)
    sim.script["smoke"] = no("answered 500: no route")
    sim.run(until="Failed")
    times = [t for t, _ in asked(sim, "smoke")]
    assert len(times) == 3
    assert times[1] - times[0] >= INTERVAL
    assert times[2] - times[1] >= INTERVAL
    assert {weight for _, weight in sim.weights} == {0}
    assert sim.status["failedChecks"] == 3
    assert [m for m in sim.messages() if "Check 1 of 3" in m and "no route" in m]


def test_pre_rollout_that_fails_once_goes_on_with_its_count() -> None:
    sim = started(SMOKE)
    sim.script["smoke"] = no()
    sim.run(1.5)
    sim.script["smoke"] = yes()
    sim.run(until="Succeeded")
    assert phases_told(sim, "smoke") == ["Progressing"] * 2
    assert sim.status["failedChecks"] == 1


def test_a_restart_smokes_again() -> None:
    sim = started(SMOKE, iterations=4)
    sim.run(4)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")
    assert len(asked(sim, "smoke")) == 2


@pytest.mark.parametrize("kind", ["rollout", ""])
def test_rollout_hooks_come_before_the_metrics_and_the_first_that_fails_ends_the_round(
    kind: str,
) -> None:
    sim = started(hook(kind, "a"), hook(kind, "b"), metrics=[metric("m")])
    sim.script["b"] = no()
    sim.run(4)
    assert [name for _, name in asked(sim)] == ["a", "b"]
    sim.script["b"] = yes()
    sim.run(until="Succeeded")
    assert [name for _, name in asked(sim)][2:] == ["a", "b", "m"] * 2
    assert set(phases_told(sim, "a")) == {"Progressing"}


# -- confirm-traffic-increase ------------------------------------------------------------------------------------------------


def test_confirm_traffic_increase_is_asked_before_every_weight_and_before_the_promotion() -> None:
    sim = weighted(MORE)
    sim.run(until="Succeeded")
    assert len(asked(sim, "more")) == 4  # 20, 40, 60, promotion


def test_no_traffic_gate_without_weights() -> None:
    sim = started(MORE)
    sim.run(until="Succeeded")
    assert asked(sim) == []


@pytest.mark.parametrize("weight", [0, 20])
def test_a_closed_traffic_gate_holds_the_weight_is_asked_once_an_interval_and_said_once(
    weight: int,
) -> None:
    """Deviation P6."""
    sim = weighted(MORE, metrics=[metric("m")])
    if weight:
        sim.run(2)
        assert sim.status["canaryWeight"] == weight
    sim.script["more"] = no()
    sim.run(20)
    assert (sim.phase, sim.status["canaryWeight"]) == ("Progressing", weight)
    assert sim.condition("Held")["reason"] == "ConfirmTrafficIncrease"
    assert sim.status["failedChecks"] == 0
    times = [t for t, _ in asked(sim, "more")]
    assert all(later - earlier >= INTERVAL for earlier, later in itertools.pairwise(times))
    assert 8 <= len(times) <= 11
    assert [s for s, _ in severities(sim)] == ["info", "warn"]
    assert bool(asked(sim, "m")) is bool(weight)
    sim.script["more"] = yes()
    sim.run(until="Succeeded")
    assert not sim.condition("Held")


def test_c15_the_threshold_applies_while_the_traffic_gate_is_closed() -> None:
    """Case C15: step 10, max 50, threshold 3; from weight 10 on the gate answers 500 and the metric violates its range."""
    sim = weighted(MORE, UNDO, stepWeight=10, maxWeight=50, threshold=3, metrics=[metric("m")])
    while sim.status.get("canaryWeight") != 10:
        sim.run(0.1)
    sim.script |= {"more": no("answered 500"), "m": number(0)}
    sim.run(until="Failed")
    assert sim.status["failedChecks"] == 3
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}
    sim.settle()
    assert sim.ready_pods("web") == 0
    assert max(weight for _, weight in sim.weights) == 10


def test_c15_the_threshold_applies_while_the_promotion_gate_is_closed() -> None:
    sim = weighted(FINISH, stepWeight=10, maxWeight=50, threshold=3, metrics=[metric("m")])
    sim.script["finish"] = no()
    sim.run(until="WaitingPromotion")
    sim.script["m"] = number(0)
    sim.run(until="Failed")
    assert sim.status["failedChecks"] == 3
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}
    assert severities(sim)[-1] == ("error", "Rolling back")


# -- confirm-promotion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_confirm_promotion_keeps_the_counters_and_goes_on_checking(n: int) -> None:
    """Deviation P7; with n = 1 no hook of the beginning comes back."""
    sim = started(SMOKE, FINISH, iterations=n, metrics=[metric("m")])
    sim.script["finish"] = no()
    sim.run(until="WaitingPromotion")
    assert sim.status["iterations"] == n
    assert sim.condition("Held")["reason"] == "ConfirmPromotion"
    before = len(asked(sim))
    sim.run(10)
    assert (sim.phase, sim.status["iterations"]) == ("WaitingPromotion", n)
    assert [name for _, name in asked(sim)][before:] == ["m", "finish"] * 4
    assert set(phases_told(sim, "finish")) == {"Progressing"}
    assert severities(sim) == [("info", "New revision"), ("warn", "Waiting for")]
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")
    assert len(asked(sim, "smoke")) == 1


def test_confirm_promotion_keeps_the_weight_and_asks_for_no_more_traffic() -> None:
    sim = weighted(MORE, FINISH)
    sim.script["finish"] = no()
    sim.run(until="WaitingPromotion")
    before = len(asked(sim, "more"))
    sim.run(10)
    assert sim.status["canaryWeight"] == 60
    assert sim.traffic() == {"web-primary": 40, "web-canary": 60}
    assert len(asked(sim, "more")) == before
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")


def test_an_open_promotion_gate_is_asked_once() -> None:
    sim = started(FINISH)
    sim.run(until="Succeeded")
    assert len(asked(sim, "finish")) == 1


def test_behind_a_route_blue_green_asks_before_all_traffic_moves() -> None:
    sim = weighted(FINISH, stepWeight=None, maxWeight=None, iterations=2)
    sim.script["finish"] = no()
    sim.run(until="WaitingPromotion")
    sim.run(10)
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}
    sim.script["finish"] = yes()
    calls = len(asked(sim, "finish"))
    sim.run(until="Succeeded")
    assert len(asked(sim, "finish")) == calls + 1


# -- rollback ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [0.0, 1.5, 3.5, 5.5])
@pytest.mark.parametrize("gate", ["", "smoke", "more", "finish"])
def test_a_rollback_hook_is_heard_at_every_step(gate: str, when: float) -> None:
    sim = weighted(SMOKE, MORE, FINISH, UNDO, AFTER, threshold=9, maxWeight=40)
    if gate:
        sim.script[gate] = no()
    sim.run(until="Progressing")
    sim.run(when)
    sim.script["undo"] = yes()
    told = sim.phase
    sim.run(INTERVAL * 2)
    assert sim.phase == "Failed"
    assert sim.condition("Promoted")["reason"] == "RollbackHook"
    assert phases_told(sim, "undo")[-1] == told
    assert severities(sim)[-1] == ("warn", "Rolling back")
    assert sim.traffic() == {"web-primary": 100, "web-canary": 0}
    sim.run(1)
    assert phases_told(sim, "after") == ["Failed"]
    assert (image_of(sim.primary), sim.ready_pods("web")) == ("app:1", 0)


def test_the_first_rollback_hook_that_agrees_decides() -> None:
    sim = started(UNDO, hook("rollback", "too"))
    sim.script["undo"] = yes()
    sim.run(until="Failed")
    assert [name for _, name in asked(sim)] == ["undo"]


def test_no_rollback_hook_is_asked_once_the_primary_rolls() -> None:
    sim = started(UNDO)
    sim.delay = lambda name, _template, _index: 15.0 if name == "web-primary" else 1.0
    sim.run(until="Promoting")
    before = len(asked(sim))
    sim.run(until="Succeeded")
    assert len(asked(sim)) == before


# -- post-rollout ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skip", [False, True], ids=["analysed", "skipped"])
def test_post_rollout_comes_once_after_success(*, skip: bool) -> None:
    """With skipAnalysis too: case C12."""
    sim = prepared(AFTER)
    sim.cuts.append(sim.t)
    sim.edit("canaries", "web", {"spec": {"skipAnalysis": skip}})
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert asked(sim) == []
    sim.run(100)
    assert phases_told(sim, "after") == ["Succeeded"]
    assert sim.condition("PostRollout")["status"] == "True"
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    assert not sim.condition("PostRollout")
    sim.run(until="Succeeded")
    sim.run(1)
    assert len(asked(sim)) == 2


def test_post_rollout_that_fails_is_said_and_changes_nothing_else() -> None:
    sim = started(AFTER, hook("post-rollout", "later"))
    sim.script["after"] = no("answered 500")
    sim.run(until="Succeeded")
    sim.run(100)
    assert [name for _, name in asked(sim)] == ["after"]
    assert sim.phase == "Succeeded"
    told = sim.condition("PostRollout")
    assert (told["status"], told["reason"]) == ("False", "HookFailed")
    assert len([m for m in sim.messages() if "Post-rollout hook failed: after" in m]) == 1


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_post_rollout_that_is_pending_survives_a_restart(end: str) -> None:
    sim = started(AFTER, hook("rollout", "load"))
    sim.script["after"] = None
    if end == "Failed":
        sim.script["load"] = no()
    sim.run(until=end)
    sim.run(1)
    assert len(asked(sim, "after")) == 1
    sim.restart()
    sim.script["after"] = yes()
    sim.run(60)
    assert phases_told(sim, "after") == [end, end]
    sim.restart()
    sim.run(60)
    assert len(asked(sim, "after")) == 2


def test_a_new_revision_waits_for_the_post_rollout_hooks_but_not_longer_than_they_may_take() -> (
    None
):
    sim = started(AFTER)
    sim.script["after"] = None
    sim.run(until="Succeeded")
    sim.run(1)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(sim.outside.timeout)
    assert sim.phase == "Progressing"
    assert len(asked(sim, "after")) == 1


def test_hooks_of_type_event_are_told_of_events_and_never_asked() -> None:
    sim = started(hook("event", "listener"))
    sim.run(until="Succeeded")
    assert sim.calls == []
