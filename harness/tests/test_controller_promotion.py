"""Whole releases on a virtual clock: from bootstrap to Succeeded, and every way to end badly."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.snapshots import Fence
from harness.tests.controller_sim import (
    Sim,
    canary,
    deployment,
    image,
    image_of,
    never_ready,
    running,
)

JSON = dict[str, Any]


def test_bootstrap_lets_the_primary_take_over_before_the_target_goes() -> None:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.settle()
    assert sim.phase == "Initializing"
    assert sim.target["spec"]["replicas"] == 3
    assert sim.get("services", "web") is None
    sim.run(until="Initialized")
    sim.settle()
    services = [n for verb, res, n in sim.actions if res == "services"]
    assert services == ["web-canary", "web-primary", "web"]
    order = [a for a in sim.actions if a[1] != "canaries"]
    assert order.index(("create", "services", "web")) < order.index(("patch", "deployments", "web"))
    assert sim.target["spec"]["replicas"] == 0
    assert sim.primary["spec"]["replicas"] == 3
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web-primary"}
    assert sim.objects["services", "web-canary"]["spec"]["selector"] == {"app": "web"}
    assert sim.status["lastAppliedSpec"] == sim.status["lastPromotedSpec"]
    assert sim.condition("Promoted")["status"] == "True"


def test_a_promotion_takes_the_iterations_and_the_pods_and_nothing_else() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    began = sim.now
    sim.run(until="Succeeded")
    assert sim.phases()[-4:] == ["Progressing", "Promoting", "Finalising", "Succeeded"]
    # One second for the target's pods, two intervals of two seconds, one second for the primary's pods.
    assert sim.now - began == pytest.approx(6.0, abs=0.05)
    assert image_of(sim.primary) == "app:2"
    assert sim.target["spec"]["replicas"] == 0
    assert sim.status["iterations"] == 0
    assert sim.status["lastPromotedSpec"] == sim.status["lastAppliedSpec"]
    assert sim.condition("Promoted") | {"reason": "Succeeded", "status": "True"} == sim.condition(
        "Promoted"
    )
    assert not sim.condition("CanaryReady")


def test_intervals_of_one_second_are_honoured() -> None:
    sim = running(analysis={"interval": "1s", "threshold": 1, "iterations": 3})
    sim.edit("deployments", "web", image("app:2"))
    began = sim.now
    sim.run(until="Promoting")
    assert sim.now - began == pytest.approx(1.0 + 3.0, abs=0.05)


def test_missing_iterations_become_ten_and_are_said_once() -> None:
    sim = running(analysis={"interval": "1s", "threshold": 1, "stepWeight": 10})
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert max(i for _, _, i in sim.history) == 10
    assert len([m for m in sim.messages() if "10 iterations instead" in m]) == 1


def test_nothing_but_the_documented_objects_is_written() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    sim.run(100)
    writes = [action for action in sim.actions if action[1] != "canaries"]
    assert writes == [
        ("create", "services", "web-canary"),
        ("create", "services", "web-primary"),
        ("create", "deployments", "web-primary"),
        ("create", "services", "web"),
        ("patch", "deployments", "web"),
        ("patch", "deployments", "web"),
        ("replace", "deployments", "web-primary"),
        ("patch", "deployments", "web"),
    ]


def test_an_idle_canary_writes_nothing() -> None:
    sim = running()
    before = len(sim.actions)
    sim.run(1000)
    assert len(sim.actions) == before


def test_a_new_revision_during_the_analysis_is_judged_alone() -> None:
    sim = running(analysis={"interval": "2s", "threshold": 2, "iterations": 4})
    sim.edit("deployments", "web", image("app:2"))
    while sim.status.get("iterations") != 2:
        sim.run(0.5)
    seen = []
    sim.edit("deployments", "web", image("app:3"))
    sim.settle()
    assert (sim.phase, sim.status["iterations"]) == ("Progressing", 0)
    while sim.phase != "Succeeded":
        seen.append(image_of(sim.primary))
        sim.run(0.5)
    assert set(seen) <= {"app:1", "app:3"}
    assert image_of(sim.primary) == "app:3"
    assert len([m for m in sim.messages() if "starting over" in m]) == 1


@pytest.mark.parametrize("count", [99, 1], ids=["no pod", "all but one pod"])
def test_a_target_that_is_not_ready_in_time_is_rolled_back(count: int) -> None:
    sim = running(never_ready("web", count=count))
    sim.edit("deployments", "web", image("app:2"))
    began = sim.now
    sim.run(until="Failed")
    assert sim.now - began == pytest.approx(20.0, abs=0.05)
    assert sim.target["spec"]["replicas"] == 0
    assert image_of(sim.primary) == "app:1"
    assert sim.condition("Promoted")["status"] == "False"
    available = 3 - min(count, 3)
    assert f"{available} of 3 pods are available" in sim.condition("Promoted")["message"]
    # Failed is a state, not a loop: nothing more is written.
    sim.settle()
    before = len(sim.actions)
    sim.run(1000)
    assert len(sim.actions) == before


def test_a_lower_ready_threshold_lets_a_partly_ready_target_pass() -> None:
    delay = never_ready("web", count=1)
    analysis = {"interval": "2s", "threshold": 2, "iterations": 2, "canaryReadyThreshold": 75}
    sim = running(delay, deployment(replicas=4), analysis=analysis)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")


def test_counters_are_kept_in_failed() -> None:
    sim = running(analysis={"interval": "2s", "threshold": 2, "iterations": 5})
    sim.edit("deployments", "web", image("app:2"))
    while sim.status.get("iterations") != 2:
        sim.run(0.5)
    sim.delay = never_ready("web")
    sim.pods["web"].clear()
    sim.run(until="Failed")
    assert sim.status["iterations"] == 2


def test_flapping_pods_do_not_restart_the_clock() -> None:
    sim = running(analysis={"interval": "10s", "threshold": 2, "iterations": 5})
    sim.edit("deployments", "web", image("app:2"))
    began = sim.now
    while sim.phase != "Failed" and sim.now < began + 60:
        sim.run(5)
        sim.pods["web"].clear()
    assert sim.phase == "Failed"
    assert 20 <= sim.now - began <= 26


def test_readiness_lost_after_a_long_steady_time_gets_a_deadline_of_its_own() -> None:
    sim = running(analysis={"interval": "10s", "threshold": 2, "iterations": 9})
    sim.edit("deployments", "web", image("app:2"))
    sim.run(45)
    sim.pods["web"].clear()
    sim.run(5)
    assert sim.phase == "Progressing"
    sim.run(until="Succeeded")


def test_a_failed_promotion_keeps_the_only_healthy_copy() -> None:
    sim = running(never_ready("web-primary"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Promoting")
    began = sim.now
    sim.run(until="Failed")
    assert sim.now - began == pytest.approx(20.0, abs=0.05)
    assert sim.condition("Promoted")["reason"] == "PromotionFailed"
    for _ in range(20):
        sim.run(5)
        assert sim.ready_pods("web") == 3
    assert not [m for m in sim.messages() if "is idle" in m]


@pytest.mark.parametrize("repair", ["app:3", "app:1"], ids=["a fix", "the old template"])
def test_a_failed_promotion_is_repaired_by_the_next_revision(repair: str) -> None:
    sim = running(never_ready("web-primary"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.edit("deployments", "web", image(repair))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == repair
    assert sim.ready_pods("web-primary") == 3
    assert sim.target["spec"]["replicas"] == 0


def test_a_broken_bootstrap_leaves_the_live_target_alone() -> None:
    sim = Sim(never_ready("web-primary", images=("app:1",)))
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(until="Failed")
    sim.run(1000)
    assert sim.target["spec"]["replicas"] == 3
    assert sim.ready_pods("web") == 3
    assert sim.get("services", "web") is None
    assert "left running" in sim.condition("Promoted")["message"]


def test_a_broken_bootstrap_is_repaired_by_a_new_template() -> None:
    sim = Sim(never_ready("web-primary", images=("app:1",)))
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(until="Failed")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Initialized")
    assert image_of(sim.primary) == "app:2"


def test_a_template_changed_while_the_primary_starts_gets_its_own_run() -> None:
    sim = Sim(lambda *_: 5.0)
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(2)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Initialized")
    assert image_of(sim.primary) == "app:1"
    sim.run(until="Progressing")
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


def test_a_change_while_promoting_is_taken_up_afterwards() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Promoting")
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"
    sim.run(until="Progressing")
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


def test_putting_the_promoted_template_back_ends_the_run() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "ManualRollback"
    assert sim.target["spec"]["replicas"] == 0
    assert sim.status["lastAppliedSpec"] == sim.status["lastPromotedSpec"]
    sim.settle()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")


def test_skipping_the_analysis_does_not_skip_readiness() -> None:
    sim = running(never_ready("web"), skipAnalysis=True)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    assert image_of(sim.primary) == "app:1"
    assert "Succeeded" not in sim.phases()


def test_skipping_the_analysis_waits_for_the_primary() -> None:
    sim = running(skipAnalysis=True)
    sim.edit("deployments", "web", image("app:2"))
    began = sim.now
    sim.run(until="Succeeded")
    assert sim.now - began == pytest.approx(2.0, abs=0.05)
    assert sim.ready_pods("web-primary") == 3


def test_a_suspended_canary_is_left_alone_and_says_so_once() -> None:
    sim = running()
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    before = len(sim.actions)
    sim.edit("deployments", "web", image("app:2"))
    sim.edit("services", "web", {"spec": {"selector": {"app": "web"}}})
    sim.run(100)
    # Nothing but the notice that a change waits.
    assert sim.actions[before:] == [("status", "canaries", "web")]
    assert sim.condition("ChangePending")["status"] == "True"
    assert sim.phase == "Initialized"
    assert len([m for m in sim.messages() if m.startswith("Suspended:")]) == 1
    assert len([m for m in sim.messages() if "change pending" in m]) == 1
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.controller_pass()
    assert not sim.condition("ChangePending")
    sim.controller_pass()
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web-primary"}
    sim.run(until="Succeeded")


def test_a_run_goes_on_where_it_was_suspended() -> None:
    sim = running(analysis={"interval": "2s", "threshold": 2, "iterations": 4})
    sim.edit("deployments", "web", image("app:2"))
    while sim.status.get("iterations") != 1:
        sim.run(0.5)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(100)
    assert (sim.phase, sim.status["iterations"]) == ("Progressing", 1)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    seen = len(sim.history)
    sim.run(until="Succeeded")
    assert [i for _, phase, i in sim.history[seen:] if phase == "Progressing"] == [2, 3]


def test_scaling_starts_no_run_and_idle_pods_are_reported_once() -> None:
    sim = running()
    for count in (2, 0, 2):
        sim.edit("deployments", "web", {"spec": {"replicas": count}}, "gitops")
        sim.run(10)
        assert sim.phase == "Initialized"
        assert sim.target["spec"]["replicas"] == count
    said = [m for m in sim.messages() if "is idle" in m]
    assert len(said) == 1
    assert "gitops" in said[0]


def test_the_primary_takes_a_users_replicas_but_never_ours() -> None:
    sim = running()
    sim.edit(
        "deployments", "web", image("app:2") | {"spec": {**image("app:2")["spec"], "replicas": 4}}
    )
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["replicas"] == 4
    sim.settle()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    assert sim.target["spec"]["replicas"] == 4
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["replicas"] == 4


@pytest.mark.parametrize(("asked", "told"), [(1, 1), (2, 0), (3, 0)])
def test_a_primary_that_will_shrink_to_one_is_told_before_it_does(asked: int, told: int) -> None:
    """Case C13: one replica may be what a manifest without the field gets."""
    sim = running()
    sim.edit("deployments", "web", {"spec": {"replicas": asked}})
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    expected = "the promotion will take web-primary from 3 to 1"
    assert len([m for m in sim.messages() if expected in m]) == told
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["replicas"] == asked


def test_zero_replicas_are_a_users_choice() -> None:
    sim = running(target=deployment(replicas=0))
    assert sim.primary["spec"]["replicas"] == 0
    sim.edit("deployments", "web", image("app:2"))
    sim.run(100)
    assert sim.phase == "Initialized"  # held, not lost
    sim.edit("deployments", "web", {"spec": {"replicas": 2}})
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["replicas"] == 2


def test_the_target_never_goes_while_the_primary_is_at_zero() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 0}})
    sim.run(until="Promoting")
    assert sim.primary["spec"]["replicas"] == 3
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 0}})
    sim.run(until="Failed")
    assert "scaled to zero" in sim.condition("Promoted")["message"]
    assert sim.ready_pods("web") == 3


def test_a_zero_left_by_a_controller_is_nobodys_wish() -> None:
    target = deployment(replicas=3)
    sim = Sim()
    sim.add("deployments", target)
    sim.edit("deployments", "web", {"spec": {"replicas": 0}}, "rollout-drill-controller")
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    assert sim.primary["spec"]["replicas"] == 1


def test_a_recreated_target_that_equals_what_runs_is_rebased() -> None:
    sim = running()
    sim.remove("deployments", "web")
    sim.settle()
    assert [m for m in sim.messages() if "does not exist" in m]
    sim.add("deployments", deployment(replicas=0))
    sim.run(10)
    assert sim.phase == "Initialized"
    assert Fence.parse(sim.status["lastTrackedRevision"]).uid == sim.target["metadata"]["uid"]
    assert len([m for m in sim.messages() if "recreated unchanged" in m]) == 1


def test_a_deleted_primary_comes_back_with_the_promoted_template_only() -> None:
    sim = running()
    sim.remove("deployments", "web-primary")
    sim.run(5)
    assert image_of(sim.primary) == "app:1"
    sim.delay = never_ready("web")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.remove("deployments", "web-primary")
    sim.run(50)
    assert sim.get("deployments", "web-primary") is None
    assert [m for m in sim.messages() if "another revision than the promoted one" in m]
    sim.edit("deployments", "web", image("app:1"))
    sim.run(5)
    assert image_of(sim.primary) == "app:1"


def test_a_foreign_deployment_with_the_primarys_name_is_left_alone() -> None:
    sim = Sim()
    other = deployment("web-primary")
    owner = {"kind": "Canary", "name": "web", "uid": "another", "controller": True}
    other["metadata"]["ownerReferences"] = [owner]
    sim.add("deployments", other)
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(100)
    assert sim.actions == []
    assert [m for m in sim.messages() if "left alone" in m]
