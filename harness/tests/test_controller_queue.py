"""A limit on analyses, seen from one Canary: joining the line, waiting, its turn, and nothing else without one (deviation D4)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from harness.controller.core import conditions as cond
from harness.controller.core import decide, line
from harness.controller.core.policy import Policy
from harness.tests.controller_limited import (
    FAR,
    FIRST,
    LIMIT,
    THIRD,
    Limited,
    limited,
    queued,
    release,
    told,
    waiting,
)
from harness.tests.controller_runs import asked, hook, metric
from harness.tests.controller_sim import (
    START,
    Sim,
    canary,
    deployment,
    image,
    image_of,
    no,
    running,
    yes,
)
from harness.tests.controller_stories_routed import GATEWAY

JSON = dict[str, Any]
START_GATE = hook("confirm-rollout", "start")
MORE = hook("confirm-traffic-increase", "more")
FINISH = hook("confirm-promotion", "finish")
UNDO = hook("rollback", "undo")
STEPS: JSON = {"stepWeight": 20, "maxWeight": 60, "iterations": 0}


# -- before a start ----------------------------------------------------------------------------------------------------------


def test_who_waits_says_so_once_and_nothing_else_happens() -> None:
    sim = queued()
    before, wrote = sim.status["lastAppliedSpec"], len(sim.actions)
    sim.run(FAR)
    entry = waiting(sim)
    assert (entry["status"], entry["reason"]) == ("True", "StartLimit")
    assert entry["message"] == (
        f"Deployment web has a new revision; {LIMIT}: it waits for its turn, as number 3 of 7 when it joined the line"
    )
    assert line.entrant(sim.canary, FAR).seen == pytest.approx(START + sim.cuts[0])
    assert sim.phase == "Initialized"
    assert sim.condition("Promoted")["status"] == "True"
    assert sim.status["lastAppliedSpec"] == before, "it would be lost (D1)"
    assert sim.target["spec"]["replicas"] == 0
    assert len(sim.actions) == wrote
    assert len(told(sim, "Waiting for its turn")) == 1
    assert not told(sim, "New revision")


def test_its_turn_begins_the_run_and_ends_the_condition() -> None:
    sim = queued()
    sim.run(FAR)
    since = waiting(sim)["lastTransitionTime"]
    sim.give()
    sim.run(until="Progressing")
    assert waiting(sim) == {}
    assert told(sim, "The turn of") == [f"The turn of web has come; it waited since {since}"]
    assert told(sim, "New revision") == ["New revision of web found: scaling it up"]
    assert line.holds(sim.canary)
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


def test_with_a_free_slot_nothing_is_said() -> None:
    sim = limited()
    release(sim)
    sim.run(until="Succeeded")
    assert not told(sim, "Waiting for its turn")
    assert not told(sim, "The turn of")
    assert "Queued" not in str(sim.status)
    assert sim.asked


def test_another_revision_keeps_the_place_and_is_the_one_that_is_analysed() -> None:
    sim = queued()
    sim.run(10)
    entry, wrote = waiting(sim), len(sim.actions)
    release(sim, "app:3")
    sim.run(10)
    assert waiting(sim) == entry
    assert len(sim.actions) == wrote
    sim.give()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"
    assert sim.phases().count("Progressing") == 1


def test_a_change_that_is_taken_back_leaves_the_line() -> None:
    sim = queued()
    release(sim, "app:1")
    sim.run(10)
    assert waiting(sim) == {}
    assert sim.phase == "Initialized"
    sim.give()
    sim.run(FAR)
    assert sim.phase == "Initialized"
    assert not told(sim, "New revision")


def test_with_nothing_to_run_it_leaves_the_line_too() -> None:
    sim = queued()
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 0}})
    sim.run(5)
    assert waiting(sim) == {}
    assert "hold-start" in sim.rows
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 3}})
    sim.run(5)
    assert waiting(sim)["reason"] == "StartLimit"


def test_a_pass_that_nobody_answered_only_asks() -> None:
    sim = limited()
    release(sim)
    found = decide(sim.world(), sim.canary, sim.now)
    assert found.asks_turn
    assert (found.writes, found.notes, found.status, found.calls) == ((), (), None, ())


def test_a_controller_without_the_limit_starts_what_another_one_queued() -> None:
    sim = queued()
    sim.limited = False
    sim.give(THIRD)
    sim.run(until="Progressing")
    assert waiting(sim) == {}


def test_a_repair_after_a_failure_waits_like_any_start() -> None:
    sim = limited()
    sim.script["m"] = no()
    sim.edit("canaries", "web", {"spec": {"analysis": {"metrics": [metric("m")]}}})
    release(sim)
    sim.run(until="Failed")
    sim.turn = THIRD
    release(sim, "app:3")
    sim.run(FAR)
    assert sim.phase == "Failed"
    assert waiting(sim)["reason"] == "StartLimit"
    assert sim.condition("Promoted")["status"] == "False"


def test_the_deadline_of_a_start_counts_from_the_start() -> None:
    slow = lambda name, template, index: 15.0 if name == "web" else 1.0  # noqa: E731, ARG005
    sim = queued(delay=slow)
    sim.run(FAR)
    sim.give()
    sim.run(until="Succeeded")


# -- the gate before a start -------------------------------------------------------------------------------------------------


def test_the_gate_comes_first_and_is_asked_again_when_the_turn_has_come() -> None:
    sim = queued(webhooks=[START_GATE])
    sim.run(FAR)
    assert [name for _, name in asked(sim, "start")] == ["start"], "nothing is asked in the line"
    sim.give()
    sim.run(until="Progressing")
    assert len(asked(sim, "start")) == 2


def test_a_gate_that_has_closed_meanwhile_takes_it_out_of_the_line() -> None:
    sim = queued(webhooks=[START_GATE])
    sim.run(10)
    sim.script["start"] = no()
    sim.give()
    sim.run(until="Waiting")
    assert waiting(sim) == {}
    assert sim.condition("Held")["reason"] == "ConfirmRollout"
    # And from there into the line again, with the time at which the wait began.
    began = sim.condition("Promoted")["lastUpdateTime"]
    sim.run(30)
    sim.turn = THIRD
    sim.script["start"] = yes()
    sim.run(10)
    assert sim.phase == "Waiting"
    assert (waiting(sim)["reason"], waiting(sim)["lastTransitionTime"]) == ("StartLimit", began)
    assert sim.condition("Held") == {}
    many = len(asked(sim, "start"))
    sim.run(FAR)
    assert len(asked(sim, "start")) == many
    sim.script["start"] = no()
    sim.give()
    sim.run(30)
    assert (sim.phase, sim.condition("Held")["reason"]) == ("Waiting", "ConfirmRollout")
    assert waiting(sim) == {}
    sim.script["start"] = yes()
    sim.run(until="Succeeded")


def test_a_change_that_is_withdrawn_in_phase_waiting_leaves_the_line() -> None:
    sim = limited(webhooks=[START_GATE])
    sim.script["start"] = no()
    release(sim)
    sim.run(until="Waiting")
    sim.turn = THIRD
    sim.script["start"] = yes()
    sim.run(10)
    assert waiting(sim)
    release(sim, "app:1")
    sim.run(until="Succeeded")
    assert waiting(sim) == {}


# -- the first check ---------------------------------------------------------------------------------------------------------


def gaps(sim: Sim, name: str) -> list[float]:
    """Seconds from readiness to the first check of metric m, and from each to the next."""
    release(sim, name)
    sim.run(3)
    ready = float(START)
    while sim.phase != "Succeeded":
        sim.run(0.5)
        if sim.condition("CanaryReady").get("reason") == "Ready":
            ready = cond.since(sim.status, "CanaryReady") or ready
    times = [t for t, name in sim.calls if name == "m"]
    return [
        round(times[0] - (ready - START), 3),
        *(b - a for a, b in itertools.pairwise(times)),
    ]


def test_only_the_first_check_is_delayed_by_at_most_a_tenth_of_the_interval() -> None:
    every: JSON = {"metrics": [metric("m")], "iterations": 3, "interval": "10s"}
    delays = set()
    for name in ("app:2", "app:3", "app:4", "app:5"):
        first, *others = gaps(limited(**every), name)
        assert first == gaps(limited(**every), name)[0], "the same for the same run"
        assert 10 <= first <= 11.002
        delays.add(first)
        assert all(10 <= gap <= 10.2 for gap in others)
    assert len(delays) == 4
    assert max(delays) - min(delays) > 0.1


def test_without_a_limit_the_first_check_comes_after_one_interval() -> None:
    sim = limited(metrics=[metric("m")], iterations=3, interval="10s")
    sim.limited = False
    assert gaps(sim, "app:2")[0] == pytest.approx(10, abs=0.002)


def test_the_delay_differs_by_canary_and_by_revision() -> None:
    found = {
        line.jitter({"metadata": {"uid": uid}}, revision) for uid in "abcdef" for revision in "xyz"
    }
    assert len(found) == 18
    assert all(0 <= part < line.MOST_JITTER for part in found)
    assert max(found) - min(found) > line.MOST_JITTER / 2


# -- priority ----------------------------------------------------------------------------------------------------------------


def test_a_priority_that_is_no_number_is_ignored_and_said() -> None:
    sim = limited()
    for value in ("10", "-1", "", None):
        sim.edit("canaries", "web", {"metadata": {"annotations": {line.PRIORITY: value}}})
        sim.settle()
        assert bool(sim.condition("Warned")) is (value == "")
    sim.edit("canaries", "web", {"metadata": {"annotations": {line.PRIORITY: "high"}}})
    sim.settle()
    assert line.priority(sim.canary) == 0
    assert sim.condition("Warned")["message"] == (
        "Annotation rollout-drill/priority is 'high', which is no whole number such as 0 or 10: it is ignored."
    )
    sim.limited = False
    sim.settle()
    sim._idle_at = None
    sim.settle()
    assert sim.condition("Warned") == {}, "without a limit nobody reads it"


# -- nothing changes without a limit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blue-green", "weights", "gates"])
def test_with_slots_to_spare_a_run_differs_in_nothing_but_the_first_check(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And without a limit it is not even asked: the control for everything above."""
    monkeypatch.setattr(line, "MOST_JITTER", 0.0)
    hooks: dict[str, JSON] = {
        "blue-green": {"metrics": [metric("m")]},
        "weights": STEPS | {"metrics": [metric("m")]},
        "gates": STEPS | {"webhooks": [START_GATE, MORE, FINISH, UNDO]},
    }
    spec = {} if kind == "blue-green" else GATEWAY
    plain, spare = (limited(spec=spec, **hooks[kind]) for _ in range(2))
    plain.limited = False
    for sim in (plain, spare):
        sim.script |= {"start": no(), "more": no(), "finish": no()} if kind == "gates" else {}
        release(sim)
        sim.run(10)
        for name in list(sim.script):
            sim.script[name] = yes()
            sim.run(10)
        sim.run(until="Succeeded")
    assert plain.history == spare.history
    assert plain.actions == spare.actions
    assert plain.calls == spare.calls
    assert plain.messages() == spare.messages()
    assert plain.status == spare.status
    assert (plain.asked, spare.asked > 0) == (0, True)


def test_the_first_sight_of_a_canary_needs_no_turn() -> None:
    sim = Limited()
    sim.turn = THIRD
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    assert not sim.asked


def test_the_policy_says_whether_anything_is_limited() -> None:
    assert not Policy().limited
    assert Policy(most_analyses=1).limited
    assert Policy(most_analyses_per_namespace=1).limited
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    world = replace(sim.world(), policy=Policy(most_analyses_per_namespace=3), turn=FIRST)
    assert decide(world, sim.canary, sim.now).row == "start"
