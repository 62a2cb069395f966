"""Metrics in a run: what counts as a failed check, how many there may be, and what is said (spec canary-api 5, case C16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.analysis import metrics
from harness.tests.controller_runs import INTERVAL, asked, hook, metric, started, weighted
from harness.tests.controller_sim import image, image_of, no, number

if TYPE_CHECKING:
    from harness.controller.core.calls import Answer
    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
EMPTY = metrics.answered(None, 0.0)
NAN = metrics.answered(float("nan"), 0.0)
BROKEN = metrics.failed("Prometheus answered 500", 0.0)


def failing(sim: Sim) -> list[str]:
    return [text for text in sim.messages() if text.startswith("Check ")]


def good(sim: Sim, count: int) -> None:
    """Let that many steps of the analysis pass."""
    while len(asked(sim, "m")) < count or sim.status["failedChecks"]:
        sim.run(0.1)
    sim.run(0.2)


# -- case C16 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [1, 2, 4])
@pytest.mark.parametrize(
    ("answer", "before", "words"),
    [
        (EMPTY, 0, "no values"),
        (EMPTY, 2, "no values"),
        (NAN, 0, "no values"),
        (BROKEN, 0, "query failed"),
    ],
    ids=["a: empty", "b: empty after two good ones", "c: NaN", "d: HTTP 500"],
)
def test_c16_no_data_is_a_failed_check(
    answer: Answer, before: int, words: str, threshold: int
) -> None:
    sim = started(metrics=[metric("m")], threshold=threshold, iterations=9)
    good(sim, before)
    sim.script["m"] = answer
    sim.run(until="Failed")
    assert sim.status["failedChecks"] == threshold
    assert len(asked(sim, "m")) == before + threshold
    texts = failing(sim)
    assert len(texts) == threshold
    assert all("metric m" in text and words in text for text in texts)
    assert sim.status["iterations"] == before
    sim.settle()
    assert (image_of(sim.primary), sim.ready_pods("web")) == ("app:1", 0)


def test_c16_e_an_empty_list_asks_nothing() -> None:
    sim = started(metrics=[])
    sim.run(until="Succeeded")
    assert sim.calls == []


# -- thresholds --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "value", "passes"),
    [
        ({"min": 99}, 99, True),
        ({"min": 99}, 98.9, False),
        ({"max": 500}, 500, True),
        ({"max": 500}, 500.1, False),
        ({"min": 1, "max": 2}, 1.5, True),
        ({"min": 1, "max": 2}, 3, False),
        ({}, -7, True),
    ],
)
def test_a_value_passes_within_both_bounds(limits: JSON, value: float, *, passes: bool) -> None:
    sim = started(metrics=[metric("m", thresholdRange=limits)], threshold=1)
    sim.script["m"] = number(value)
    sim.run(until="Succeeded" if passes else "Failed")


@pytest.mark.parametrize(
    ("name", "value", "passes"),
    [
        ("request-success-rate", 99, True),
        ("request-success-rate", 98, False),
        ("request-duration", 99, True),
        ("request-duration", 100, False),
    ],
)
def test_a_legacy_threshold_is_a_minimum_for_the_success_rate_alone(
    name: str, value: float, *, passes: bool
) -> None:
    sim = weighted(metrics=[{"name": name, "threshold": 99}], threshold=1)
    sim.script[name] = number(value)
    sim.run(until="Succeeded" if passes else "Failed")


# -- how they count ----------------------------------------------------------------------------------------------------------


def test_failed_checks_add_up_and_a_passing_one_lowers_nothing() -> None:
    sim = started(metrics=[metric("m")], threshold=3, iterations=9)
    good(sim, 1)
    counts = []
    for answer in (no(), number(5), no(), number(5), no()):
        sim.script["m"] = answer
        sim.run(INTERVAL + 0.1)
        counts.append(sim.status["failedChecks"])
    assert counts == [1, 1, 2, 2, 3]
    assert sim.phase == "Failed"
    assert sim.status["iterations"] == 3


def test_failed_checks_below_the_threshold_stay_in_the_status_of_a_success() -> None:
    sim = started(metrics=[metric("m")])
    sim.script["m"] = no()
    sim.run(4)
    sim.script["m"] = number(5)
    sim.run(until="Succeeded")
    assert sim.status["failedChecks"] == 1
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    assert sim.status["failedChecks"] == 0


def test_a_threshold_that_is_reached_rolls_back_at_once() -> None:
    sim = started(metrics=[metric("m")], threshold=2, iterations=9)
    sim.script["m"] = no()
    sim.run(until="Failed")
    (first, _), (second, _) = asked(sim)
    assert second - first == pytest.approx(INTERVAL + 0.1, abs=0.01)
    assert sim.t - sim.cuts[0] == pytest.approx(second + 0.1, abs=0.01)


def test_a_threshold_that_is_reached_rolls_back_although_pods_are_not_ready() -> None:
    sim = started(metrics=[metric("m")], threshold=1, iterations=9)
    sim.script["m"] = no()

    def lose_pods(_patch: JSON) -> None:
        if _patch.get("failedChecks"):
            sim.pods["web"].clear()

    sim.before_status = lose_pods
    sim.run(5)
    assert sim.phase == "Failed"


def test_a_check_that_fails_costs_an_interval_and_no_weight() -> None:
    sim = weighted(metrics=[metric("m")], threshold=3)
    good(sim, 1)
    weight = sim.status["canaryWeight"]
    sim.script["m"] = no()
    sim.run(INTERVAL)
    assert (sim.status["canaryWeight"], sim.status["failedChecks"]) == (weight, 1)
    sim.script["m"] = number(5)
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


def test_built_in_and_inline_metrics_come_before_templates_and_the_first_failure_ends_the_round() -> (
    None
):
    template = {"name": "t", "templateRef": {"name": "tpl"}, "thresholdRange": {"min": 1}}
    sim = weighted(
        hook("rollout", "load"),
        metrics=[template, metric("m"), {"name": "request-duration", "threshold": 500}],
    )
    sim.script["m"] = number(0)
    sim.run(4)
    assert [name for _, name in asked(sim)] == ["load", "m"]
    sim.script["m"] = number(5)
    sim.run(INTERVAL + 1)
    assert [name for _, name in asked(sim)][2:6] == ["load", "m", "request-duration", "t"]


def test_each_iteration_measures_anew_and_nothing_is_measured_before_the_first_interval() -> None:
    sim = started(metrics=[metric("m")], iterations=3)
    sim.run(until="Succeeded")
    times = [t for t, _ in asked(sim)]
    assert len(times) == 3
    assert times[0] == pytest.approx(1 + INTERVAL, abs=0.01)
    assert times[1] - times[0] == pytest.approx(INTERVAL + 0.1, abs=0.01)


def test_an_answer_that_is_lost_with_the_controller_is_asked_for_again_and_counted_once() -> None:
    sim = started(metrics=[metric("m")], threshold=3, iterations=9)
    sim.script["m"] = no()
    while not asked(sim):
        sim.run(0.05)
    sim.restart()
    sim.run(0.5)
    assert len(asked(sim)) == 2
    assert sim.status["failedChecks"] == 1
