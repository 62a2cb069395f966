"""What is not handled is refused visibly, and nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.settings import Settings
from harness.tests.controller_sim import Sim, canary, deployment, image, running

JSON = dict[str, Any]
ANALYSIS = {"interval": "2s", "threshold": 2, "iterations": 2}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
COOKIE = {"sessionAffinity": {"cookieName": "a", "primaryCookieName": "a"}}


def refused(spec: JSON, target: JSON | None = None) -> Sim:
    sim = Sim()
    sim.add("deployments", target or deployment())
    sim.add("canaries", canary(**spec))
    sim.run(100)
    return sim


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"provider": "nginx"}, "Unsupported", "allowed: "),
        ({"targetRef": TARGET | {"kind": "StatefulSet"}}, "Unsupported", "allowed: "),
        ({"autoscalerRef": {"name": "a"}}, "Invalid", "spec.autoscalerRef"),
        ({"analysis": ANALYSIS | {"metrics": [{"name": "m"}]}}, "Invalid", "analysis.metrics[0]"),
        ({"analysis": ANALYSIS | {"webhooks": [{"name": "w"}]}}, "Invalid", "url is missing"),
        ({"provider": "knative"}, "Invalid", "do not go together"),
        ({"provider": "istio", "analysis": {"interval": "1s"}}, "Invalid", "no steps"),
        ({"analysis": ANALYSIS | COOKIE}, "Invalid", "they must differ"),
        ({"service": {}}, "Invalid", "spec.service.port"),
        ({"service": {"port": 80, "name": "1web"}}, "Invalid", "not valid"),
        ({"service": {"port": 80, "name": "w" * 56}}, "NameTooLong", "56 characters"),
    ],
)
def test_what_is_not_handled_gets_a_condition_and_one_event(
    spec: JSON, reason: str, words: str
) -> None:
    sim = refused(spec)
    accepted = sim.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", reason)
    assert words in accepted["message"]
    (message,) = sim.messages()
    assert accepted["message"] in message
    assert sim.actions == [("status", "canaries", "web")]
    assert set(sim.status) == {"conditions"}
    assert sim.ready_pods("web") == 3


def test_a_refused_canary_is_taken_up_once_it_is_mended() -> None:
    sim = refused({"provider": "nginx"})
    sim.edit("canaries", "web", {"spec": {"provider": "kubernetes"}})
    sim.run(until="Initialized")
    assert not sim.condition("Accepted")


def test_a_changed_reason_is_said_again() -> None:
    sim = refused({"provider": "nginx", "autoscalerRef": {"name": "a"}})
    sim.edit("canaries", "web", {"spec": {"provider": "kubernetes"}})
    sim.run(10)
    assert "autoscalerRef" in sim.condition("Accepted")["message"]
    assert len(sim.messages()) == 2


def test_an_entry_that_cannot_work_added_during_a_run_stops_it_where_it_is() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    before = len(sim.actions)
    gate = {"webhooks": [{"name": "gate", "url": "nowhere"}]}
    sim.edit("canaries", "web", {"spec": {"analysis": gate}})
    sim.run(100)
    assert sim.phase == "Progressing"
    assert sim.actions[before:] == [("status", "canaries", "web")]
    sim.edit("canaries", "web", {"spec": {"analysis": {"webhooks": None}}})
    sim.run(until="Succeeded")


@pytest.mark.parametrize("label", [False, True], ids=["service name", "label value"])
def test_the_longest_name_works_and_one_more_character_is_refused(*, label: bool) -> None:
    def spec(length: int) -> tuple[JSON, JSON]:
        long = "web" + "x" * (length - 3)
        target = deployment()
        if label:
            target["spec"]["selector"]["matchLabels"]["app"] = long
            target["spec"]["template"]["metadata"]["labels"]["app"] = long
            return {}, target
        return {"service": {"port": 80, "name": long}}, target

    fits, target = spec(55)
    sim = Sim()
    sim.add("deployments", target)
    sim.add("canaries", canary(**fits))
    sim.run(until="Initialized")
    sim = refused(*spec(56))
    assert sim.condition("Accepted")["reason"] == "NameTooLong"
    assert "at most 55" in sim.condition("Accepted")["message"]
    assert sim.ready_pods("web") == 3


def test_a_target_without_a_selector_label_is_refused() -> None:
    target = deployment()
    target["spec"]["selector"] = {"matchLabels": {"component": "web"}}
    sim = refused({}, target)
    assert sim.condition("Accepted")["reason"] == "NoSelectorLabel"


@pytest.mark.parametrize(
    ("given", "interval"),
    [("1s", 1.0), ("500ms", 1.0), ("1m30s", 90.0), ("", 60.0), ("soon", 60.0), (None, 60.0)],
)
def test_intervals_have_a_floor_of_one_second(given: str | None, interval: float) -> None:
    analysis = {"interval": given, "iterations": 1}
    assert Settings.of(canary(analysis=analysis)).interval == interval
