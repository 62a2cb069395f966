"""What cannot work as it is, said on the Canary before it happens (deviations O5 and O10)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.controller.core import services, warnings
from harness.controller.core.names import names_of
from harness.tests.controller_sim import canary, daemonset, deployment, merge, running
from harness.tests.controller_targets import pair_of, stored

JSON = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def term(**more: Any) -> JSON:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}, **more}


def apart(*terms: JSON, strength: str = REQUIRED, replicas: int = 3, **spec: Any) -> JSON:
    """A Deployment whose pods keep apart; its strategy is the API's default unless given."""
    target = deployment(replicas=replicas, **spec)
    affinity = {"podAntiAffinity": {strength: list(terms or (term(),))}}
    target["spec"]["template"]["spec"]["affinity"] = affinity
    return target


def said(target: JSON, primary: JSON | None = None) -> tuple[str, ...]:
    return warnings.of(pair_of("Deployment", stored(target), primary))


def rolling(unavailable: Any) -> JSON:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}}


def test_o5_the_sentence_says_where_and_from_how_many_on() -> None:
    (text,) = said(apart())
    assert f"apart by {HOST}" in text
    assert "with 3 or fewer places" in text
    assert "matchLabelKeys [pod-template-hash]" in text
    more = stored(deployment("web-primary", replicas=7))
    assert "with 7 or fewer places" in said(apart(), more)[0]


@pytest.mark.parametrize(
    "target",
    [
        apart(term(matchLabelKeys=["pod-template-hash"])),
        apart(term(labelSelector={"matchLabels": {"app": "other"}})),
        apart(term(labelSelector={"matchLabels": {"team": "web"}})),
        apart(term(labelSelector=None)),
        apart(strength="preferredDuringSchedulingIgnoredDuringExecution"),
        apart(strategy={"type": "Recreate"}),
        apart(strategy=rolling(1)),
        apart(strategy=rolling("34%")),
        apart(replicas=4),
        deployment(),
    ],
    ids=[
        "the key is there",
        "others are repelled",
        "another label",
        "no selector",
        "only preferred",
        "all go before one comes",
        "one may go",
        "a third may go",
        "a quarter of four may go",
        "no affinity",
    ],
)
def test_o5_nothing_is_said_where_a_rolling_update_can_finish(target: JSON) -> None:
    assert said(target) == ()


@pytest.mark.parametrize(
    "target",
    [
        apart(term(matchLabelKeys=["tenant"])),
        apart(
            term(
                labelSelector={
                    "matchExpressions": [
                        {"key": "app", "operator": "In", "values": ["other", "web"]}
                    ]
                }
            )
        ),
        apart(term(labelSelector={"matchLabels": {"app": "other"}}), term()),
        apart(strategy=rolling(0)),
        apart(strategy=rolling("33%")),
        apart(replicas=0),
    ],
    ids=[
        "another key",
        "by an expression",
        "the second term",
        "none may go",
        "less than one may go",
        "at zero",
    ],
)
def test_o5_it_is_said_where_a_rolling_update_may_not_finish(target: JSON) -> None:
    assert len(said(target)) == 1


def test_o5_a_daemonset_never_surges_by_itself() -> None:
    target = daemonset()
    target["spec"]["template"]["spec"]["affinity"] = apart()["spec"]["template"]["spec"]["affinity"]
    assert warnings.of(pair_of("DaemonSet", stored(target))) == ()


def test_o5_condition_and_event_come_once_and_the_condition_goes_with_the_cause() -> None:
    sim = running(target=apart())
    assert sim.condition("Warned")["reason"] == "CannotWork"
    told = [text for text in sim.messages() if HOST in text]
    assert len(told) == 1
    before = len(sim.actions)
    sim.run(1000)
    assert len(sim.actions) == before
    sim.edit("deployments", "web", {"spec": {"strategy": rolling(1)}})
    sim.settle()
    assert sim.condition("Warned") == {}
    assert [text for text in sim.messages() if HOST in text] == told


# -- O10: what an existing Service cannot become -------------------------------------------------------------------------------


def test_o10_headless_asked_for_later_is_reported_and_put_right_by_a_new_service() -> None:
    sim = running()
    for name in ("web", "web-primary", "web-canary"):
        sim.edit("services", name, {"spec": {"clusterIP": "10.0.0.1"}})
    sim.edit("canaries", "web", {"spec": {"service": {"headless": True}}})
    sim.settle()
    text = sim.condition("Warned")["message"]
    assert "Services web, web-primary, web-canary have an address" in text
    assert sim.objects["services", "web"]["spec"]["clusterIP"] == "10.0.0.1"
    for name in ("web", "web-primary", "web-canary"):
        sim.remove("services", name)
    sim.settle()
    assert sim.objects["services", "web"]["spec"]["clusterIP"] == "None"
    assert sim.condition("Warned") == {}


def test_o10_a_users_own_headless_service_is_no_mistake() -> None:
    owner = stored(canary())
    names = names_of(owner, deployment())
    own = {"web": stored({"metadata": {"name": "web"}, "spec": {"clusterIP": "None"}})}
    assert services.unchangeable(owner, names, own) == ()
    ours = copy.deepcopy(own)
    ours["web"]["metadata"]["ownerReferences"] = [
        {"kind": "Canary", "name": "web", "controller": True}
    ]
    (text,) = services.unchangeable(owner, names, ours)
    assert "unset or false, but Services web are headless" in text


def test_o10_traffic_distribution_is_reconciled_and_its_removal_too() -> None:
    sim = running(service={"port": 80, "trafficDistribution": "PreferClose"})
    assert sim.objects["services", "web"]["spec"]["trafficDistribution"] == "PreferClose"
    sim.edit(
        "canaries",
        "web",
        merge({}, {"spec": {"service": {"trafficDistribution": "PreferSameNode"}}}),
    )
    sim.settle()
    assert sim.objects["services", "web"]["spec"]["trafficDistribution"] == "PreferSameNode"
    sim.edit("canaries", "web", {"spec": {"service": {"trafficDistribution": None}}})
    sim.settle()
    assert "trafficDistribution" not in sim.objects["services", "web"]["spec"]
