"""What can happen to a Canary in its life: adoption, suspension, new revisions in every phase, GitOps, rivals (cases C03 and C18)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_runs import hook, metric, prepared, started, weighted
from harness.tests.controller_sim import (
    Sim,
    canary,
    daemonset,
    deployment,
    image,
    image_of,
    never_ready,
    no,
    number,
    service,
    target_ref,
    yes,
)

JSON = dict[str, Any]
GATES = (hook("confirm-rollout", "start"), hook("confirm-promotion", "finish"))


def primary(label: str = "web-primary", **more: Any) -> JSON:
    """A Deployment `web-primary` that somebody left behind."""
    obj = deployment("web-primary", **more)
    obj["spec"]["selector"]["matchLabels"] = {"app": label}
    obj["spec"]["template"]["metadata"]["labels"] = {"app": label}
    return obj


def owners(obj: JSON) -> list[str]:
    return [owner["kind"] for owner in obj["metadata"].get("ownerReferences") or []]


def runs(sim: Sim) -> int:
    return sim.phases().count("Progressing")


# -- an existing primary -----------------------------------------------------------------------------------------------------


def met(found: JSON, target: JSON | None = None) -> Sim:
    sim = Sim()
    sim.add("deployments", found)
    sim.add("deployments", target or deployment())
    sim.run(2)
    sim.add("canaries", canary())
    return sim


def test_a_primary_that_nobody_controls_is_adopted_and_goes_with_its_canary() -> None:
    sim = met(primary())
    sim.run(until="Initialized")
    sim.run(10)
    assert owners(sim.primary) == ["Canary"]
    assert sim.ready_pods("web-primary") == 3
    assert ("create", "deployments", "web-primary") not in sim.actions
    assert runs(sim) == 0
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"
    sim.remove("canaries", "web")
    sim.settle()
    assert sim.get("deployments", "web-primary") is None


def test_an_adopted_primary_with_another_template_leads_to_a_run_and_not_to_a_switch() -> None:
    sim = met(primary(image="app:0"))
    sim.run(until="Progressing")
    assert image_of(sim.primary) == "app:0"
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:1"
    assert runs(sim) == 1


def test_an_application_of_the_users_own_with_the_primarys_name_is_left_alone() -> None:
    sim = met(primary("something-else"))
    sim.run(60)
    assert sim.actions == []
    assert [m for m in sim.messages() if "belongs to no Canary and does not select" in m]
    assert sim.ready_pods("web") == 3


def test_a_primary_of_somebody_else_is_left_alone_until_it_is_gone() -> None:
    found = primary()
    owner = {"kind": "Rollout", "name": "r", "uid": "another", "controller": True}
    found["metadata"]["ownerReferences"] = [owner]
    sim = met(found)
    sim.run(60)
    assert sim.actions == []
    assert [m for m in sim.messages() if "belongs to Rollout/r" in m]
    sim.remove("deployments", "web-primary")
    sim.run(until="Initialized")


def test_a_daemonset_is_adopted_alike() -> None:
    found = daemonset("web-primary")
    found["spec"]["selector"]["matchLabels"] = {"app": "web-primary"}
    found["spec"]["template"]["metadata"]["labels"] = {"app": "web-primary"}
    sim = Sim()
    sim.add("daemonsets", found)
    sim.add("daemonsets", daemonset())
    sim.add("canaries", canary(targetRef=target_ref("DaemonSet")))
    sim.run(until="Initialized")
    assert owners(sim.objects["daemonsets", "web-primary"]) == ["Canary"]


# -- suspended ---------------------------------------------------------------------------------------------------------------


def test_c03_nothing_is_written_while_suspended_and_all_is_made_up_for_afterwards() -> None:
    sim = started()
    sim.run(until="Succeeded")
    sim.settle()
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    before = len(sim.actions)
    sim.edit("deployments", "web", image("app:3"))
    sim.edit("services", "web", {"spec": {"selector": {"app": "web"}}})
    sim.run(10)
    assert {kind for _, kind, _ in sim.actions[before:]} == {"canaries"}
    assert sim.phase == "Succeeded"
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(4, until="Progressing")
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web-primary"}
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


@pytest.mark.parametrize("iterations", [1, 3])
def test_c03_a_run_goes_on_at_its_iteration(iterations: int) -> None:
    sim = started(iterations=4)
    while sim.status.get("iterations") != iterations:
        sim.run(0.1)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(100)
    assert (sim.phase, sim.status["iterations"]) == ("Progressing", iterations)
    seen = len(sim.history)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")
    counts = [i for _, phase, i in sim.history[seen:] if phase == "Progressing"]
    assert counts == list(range(iterations + 1, 4))


def test_c03_a_run_goes_on_at_its_weight() -> None:
    sim = weighted()
    while sim.status.get("canaryWeight") != 40:
        sim.run(0.1)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(100)
    assert sim.traffic() == {"web-primary": 60, "web-canary": 40}
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")
    assert [weight for _, weight in sim.weights] == [0, 20, 40, 60, 0]


def test_a_run_that_was_suspended_beyond_its_deadline_is_not_failed_for_it() -> None:
    """Nobody watched meanwhile; pods that are ready count, however long it took."""
    sim = started(iterations=4)
    sim.run(until="Progressing")
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(100)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")


def test_a_pending_change_is_shown_while_it_is_there() -> None:
    sim = prepared()
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(10)
    assert not sim.condition("ChangePending")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(10)
    assert sim.condition("ChangePending")["status"] == "True"
    moved = sim.status["lastTransitionTime"]
    sim.edit("deployments", "web", image("app:1"))
    sim.run(10)
    assert not sim.condition("ChangePending")
    assert sim.status["lastTransitionTime"] == moved
    sim.edit("deployments", "web", image("app:3"))
    sim.run(10)
    assert sim.condition("ChangePending")
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")
    assert not sim.condition("ChangePending")


def test_a_suspension_that_a_resync_brings_back_is_seen_on_the_canary() -> None:
    """A manifest that still says suspend: nothing is lost, and the condition says what waits."""
    sim = started(iterations=4)
    for suspend in (True, False, True):
        sim.edit("canaries", "web", {"spec": {"suspend": suspend}}, "gitops")
        sim.run(1)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(50)
    assert sim.condition("ChangePending")["status"] == "True"
    assert sim.phase == "Progressing"
    sim.edit("canaries", "web", {"spec": {"suspend": False}}, "gitops")
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


# -- skipAnalysis in mid-run -------------------------------------------------------------------------------------------------


def test_switching_the_analysis_off_ends_it_and_takes_the_traffic_back() -> None:
    sim = weighted(hook("confirm-promotion", "finish"), metrics=[metric("m")])
    sim.script["finish"] = no()
    while sim.status.get("canaryWeight") != 40:
        sim.run(0.1)
    sim.edit("canaries", "web", {"spec": {"skipAnalysis": True}})
    sim.run(0.5)
    assert sim.phase == "Promoting"
    assert sim.traffic()["web-canary"] == 0
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


def test_switching_the_analysis_off_over_a_failed_revision_does_nothing() -> None:
    sim = started(hook("rollout", "load"))
    sim.script["load"] = no()
    sim.run(until="Failed")
    sim.edit("canaries", "web", {"spec": {"skipAnalysis": True}})
    sim.run(60)
    assert (sim.phase, image_of(sim.primary)) == ("Failed", "app:1")


# -- a new revision in every phase -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "through"),
    [
        ("Initializing", 1),
        ("Initialized", 1),
        ("Waiting", 1),
        ("Progressing", 1),
        ("WaitingPromotion", 1),
        ("Promoting", 2),
        ("Finalising", 2),
        ("Succeeded", 2),
    ],
)
def test_a_new_revision_is_analysed_alone_whatever_the_phase(phase: str, through: int) -> None:
    """`through`: how often a promotion happens until the newest revision is in place."""
    sim = Sim()
    sim.add("deployments", deployment())
    analysis = {"interval": "2s", "threshold": 2, "iterations": 2, "webhooks": list(GATES)}
    sim.add("canaries", canary(analysis=analysis))
    if phase not in ("Initializing", "Initialized"):
        sim.run(until="Initialized")
        sim.script["start"] = no() if phase == "Waiting" else yes()
        sim.script["finish"] = no() if phase == "WaitingPromotion" else yes()
        sim.edit("deployments", "web", image("app:2"))
    sim.run(until=phase)
    if phase == "Initializing":
        sim.run(0.5)  # the primary exists by now
    sim.edit("deployments", "web", image("app:3"))
    sim.script.clear()
    seen: list[str] = []
    for _ in range(60):
        sim.run(0.5)
        if not seen or seen[-1] != image_of(sim.primary):
            seen.append(image_of(sim.primary))
    assert sim.phase == "Succeeded"
    assert seen[-1] == "app:3"
    assert len([m for m in sim.messages() if m.startswith("Promotion completed")]) == through
    if through == 1:
        assert "app:2" not in seen


@pytest.mark.parametrize("how", ["not ready", "checks", "hook", "put back", "promotion"])
def test_after_every_failure_the_next_revision_gets_its_run(how: str) -> None:
    sim = started(hook("rollback", "undo"), metrics=[metric("m")])
    if how == "not ready":
        sim.delay = never_ready("web")
    elif how == "checks":
        sim.script["m"] = number(0)
    elif how == "promotion":
        sim.delay = never_ready("web-primary")
    sim.run(until="Progressing")
    if how == "hook":
        sim.script["undo"] = yes()
    elif how == "put back":
        sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    sim.run(30)
    assert sim.phase == "Failed"
    before = len(sim.actions)
    sim.run(100)
    assert len(sim.actions) == before, "Failed is a state, not a loop"
    sim.script.clear()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"
    assert runs(sim) == 2


# -- GitOps ------------------------------------------------------------------------------------------------------------------


def test_c18_replicas_restored_on_an_idle_target_start_no_run_and_name_the_writer() -> None:
    sim = started()
    sim.run(until="Succeeded")
    sim.settle()
    sim.edit("deployments", "web", {"spec": {"replicas": 3}}, "gitops")
    sim.run(60)
    assert (sim.phase, runs(sim), sim.ready_pods("web")) == ("Succeeded", 1, 3)
    (said,) = [m for m in sim.messages() if "is idle" in m]
    assert "gitops" in said


def test_c18_a_manifest_without_replicas_leaves_the_target_idle() -> None:
    sim = started()
    sim.run(until="Succeeded")
    sim.settle()
    sim.edit("deployments", "web", image("app:2"), "gitops")
    sim.run(60)
    assert (sim.phase, runs(sim), sim.ready_pods("web")) == ("Succeeded", 1, 0)
    assert not [m for m in sim.messages() if "is idle" in m]


def test_a_failed_template_that_is_applied_again_does_nothing() -> None:
    sim = started(hook("rollout", "load"))
    sim.script["load"] = no()
    sim.run(until="Failed")
    sim.script.clear()
    sim.settle()
    before = len(sim.calls)
    for annotation in ("a", "b"):
        sim.edit("deployments", "web", image("app:2"), "gitops")
        sim.edit("deployments", "web", {"metadata": {"annotations": {"sync": annotation}}})
        sim.edit("deployments", "web", {"spec": {"minReadySeconds": len(annotation)}})
        sim.run(30)
    assert (sim.phase, runs(sim), len(sim.calls)) == ("Failed", 1, before)


def test_pruned_and_applied_again_the_canary_takes_over_without_a_run() -> None:
    """A prune removes the Canary and what it owns; the target's zero is nobody's wish, and the next Canary begins from it."""
    sim = prepared()
    sim.remove("canaries", "web")
    sim.settle()
    assert sim.get("deployments", "web-primary") is None
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    sim.run(10)
    assert sim.primary["spec"]["replicas"] == 1
    assert runs(sim) == 0


def test_pruned_together_with_its_target_nothing_is_left() -> None:
    sim = prepared()
    sim.remove("deployments", "web")
    sim.remove("canaries", "web")
    sim.run(5)
    assert sim.objects == {}


# -- two Canaries, one target ------------------------------------------------------------------------------------------------


def rivals() -> Sim:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("services", service())
    sim.add("canaries", canary() | {"metadata": {"name": "first", "namespace": "n"}})
    sim.add("canaries", canary(revertOnDeletion=True))
    sim.run(10)
    return sim


def test_the_younger_of_two_canaries_with_one_target_is_refused_until_the_older_goes() -> None:
    sim = rivals()
    assert sim.condition("Accepted")["reason"] == "Conflict"
    assert "first" in sim.condition("Accepted")["message"]
    assert {kind for _, kind, _ in sim.actions} == {"canaries"}
    sim.remove("canaries", "first")
    sim.run(until="Initialized")
    assert not sim.condition("Accepted")


def test_the_younger_of_two_canaries_reverts_nothing_when_it_goes() -> None:
    sim = rivals()
    sim.edit("canaries", "web", {"metadata": {"finalizers": ["finalizer.flagger.app"]}})
    sim.edit("deployments", "web", {"spec": {"replicas": 0}}, "rollout-drill-controller")
    sim.remove("canaries", "web")
    sim.run(5, until="gone")
    assert sim.deployment("web")["spec"]["replicas"] == 0
