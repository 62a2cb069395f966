"""A Knative Service from change to end, in virtual time: idle revisions, empty ones, and what comes at the wrong moment (P12, case C22)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_sim import Sim, canary, kservice, target_ref

JSON = dict[str, Any]
STEPS: JSON = {"interval": "2s", "threshold": 2, "stepWeights": [20, 50]}
STEPWISE: JSON = {"interval": "2s", "threshold": 2, "stepWeights": [50], "stepWeightPromotion": 10}
FROM_ZERO = "autoscaling.knative.dev/initial-scale"


def rollout(analysis: JSON = STEPS, **spec: Any) -> JSON:
    return canary(
        provider="knative", targetRef=target_ref("Knative"), analysis=dict(analysis), **spec
    )


def template(image: str, **notes: str) -> JSON:
    containers = [{"name": "c", "image": image}]
    return {"template": {"metadata": {"annotations": notes}, "spec": {"containers": containers}}}


def initialised(sim: Sim, analysis: JSON = STEPS, **spec: Any) -> None:
    sim.add("kservices", kservice())
    sim.add("canaries", rollout(analysis, **spec))
    sim.run(until="Initialized")


def change(sim: Sim, image: str, **notes: str) -> None:
    sim.edit("kservices", "web", {"spec": template(image, **notes)})


def primary(sim: Sim) -> str:
    return str(
        sim.objects["kservices", "web"]["metadata"]["annotations"]["flagger.app/primary-revision"]
    )


def test_revisions_without_requests_go_to_zero_and_are_promoted_all_the_same() -> None:
    """Idle is no failure: what serves, and what is analysed, may have no pods."""
    sim = Sim()
    sim.idle_after = 0.5
    initialised(sim)
    sim.run(5)
    assert sim.ready_pods("web-00001") == 0
    change(sim, "app:2")
    sim.run(until="Succeeded")
    assert sim.ready_pods("web-00002") == 0
    assert (primary(sim), sim.traffic()) == ("web-00002", {"web-00002": 100})
    assert not [text for text in sim.messages() if "failed" in text]


@pytest.mark.parametrize("skip", [False, True])
def test_a_revision_that_never_had_a_pod_gets_no_traffic_and_ends_with_the_deadline(
    *, skip: bool
) -> None:
    """Knative calls it Ready at once."""
    sim = Sim()
    initialised(sim, progressDeadlineSeconds=8, skipAnalysis=skip)
    change(sim, "app:2", **{FROM_ZERO: "0"})
    sim.run(7)
    assert sim.phase == "Progressing"
    sim.run(until="Failed")
    sim.run(3)
    assert (primary(sim), sim.traffic()) == ("web-00001", {"web-00001": 100, "web-00002": 0})
    assert all(weight == 0 for _, weight in sim.weights)
    assert any("no pod of it has been ready yet" in text for text in sim.messages())


def test_once_somebody_gave_it_a_pod_it_is_analysed() -> None:
    """By a request to the address of a tag, say."""
    sim = Sim()
    initialised(sim)
    change(sim, "app:2", **{FROM_ZERO: "0"})
    sim.run(7)
    assert sim.phase == "Progressing"
    sim.pods["web-00002"] = [sim._new_pod("web-00002", sim.objects["kservices", "web"], 0)]
    sim.run(until="Succeeded")
    assert primary(sim) == "web-00002"


def test_a_revision_that_comes_during_a_promotion_waits_for_its_own_analysis() -> None:
    """The rest of the traffic that goes back step by step follows the newest revision, which nobody has looked at."""
    sim = Sim()
    initialised(sim, STEPWISE)
    change(sim, "app:2")
    sim.run(until="Promoting")
    change(sim, "app:3")
    while sim.phase in ("Promoting", "Finalising"):
        sim.run(0.1)
        if sim.phase in ("Promoting", "Finalising"):
            assert sim.traffic().get("web-00003", 0) == 0, sim.t
    assert primary(sim) == "web-00002"
    sim.run(until="Succeeded")
    while primary(sim) != "web-00003":
        sim.run(1)
    sim.run(until="Succeeded")
    assert sim.traffic() == {"web-00003": 100}


def test_a_service_whose_traffic_was_led_to_an_older_revision_is_taken_over_as_it_serves() -> None:
    sim = Sim()
    sim.add("kservices", kservice())
    sim.run(3)
    pinned = [{"revisionName": "web-00001", "percent": 100}]
    sim.edit("kservices", "web", {"spec": {**template("app:2"), "traffic": pinned}})
    sim.run(3)
    assert sim.traffic() == {"web-00001": 100}
    sim.add("canaries", rollout())
    sim.run(until="Progressing")
    assert (primary(sim), sim.traffic().get("web-00002", 0)) == ("web-00001", 0)
    sim.run(until="Succeeded")
    assert sim.traffic() == {"web-00002": 100}
    assert {20, 50} <= {weight for _, weight in sim.weights}


@pytest.mark.parametrize("phase", ["Initialized", "Progressing"])
def test_a_manifest_without_traffic_that_is_put_again_changes_nothing_for_long(phase: str) -> None:
    """The webhook makes of it: everything to the newest."""
    sim = Sim()
    initialised(sim)
    if phase == "Progressing":
        change(sim, "app:2")
        while sim.status.get("canaryWeight") != 20:
            sim.run(0.1)
    held = sim.objects["kservices", "web"]["spec"]["traffic"]
    sim.edit("kservices", "web", {"spec": {"traffic": None}})
    assert [one["percent"] for one in sim.objects["kservices", "web"]["spec"]["traffic"]] == [100]
    sim.run(0.1)
    assert sim.objects["kservices", "web"]["spec"]["traffic"] == held
    assert sim.phase == phase
