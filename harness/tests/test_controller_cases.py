"""Cases that people reported, in virtual time: C01, C10, C11, C21, C22 and C28. Where the others are checked: controller/CASES.md."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_runs import INTERVAL, severities, started, weighted
from harness.tests.controller_sim import (
    Node,
    Sim,
    canary,
    daemonset,
    deployment,
    image,
    image_of,
    kservice,
    never_ready,
    running,
    service,
    target_ref,
)

JSON = dict[str, Any]
DEADLINE = 20.0
OLD: JSON = {
    "lastAppliedSpec": "6c4f8b9d5",
    "lastPromotedSpec": "6c4f8b9d5",
    "lastTrackedRevision": None,
}
"""Hashes as an older version wrote them."""


def runs(sim: Sim) -> int:
    return len([m for m in sim.messages() if m.startswith("New revision of web found")])


# -- C01: an upgrade of the controller ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    [OLD, {"lastAppliedSpec": "v2:0123456789abcdef", "lastPromotedSpec": "v2:0123456789abcdef"}],
    ids=["a: old format", "b: another hash over the same object"],
)
@pytest.mark.parametrize("scaled", [False, True], ids=["untouched", "d: scaled meanwhile"])
def test_c01_an_upgrade_starts_no_run(status: JSON, *, scaled: bool) -> None:
    sim = running()
    before = sim.status["lastAppliedSpec"]
    sim.edit_status(status)
    if scaled:
        sim.edit("deployments", "web", {"spec": {"replicas": 2}})
    sim.restart()
    sim.run(5 * INTERVAL)
    assert (sim.phase, runs(sim)) == ("Initialized", 0)
    assert sim.status["lastAppliedSpec"] == sim.status["lastPromotedSpec"] == before
    assert sim.status["lastTrackedRevision"]
    assert sim.ready_pods("web") == (2 if scaled else 0)


def test_c01_c_a_change_made_meanwhile_is_one_run() -> None:
    sim = running()
    sim.run(5)
    sim.edit_status(OLD)
    sim.edit("deployments", "web", image("app:2"))
    sim.restart()
    sim.run(60)
    assert (sim.phase, runs(sim), image_of(sim.primary)) == ("Succeeded", 1, "app:2")


@pytest.mark.parametrize("phase", ["Progressing", "Failed"])
def test_c01_a_run_of_the_old_format_starts_over_once(phase: str) -> None:
    sim = started()
    if phase == "Failed":
        sim.delay = never_ready("web")
    sim.run(until=phase)
    sim.edit_status(OLD | {"lastPromotedSpec": "5b7d9c6f4"})
    sim.delay = lambda *_: 1.0
    sim.pods["web"].clear()
    before = len([m for m in sim.messages() if m.startswith("New revision")])
    sim.restart()
    sim.run(60)
    assert sim.phase == "Succeeded"
    assert len([m for m in sim.messages() if m.startswith("New revision")]) == before + 1


# -- C10: a promotion that fails ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("routed", [False, True], ids=["base", "weights"])
def test_c10_a_promotion_that_fails_keeps_the_only_healthy_copy(*, routed: bool) -> None:
    sim = weighted() if routed else started()
    sim.delay = never_ready("web-primary")
    sim.run(until="Promoting")
    begin = sim.t
    sim.run(until="Failed")
    assert sim.t - begin <= DEADLINE + 2 * INTERVAL
    for _ in range(20):
        sim.run(INTERVAL)
        assert sim.ready_pods("web") == 3
    assert (sim.phase, sim.status["canaryWeight"]) == ("Failed", 100)
    if routed:
        assert sim.traffic() == {"web-primary": 0, "web-canary": 100}
    assert severities(sim)[-1] == ("error", "Promotion failed:")


@pytest.mark.parametrize("routed", [False, True], ids=["base", "weights"])
def test_c10_twin_a_canary_that_is_never_ready_goes(*, routed: bool) -> None:
    sim = weighted() if routed else started()
    sim.delay = never_ready("web")
    sim.run(until="Failed")
    sim.settle()
    assert (sim.ready_pods("web"), image_of(sim.primary)) == (0, "app:1")
    if routed:
        assert sim.traffic() == {"web-primary": 100, "web-canary": 0}


def test_c10_the_deadline_is_the_canarys_whatever_the_deployments_own_is() -> None:
    target = deployment(progressDeadlineSeconds=600)
    sim = running(never_ready("web-primary"), target)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Promoting")
    begin = sim.t
    sim.run(until="Failed")
    assert DEADLINE <= sim.t - begin <= DEADLINE + 2 * INTERVAL


@pytest.mark.parametrize("gate", [False, True], ids=["at once", "through a gate"])
def test_c10_afterwards_the_next_revision_never_leads_the_traffic_to_the_broken_primary(
    *, gate: bool
) -> None:
    """Deviation P2."""
    hooks = [{"type": "confirm-rollout", "name": "start", "url": "http://start.test/"}] * gate
    sim = weighted(*hooks)
    sim.delay = never_ready("web-primary")
    sim.run(until="Failed")
    # As with strategy Recreate: of the primary not one pod is left.
    sim.pods["web-primary"] = [pod for pod in sim.pods["web-primary"] if pod.ready_at is None]
    sim.cuts.append(sim.t)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"
    assert sim.lowest()[-1][1] >= 1


# -- C11: a canary that does not become ready --------------------------------------------------------------------------------


def failed_after(sim: Sim) -> float:
    sim.run(until="Failed")
    begin = sim.t - sim.cuts[0]
    assert (image_of(sim.primary), sim.primary["spec"]["replicas"]) == (
        "app:1",
        sim.primary["spec"]["replicas"],
    )
    sim.settle()
    assert sim.target["spec"]["replicas"] == 0
    return begin


@pytest.mark.parametrize(
    ("replicas", "missing", "counts"), [(2, 2, "0 of 2"), (4, 1, "3 of 4")], ids=["a", "b"]
)
def test_c11_the_canarys_deadline_ends_it_with_counts(
    replicas: int, missing: int, counts: str
) -> None:
    target = deployment(replicas=replicas, progressDeadlineSeconds=600)
    sim = running(never_ready("web", count=missing), target)
    sim.cuts.append(sim.t)
    sim.edit("deployments", "web", image("app:2"))
    assert DEADLINE <= failed_after(sim) <= DEADLINE + 3 * INTERVAL
    assert counts in sim.condition("Promoted")["message"]


def test_c11_b_three_of_four_pass_where_the_threshold_says_so() -> None:
    analysis = {"interval": "2s", "threshold": 2, "iterations": 2, "canaryReadyThreshold": 75}
    sim = running(never_ready("web", count=1), deployment(replicas=4), analysis=analysis)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")


def flap(sim: Sim, first: float, seconds: float = 60.0) -> None:
    """From `first` on all pods of the target turn unready and ready again every 5 s."""
    sim.run(first)
    ready = True
    end = sim.t + seconds
    while sim.t < end and sim.phase in ("Progressing", "WaitingPromotion"):
        ready = not ready
        for pod in sim.pods["web"]:
            pod.ready_at = sim.now if ready else None
        sim.run(5, until="Failed") if sim.phase == "Failed" else _until_failed(sim, 5)


def _until_failed(sim: Sim, seconds: float) -> None:
    end = sim.t + seconds
    while sim.t < end and sim.phase != "Failed":
        sim.run(0.25)


@pytest.mark.parametrize("first", [1.5, 2.0, 3.5, 4.5])
@pytest.mark.parametrize("iterations", [2, 4, 20])
def test_c11_c_pods_that_flap_are_not_promoted_and_end_in_time(
    first: float, iterations: int
) -> None:
    """However many intervals fit between two losses: after one, readiness has to last as long as the deadline."""
    sim = started(iterations=iterations)
    flap(sim, first)
    assert sim.phase == "Failed"
    assert DEADLINE <= sim.t - sim.cuts[0] <= DEADLINE + 3 * INTERVAL
    assert image_of(sim.primary) == "app:1"
    sim.settle()
    assert sim.target["spec"]["replicas"] == 0
    assert "0 of 3" in sim.condition("Promoted")["message"]


@pytest.mark.parametrize("first", [1.5, 3.5])
def test_c11_c_with_weights_alike(first: float) -> None:
    sim = weighted()
    flap(sim, first)
    assert sim.phase == "Failed"
    assert DEADLINE <= sim.t - sim.cuts[0] <= DEADLINE + 3 * INTERVAL
    assert image_of(sim.primary) == "app:1"


def test_c11_c_one_loss_delays_the_promotion_by_the_deadline_and_is_said_once() -> None:
    sim = started()
    sim.run(2)
    sim.pods["web"].clear()
    sim.run(1.1)
    back = sim.t
    sim.run(DEADLINE - 1)
    assert sim.phase == "Progressing"
    assert sim.condition("Held")["reason"] == "Unsteady"
    sim.run(until="Succeeded")
    assert sim.t >= back + DEADLINE
    assert len([m for m in sim.messages() if "lost readiness in this run" in m]) == 1
    assert not sim.condition("Held")
    assert not sim.condition("Unsteady")


def test_a_loss_long_after_the_deadline_gets_one_of_its_own() -> None:
    """Also one between the deadline and the time at which the target had been ready as long."""
    sim = started(iterations=60)
    sim.delay = lambda *_: 15.0
    sim.run(DEADLINE + 5)
    sim.delay = lambda *_: 3.0
    sim.pods["web"].clear()
    sim.run(10)
    assert sim.phase == "Progressing"
    sim.delay = lambda *_: None
    sim.pods["web"].clear()
    sim.run(DEADLINE - 10)
    assert sim.phase == "Failed"


# -- C21: DaemonSets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rolling", [{"maxUnavailable": 1}, {"maxSurge": 1, "maxUnavailable": 0}])
@pytest.mark.parametrize("selector", [{"disk": "ssd"}, None, {}], ids=["ssd", "none", "empty"])
def test_c21_zero_is_a_marker_that_the_users_selector_survives(
    rolling: JSON, selector: JSON | None
) -> None:
    sim = Sim()
    sim.nodes = {f"n{number}": Node({"disk": "ssd"} if number < 3 else {}) for number in (1, 2, 3)}
    made = daemonset(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    if selector is not None:
        made["spec"]["template"]["spec"]["nodeSelector"] = selector
    eligible = 2 if selector else 3
    sim.add("daemonsets", made)
    sim.add("canaries", canary(targetRef=target_ref("DaemonSet")))
    sim.run(until="Initialized")
    sim.run(5)
    target = sim.objects["daemonsets", "web"]
    assert (target["status"]["desiredNumberScheduled"], sim.ready_pods("web")) == (0, 0)
    sim.edit("daemonsets", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(1.5)
    assert sim.ready_pods("web") == eligible
    sim.run(until="Succeeded")
    sim.run(30)
    assert sim.ready_pods("web") == 0
    spec = sim.objects["daemonsets", "web-primary"]["spec"]["template"]["spec"]
    assert (spec.get("nodeSelector") or {}) == (selector or {})
    kept = sim.objects["daemonsets", "web"]["spec"]["template"]["spec"]["nodeSelector"]
    assert {key: value for key, value in kept.items() if key in (selector or {})} == (
        selector or {}
    )
    assert runs(sim) == 1


# -- C22: Knative ------------------------------------------------------------------------------------------------------------


def new_revision(sim: Sim, name: str) -> None:
    containers = [{"name": "c", "image": name}]
    sim.edit("kservices", "web", {"spec": {"template": {"spec": {"containers": containers}}}})


@pytest.mark.parametrize("late", ["knative_delay", "configuration_delay"])
def test_c22_a_revision_is_judged_only_once_it_is_there_and_ready(late: str) -> None:
    """Knative is late as a whole, or has seen the change already and is late with the revision."""
    slow = False
    sim = Sim(lambda name, _template, _index: 5.0 if slow and name == "web-00002" else 1.0)
    steps = {"interval": "2s", "threshold": 2, "stepWeight": 20, "maxWeight": 40}
    sim.add("kservices", kservice())
    sim.add(
        "canaries",
        canary(provider="knative", targetRef=target_ref("Knative"), analysis=steps),
    )
    sim.run(until="Initialized")
    sim.settle()
    usual = getattr(sim, late)
    setattr(sim, late, 5.0)
    slow = True
    new_revision(sim, "app:2")
    sim.run(4)
    assert (sim.phase, sim.traffic()) == ("Initialized", {"web-00001": 100})
    setattr(sim, late, usual)
    while ("krevisions", "web-00002") not in sim.objects:
        sim.run(0.1)
    sim.run(4)
    assert sim.status.get("canaryWeight", 0) == 0
    assert sim.traffic().get("web-00002", 0) == 0
    sim.run(until="Succeeded")
    assert sim.traffic() == {"web-00002": 100}
    note = sim.objects["kservices", "web"]["metadata"]["annotations"]
    assert note["flagger.app/primary-revision"] == "web-00002"
    assert runs(sim) == 1


def test_c22_a_second_patch_in_mid_run_starts_over() -> None:
    sim = Sim()
    steps = {"interval": "2s", "threshold": 2, "stepWeight": 20, "maxWeight": 60}
    sim.add("kservices", kservice())
    sim.add(
        "canaries",
        canary(provider="knative", targetRef=target_ref("Knative"), analysis=steps),
    )
    sim.run(until="Initialized")
    new_revision(sim, "app:2")
    while sim.status.get("canaryWeight") != 40:
        sim.run(0.1)
    new_revision(sim, "app:3")
    sim.run(1)
    assert sim.status["canaryWeight"] == 0
    sim.run(until="Succeeded")
    assert sim.traffic() == {"web-00003": 100}
    assert len([m for m in sim.messages() if "starting over" in m]) == 1


# -- C28: never an apex without pods -----------------------------------------------------------------------------------------


def test_c28_an_application_that_serves_already_never_stops() -> None:
    sim = Sim(lambda name, _template, _index: 10.0 if name == "web-primary" else 1.0)
    sim.add("services", service())
    sim.add("deployments", deployment())
    sim.run(3)
    sim.cuts.append(sim.t)
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    sim.run(10)
    assert sim.lowest()[-1][1] >= 3


@pytest.mark.parametrize("phase", ["Progressing", "Promoting", "Finalising", "Succeeded"])
def test_c28_a_restart_between_two_steps_changes_nothing(phase: str) -> None:
    sim = running(lambda name, _template, _index: 10.0 if name == "web-primary" else 1.0)
    sim.cuts.append(sim.t)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until=phase)
    sim.restart()
    if phase != "Succeeded":
        sim.run(until="Succeeded")
    sim.run(10)
    assert sim.lowest()[-1][1] >= 1
    assert sim.phases() == [
        "Initializing", "Initialized", "Progressing", "Promoting", "Finalising", "Succeeded",
    ]  # fmt: skip
