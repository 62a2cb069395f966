"""When people are told: each alert of the list once, with its severity (spec canary-api 7; P4, P6)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_runs import hook, metric, prepared, severities, started, weighted
from harness.tests.controller_sim import Sim, canary, deployment, image, never_ready, no, yes

JSON = dict[str, Any]
NEW = ("info", "New revision")


def told(sim: Sim, **answers: Any) -> list[tuple[str, str]]:
    """Alerts of a run that is left alone for a long time."""
    sim.script.update(answers)
    sim.run(120)
    return severities(sim)


def test_initialisation_is_told_with_the_facts() -> None:
    sim = prepared()
    assert [(alert.severity, alert.facts) for _, alert in sim.alerts] == [("info", True)]
    assert sim.alerts[0][1].message.startswith("Initialised: Deployment web-primary")


def test_a_bootstrap_that_fails_is_told() -> None:
    sim = Sim(never_ready("web-primary", images=("app:1",)))
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    assert told(sim) == [("error", "Initialisation failed:")]


@pytest.mark.parametrize("skip", [False, True], ids=["analysed", "skipped"])
def test_a_success_is_told_with_the_facts(*, skip: bool) -> None:
    sim = prepared(spec={"skipAnalysis": skip, "analysis": {"interval": "2s", "iterations": 2}})
    sim.cuts.append(sim.t)
    sim.edit("deployments", "web", image("app:2"))
    assert told(sim) == [NEW, ("info", "Promotion completed:")]
    assert all(alert.facts for _, alert in sim.alerts)


def test_a_closed_gate_is_told_once_however_long_it_stays() -> None:
    closed = ("warn", "Waiting for")
    assert told(started(hook("confirm-rollout", "a")), a=no()) == [closed]
    assert told(weighted(hook("confirm-traffic-increase", "a")), a=no()) == [NEW, closed]
    assert told(started(hook("confirm-promotion", "a")), a=no()) == [NEW, closed]


def test_a_gate_that_closes_again_is_told_again() -> None:
    sim = weighted(hook("confirm-traffic-increase", "a"))
    sim.script["a"] = no()
    sim.run(6)
    sim.script["a"] = yes()
    while sim.status["canaryWeight"] != 20:
        sim.run(0.1)
    assert told(sim, a=no()) == [NEW, ("warn", "Waiting for"), ("warn", "Waiting for")]


@pytest.mark.parametrize(
    "kind", ["confirm-rollout", "confirm-traffic-increase", "confirm-promotion"]
)
def test_a_muted_gate_is_an_event_and_no_alert(kind: str) -> None:
    sim = weighted(hook(kind, "a") | {"muteAlert": True})
    assert ("warn", "Waiting for") not in told(sim, a=no())
    assert [m for m in sim.messages() if m.startswith("Waiting for a to confirm")]


def test_failed_checks_are_told_when_the_threshold_is_reached_and_not_before() -> None:
    sim = started(metrics=[metric("m")], threshold=3)
    sim.script["m"] = no()
    while sim.status["failedChecks"] != 2:
        sim.run(0.1)
    assert severities(sim) == [NEW]
    assert told(sim) == [NEW, ("error", "Rolling back")]
    assert "3 checks failed" in sim.alerts[-1][1].message


def test_a_rollback_hook_is_a_warning() -> None:
    assert told(started(hook("rollback", "a")), a=yes()) == [NEW, ("warn", "Rolling back")]


def test_a_target_that_is_not_ready_in_time_is_told_with_the_cause() -> None:
    """Deviation P4."""
    sim = started()
    sim.delay = never_ready("web")
    assert told(sim) == [NEW, ("error", "Rolling back")]
    assert "0 of 3 pods are available" in sim.alerts[-1][1].message


def test_a_promotion_that_fails_is_told() -> None:
    sim = started()
    sim.delay = never_ready("web-primary")
    assert told(sim) == [NEW, ("error", "Promotion failed:")]


def test_the_promoted_template_put_back_is_told() -> None:
    sim = started()
    sim.run(until="Progressing")
    sim.edit("deployments", "web", image("app:1"))
    assert told(sim) == [NEW, ("info", "Rolling back")]


def test_a_restart_of_the_controller_tells_nothing_again() -> None:
    sim = started(hook("confirm-promotion", "a"))
    sim.script["a"] = no()
    sim.run(30)
    before = severities(sim)
    sim.restart()
    sim.run(30)
    assert severities(sim) == before
