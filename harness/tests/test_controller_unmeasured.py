"""A metrics provider under load in a run: 429 and time-outs are neither failed nor passed checks, up to a bound (case C16 is what was measured)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core import decide
from harness.controller.core.analysis import metrics
from harness.controller.core.checkup import Moment, Plan, examine
from harness.controller.core.policy import Policy
from harness.controller.core.scene import Scene
from harness.controller.standing import standing
from harness.tests.controller_runs import INTERVAL, asked, hook, metric, started, weighted
from harness.tests.controller_sim import image_of, no, number, yes
from harness.tests.outside_server import canary

if TYPE_CHECKING:
    from harness.controller.core import Decision, World
    from harness.controller.core.calls import Answer
    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
BUSY = "prometheus:9090 answered 429: slow down"


def busy(wait: float | None = 5.0, at: float = 0.0) -> Answer:
    return metrics.undecided(BUSY, at, "TooManyRequests", wait)


def late(at: float = 0.0) -> Answer:
    return metrics.undecided("no answer from prometheus:9090 within 10 s", at, "TimedOut")


def patient(sim: Sim, seconds: float) -> Sim:
    """Let the controller have that patience."""

    def choose(world: World, canary: JSON, now: float) -> Decision:
        return decide(replace(world, policy=Policy(no_verdict_timeout=seconds)), canary, now)

    sim.decide = choose
    return sim


def warned(sim: Sim) -> list[str]:
    return [text for text in sim.messages() if text.startswith("No verdict")]


def status_writes(sim: Sim) -> int:
    return sim.actions.count(("status", "canaries", "web"))


def counters(sim: Sim) -> tuple[int, int, int, str]:
    status = sim.status
    return (
        status["failedChecks"],
        status["iterations"],
        status["canaryWeight"],
        status["lastTransitionTime"],
    )


# -- one round ---------------------------------------------------------------------------------------------------------------


def round_of(*answers: Answer, since: float | None = None, patience: float = 300.0) -> Any:
    """What comes of metrics that answered so, when the round is looked at a second after the last answer."""
    given = canary(metrics=[metric(f"m{at}") for at in range(len(answers))])
    keys = [
        metrics.call(given, entry, f"o|0|{at}").key
        for at, entry in enumerate(metrics.entries(given))
    ]
    came = dict(zip(keys, answers, strict=True))
    now = max(answer.at for answer in answers) + 1
    moment = Moment(
        given, came, "o", "Progressing", 60.0, now, patience=patience, unmeasured_since=since
    )
    return examine(moment, Plan(checks=True, gates=("confirm-promotion",)))


GOOD, BAD = replace(number(5), at=1000.0), replace(number(0), at=1000.0)


def test_without_a_verdict_the_round_is_made_again_when_the_provider_wants_to_be_asked() -> None:
    found = round_of(busy(7, 1000.0))
    assert (found.outcome, found.undecided, found.name) == ("unmeasured", "TooManyRequests", "m0")
    assert found.message == f"metric m0: query failed: {BUSY}"
    assert found.again_in == 6.0
    # One that does not say when is asked an interval later; of several the last one counts.
    assert round_of(busy(None, 1000.0)).again_in == 59.0
    assert round_of(busy(7, 1000.0), late(1000.0)).again_in == 59.0
    assert round_of(busy(7, 1000.0), busy(9, 1000.0)).again_in == 8.0


def test_when_it_is_time_the_questions_are_new_ones() -> None:
    found = round_of(busy(0.5, 1000.0))
    assert found.outcome == "asking"
    assert found.pending.key.endswith("o|1|0")


def test_a_check_that_fails_decides_whatever_the_others_cannot_tell() -> None:
    found = round_of(busy(7, 1000.0), BAD)
    assert (found.outcome, found.name, found.undecided) == ("failed", "m1", "")
    assert round_of(busy(7, 1000.0), GOOD).outcome == "unmeasured"
    assert round_of(GOOD, busy(7, 1000.0)).outcome == "unmeasured"


def test_patience_ends_by_the_time_of_the_answers() -> None:
    assert round_of(busy(7, 1000.0), since=700.001).outcome == "unmeasured"
    found = round_of(busy(7, 1000.0), since=700.0)
    assert (found.outcome, found.undecided) == ("failed", "TooManyRequests")
    assert found.message.endswith("(no verdict for 300 s, which counts as a failed check)")
    none = round_of(busy(7, 1000.0), GOOD, patience=0.0)
    assert (none.outcome, none.undecided) == ("failed", "")
    assert none.message == f"metric m0: query failed: {BUSY}"


# -- in a run ----------------------------------------------------------------------------------------------------------------


def minute_of(sim: Sim, answer: Answer | None) -> None:
    """Let a run meet a provider that answers so for a minute after its first step."""
    sim.run(INTERVAL + 1.5)
    assert sim.status["iterations"] + sim.status["canaryWeight"] > 0
    sim.script["m"] = answer
    sim.run(60)


@pytest.mark.parametrize("answer", [busy(), busy(None), None], ids=["429", "no time", "hangs"])
@pytest.mark.parametrize("begin", [started, weighted])
def test_a_minute_without_a_verdict_rolls_nothing_back(answer: Answer | None, begin: Any) -> None:
    sim = begin(metrics=[metric("m")], threshold=2, **{"iterations": 4} if begin is started else {})
    sim.run(INTERVAL + 1.5)
    before = counters(sim)
    assert before[1] + before[2] > 0
    sim.script["m"] = answer
    writes = status_writes(sim)
    sim.run(60)
    assert sim.phase == "Progressing"
    assert counters(sim) == before
    # Said once, and nothing written for each round.
    assert status_writes(sim) == writes + 1
    (told,) = warned(sim)
    shown = sim.condition("Unmeasured")
    assert (shown["status"], shown["reason"]) == (
        "True",
        "TimedOut" if answer is None else "TooManyRequests",
    )
    assert "metric m:" in shown["message"]
    assert shown["message"] in told
    assert len(asked(sim, "m")) > 4
    sim.script["m"] = number(5)
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"
    assert sim.status["failedChecks"] == 0
    assert sim.condition("Unmeasured") == {}
    assert len(warned(sim)) == 1


def test_without_patience_it_counts_at_once() -> None:
    """The control: what another controller makes of it."""
    sim = patient(started(metrics=[metric("m")], threshold=2, iterations=4), 0)
    minute_of(sim, busy())
    assert sim.phase == "Failed"
    assert sim.status["failedChecks"] == 2
    assert warned(sim) == []
    assert BUSY in sim.condition("Promoted")["message"]


def test_retry_after_paces_the_rounds_and_without_it_the_interval_does() -> None:
    sim = started(metrics=[metric("m")], iterations=4)
    sim.script["m"] = busy(7)
    sim.run(40)
    times = [t for t, _ in asked(sim, "m")]
    assert len(times) == 6
    gaps = {round(b - a, 2) for a, b in itertools.pairwise(times)}
    assert gaps == {7.1}
    sim.script["m"] = busy(None)
    sim.run(20)
    assert asked(sim, "m")[-1][0] - asked(sim, "m")[-2][0] == pytest.approx(INTERVAL + 0.1)


def test_the_hooks_of_a_round_are_asked_again_with_it_and_gates_only_after_a_verdict() -> None:
    load, gate = hook("rollout", "load"), hook("confirm-promotion", "finish")
    sim = started(load, gate, metrics=[metric("m")], iterations=1)
    sim.script["m"] = busy(3)
    sim.run(20)
    assert len(asked(sim, "load")) == len(asked(sim, "m")) > 3
    assert asked(sim, "finish") == []
    sim.script["load"] = no()
    sim.run(until="Failed")
    assert "load" in sim.condition("Promoted")["message"]


# -- the bound ---------------------------------------------------------------------------------------------------------------


def test_after_the_bound_each_round_counts_until_the_threshold() -> None:
    sim = started(metrics=[metric("m")], threshold=3, iterations=4)
    sim.script["m"] = busy(7)
    sim.run(until="Failed")
    since = 1 + INTERVAL + 0.1  # ready, an interval, and the answer
    spent = sim.t - sim.cuts[0] - since
    # Rounds of 7 s until 300 s are over, then two more at intervals.
    assert 300 <= spent < 300 + 7.1 + 2 * (INTERVAL + 0.1) + 0.2
    assert sim.status["failedChecks"] == 3
    counted = [text for text in sim.messages() if text.startswith("Check ")]
    assert len(counted) == 3
    assert all("no verdict for 300 s, which counts" in text for text in counted)
    assert "no verdict for 300 s" in sim.condition("Promoted")["message"]
    assert len(warned(sim)) == 1
    assert sim.condition("Unmeasured") == {}
    sim.settle()
    assert (image_of(sim.primary), sim.ready_pods("web")) == ("app:1", 0)


def test_a_verdict_starts_the_bound_anew() -> None:
    sim = patient(started(metrics=[metric("m")], threshold=2, iterations=30), 30)
    for _ in range(4):
        sim.script["m"] = busy(4)
        sim.run(25)
        assert sim.condition("Unmeasured")
        sim.script["m"] = number(5)
        sim.run(5)
        assert not sim.condition("Unmeasured")
    assert (sim.phase, sim.status["failedChecks"]) == ("Progressing", 0)
    assert len(warned(sim)) == 4


def test_what_counted_as_failed_for_want_of_a_verdict_keeps_the_condition() -> None:
    sim = patient(started(metrics=[metric("m")], threshold=3, iterations=4), 30)
    sim.script["m"] = late()
    while not sim.status.get("failedChecks"):
        sim.run(1)
    since = sim.condition("Unmeasured")["lastTransitionTime"]
    sim.run(INTERVAL + 0.2)
    assert sim.status["failedChecks"] == 2
    assert sim.condition("Unmeasured")["lastTransitionTime"] == since
    sim.script["m"] = number(5)
    sim.run(until="Succeeded")
    assert (sim.status["failedChecks"], sim.condition("Unmeasured")) == (2, {})


@pytest.mark.parametrize("deadline", [5, 600])
def test_the_progress_deadline_has_nothing_to_say(deadline: int) -> None:
    sim = started(
        metrics=[metric("m")],
        iterations=2,
        spec={
            "progressDeadlineSeconds": deadline,
            "analysis": {
                "interval": "2s",
                "threshold": 2,
                "iterations": 2,
                "metrics": [metric("m")],
            },
        },
    )
    sim.script["m"] = busy()
    sim.run(100)
    assert sim.phase == "Progressing"


# -- interruptions -----------------------------------------------------------------------------------------------------------


def test_a_restart_changes_neither_the_bound_nor_what_was_said() -> None:
    sim = patient(started(metrics=[metric("m")], threshold=2, iterations=4), 100)
    sim.script["m"] = busy(10)
    sim.run(60)
    before, writes = sim.condition("Unmeasured"), status_writes(sim)
    count = len(asked(sim, "m"))
    sim.restart()
    sim.run(1)
    # What was answered is lost, so it is asked at once; nothing is written for it.
    assert len(asked(sim, "m")) == count + 1
    assert (sim.condition("Unmeasured"), status_writes(sim)) == (before, writes)
    sim.run(until="Failed")
    assert 100 <= sim.t - sim.cuts[0] - 3.1 < 100 + 10.2 + INTERVAL + 0.3
    assert len(warned(sim)) == 1


def test_killed_after_any_write_it_ends_the_same() -> None:
    ends = set()
    for kill_after in (None, *range(1, 12)):
        sim = started(metrics=[metric("m")], threshold=2, iterations=3)
        sim.script["m"] = busy(5)
        sim.kill_after = kill_after
        sim.run(60)
        assert sim.phase == "Progressing"
        assert sim.condition("Unmeasured")
        sim.script["m"] = number(5)
        sim.run(until="Succeeded")
        ends.add((image_of(sim.primary), sim.status["failedChecks"], len(warned(sim))))
    assert ends == {("app:2", 0, 1)}


def test_readiness_that_is_lost_and_a_suspension_end_it() -> None:
    sim = patient(started(metrics=[metric("m")], threshold=2, iterations=9), 60)
    sim.script["m"] = busy(5)
    sim.run(50)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(1)
    assert sim.condition("Unmeasured") == {}
    writes = status_writes(sim)
    sim.run(500)
    assert status_writes(sim) == writes
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(50)
    assert sim.status["failedChecks"] == 0
    assert sim.condition("Unmeasured")
    sim.pods["web"].clear()
    sim.run(0.5)
    assert sim.condition("CanaryReady")["status"] == "False"
    assert sim.condition("Unmeasured") == {}
    sim.run(50)
    assert (sim.phase, sim.status["failedChecks"]) == ("Progressing", 0)


def test_a_mixed_run_counts_only_what_was_measured() -> None:
    sim = started(metrics=[metric("m")], threshold=3, iterations=3)
    seen = []
    for answer in (busy(2), no(), late(), number(5), busy(None), no("boom"), busy(2), number(5)):
        sim.script["m"] = answer
        sim.run(INTERVAL + 0.1)
        seen.append((sim.status["failedChecks"], sim.status["iterations"]))
    assert seen[-1] == (2, 2)
    assert seen == sorted(seen)
    sim.script["m"] = number(5)
    sim.run(until="Succeeded")
    assert sim.status["failedChecks"] == 2


def test_while_a_gate_is_closed_it_is_said_as_well_and_taken_back() -> None:
    sim = started(hook("confirm-promotion", "finish"), metrics=[metric("m")], iterations=1)
    sim.script["finish"] = no()
    sim.run(until="WaitingPromotion")
    sim.script["m"] = busy(5)
    sim.run(30)
    assert sim.condition("Unmeasured")["reason"] == "TooManyRequests"
    assert sim.condition("Held")["reason"] == "ConfirmPromotion"
    sim.script["m"] = number(5)
    sim.run(10)
    assert sim.condition("Unmeasured") == {}
    assert sim.condition("Held")
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")


def test_webhooks_are_not_concerned() -> None:
    sim = started(hook("rollout", "load"), threshold=2, iterations=4)
    sim.script["load"] = None
    sim.run(until="Failed")
    assert warned(sim) == []


def test_an_explanation_says_since_when() -> None:
    sim = started(metrics=[metric("m")], iterations=4)
    sim.script["m"] = busy(5)
    sim.run(23.1)
    lines = standing(Scene(sim.world(), sim.canary, sim.now))
    (line,) = [line for line in lines if "verdict" in line]
    assert line.startswith("a check has had no verdict for 20 s (TooManyRequests): metric m: ")
    sim.script["m"] = number(5)
    sim.run(6)
    assert not [
        line for line in standing(Scene(sim.world(), sim.canary, sim.now)) if "verdict" in line
    ]
