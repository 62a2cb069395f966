"""`analysis.restore: revert`: a failed revision is taken out of the target again, once (spec freeze-and-adopt 6)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.restore import failed_again, pending
from harness.controller.core.snapshots import snapshot
from harness.tests.controller_restore import (
    REVERT,
    events,
    fail,
    runs,
    settled,
    starting,
    told,
)
from harness.tests.controller_sim import (
    Sim,
    canary,
    deployment,
    image,
    image_of,
    kservice,
    merge,
    never_ready,
    running,
    service,
    target_ref,
    yes,
)

if TYPE_CHECKING:
    from harness.controller.core import Write

JSON = dict[str, Any]


# -- what it does ------------------------------------------------------------------------------------------------------------


def test_the_promoted_template_is_back_at_zero_and_nothing_else_has_changed() -> None:
    target = deployment(replicas=2, revisionHistoryLimit=3, minReadySeconds=1)
    target["metadata"] |= {
        "labels": {"team": "a"},
        "annotations": {"note": "kept"},
        "ownerReferences": [{"kind": "App", "name": "o", "uid": "u", "apiVersion": "x/v1"}],
        "finalizers": ["x/y"],
    }
    sim = starting(target)
    before = copy.deepcopy(sim.target)
    fail(sim)
    assert (sim.phase, told(sim)) == ("Failed", ("True", "Reverted"))
    wanted = merge(before, {"spec": {"replicas": 0}})
    assert sim.target["spec"] == wanted["spec"]
    fleeting = ("generation", "resourceVersion", "managedFields", "annotations")
    for key in wanted["metadata"].keys() | sim.target["metadata"].keys():
        if key not in fleeting:
            assert sim.target["metadata"].get(key) == wanted["metadata"].get(key), key
    assert sim.target["metadata"]["annotations"]["note"] == "kept"
    assert image_of(sim.primary) == "app:1"
    assert sim.ready_pods("web-primary") == 2


def test_it_is_remembered_what_failed_and_what_the_target_holds_and_no_run_starts_from_it() -> None:
    sim = starting()
    failing = snapshot(merge(sim.target, image("app:2"))).hash
    fail(sim)
    status = sim.status
    assert status["lastFailedSpec"] == failing
    assert status["lastAppliedSpec"] == status["lastPromotedSpec"] == snapshot(sim.target).hash
    assert status["lastTrackedRevision"] == str(snapshot(sim.target).fence)
    assert runs(sim) == 1
    assert events(sim, "Restored: ") == [
        "Restored: Deployment web holds the promoted template again"
    ]
    settled(sim)


def test_the_status_announces_it_before_the_target_is_written() -> None:
    sim = starting()
    seen: list[tuple[str, bool]] = []
    sim.before_write = lambda write: (
        seen.append((sim.phase, pending(sim.status))) if write.verb == "replace" else None
    )
    fail(sim)
    assert seen == [("Failed", True)]


def test_without_the_field_the_target_keeps_what_failed() -> None:
    sim = starting(analysis={key: REVERT[key] for key in REVERT if key != "restore"})
    fail(sim)
    assert image_of(sim.target) == "app:2"
    assert told(sim) == ("", "")
    assert "lastFailedSpec" not in sim.status


def test_failed_checks_and_rollback_hooks_count_as_well() -> None:
    metric = {"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 101}}
    sim = starting(analysis={**REVERT, "metrics": [metric]})
    sim.delay = never_ready()
    fail(sim)
    assert (image_of(sim.target), told(sim)) == ("app:1", ("True", "Reverted"))
    hook = {"type": "rollback", "name": "undo", "url": "http://undo.test/"}
    sim = starting(analysis={**REVERT, "webhooks": [hook]})
    sim.delay = never_ready()
    sim.script["undo"] = yes()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.run(10)
    assert sim.condition("Promoted")["reason"] == "RollbackHook"
    assert (image_of(sim.target), told(sim)) == ("app:1", ("True", "Reverted"))


def test_a_revision_that_is_rejected_before_its_run_is_taken_out_as_well() -> None:
    hooks = [
        {"type": kind, "name": name, "url": f"http://{name}.test/"}
        for kind, name in (("confirm-rollout", "start"), ("rollback", "undo"))
    ]
    sim = starting(analysis={**REVERT, "webhooks": hooks})
    sim.script["start"] = None
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Waiting")
    sim.script["undo"] = yes()
    sim.run(until="Failed")
    sim.run(10)
    assert (image_of(sim.target), told(sim)) == ("app:1", ("True", "Reverted"))
    assert runs(sim) == 0


def test_an_abort_needs_no_restoration_and_a_failed_promotion_gets_none() -> None:
    sim = starting()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    sim.run(10)
    assert (told(sim), "lastFailedSpec" in sim.status) == (("", ""), False)
    sim.delay = never_ready("web-primary")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Promoting")
    sim.run(until="Failed")
    sim.run(30)
    assert sim.condition("Promoted")["reason"] == "PromotionFailed"
    assert (image_of(sim.target), told(sim)) == ("app:2", ("", ""))


def test_a_repair_that_fails_keeps_its_pods_and_is_not_taken_out() -> None:
    gateway = {"port": 80, "gatewayRefs": [{"name": "gateway"}]}
    weights = {"interval": "2s", "threshold": 2, "stepWeight": 50, "restore": "revert"}
    sim = starting(provider="gatewayapi:v1", service=gateway, analysis=weights)
    sim.delay = never_ready("web-primary", images=("app:2", "app:3"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.delay = never_ready("web", "web-primary", images=("app:2", "app:3"))
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    assert sim.condition("Repairing")
    sim.run(until="Failed")
    sim.run(30)
    assert (image_of(sim.target), told(sim)) == ("app:3", ("", ""))
    assert sim.target["spec"]["replicas"] == 3


def test_hooks_after_the_run_are_called_once_all_the_same() -> None:
    hook = {"type": "post-rollout", "name": "after", "url": "http://after.test/"}
    sim = starting(analysis={**REVERT, "webhooks": [hook]})
    fail(sim)
    assert [name for _, name in sim.calls] == ["after"]
    assert told(sim) == ("True", "Reverted")


# -- a repository that applies it again ----------------------------------------------------------------------------------------


def test_applied_again_it_is_analysed_once_more_and_then_left_where_it_is() -> None:
    sim = starting()
    fail(sim)
    failed = sim.status["lastFailedSpec"]
    fail(sim)
    assert (sim.phase, told(sim)) == ("Failed", ("False", "AppliedAgain"))
    assert (image_of(sim.target), sim.target["spec"]["replicas"]) == ("app:2", 0)
    assert runs(sim) == 2
    assert sim.status["lastFailedSpec"] == failed
    assert failed_again(sim.status, failed)
    assert len(events(sim, "Not restored: ")) == 1
    assert "still holds the failed version" in sim.condition("Restored")["message"]
    settled(sim)


def test_a_tool_that_applies_it_again_and_again_gets_two_analyses_and_no_more() -> None:
    sim = starting()
    sim.edit("deployments", "web", image("app:2"))
    for _ in range(100):
        sim.run(5)
        sim.edit("deployments", "web", image("app:2"), manager="gitops")
    assert runs(sim) == 2
    assert (sim.phase, told(sim)) == ("Failed", ("False", "AppliedAgain"))


def test_another_version_that_fails_is_taken_out_and_a_fixed_one_clears_it_all() -> None:
    sim = starting()
    fail(sim)
    fail(sim)
    first = sim.status["lastFailedSpec"]
    fail(sim, "app:3")
    assert told(sim) == ("True", "Reverted")
    assert sim.status["lastFailedSpec"] != first
    assert image_of(sim.target) == "app:1"
    sim.edit("deployments", "web", image("app:4"))
    sim.run(until="Succeeded")
    assert (told(sim), "lastFailedSpec" in sim.status) == (("", ""), False)
    fail(sim, "app:3")
    assert told(sim) == ("True", "Reverted")
    assert image_of(sim.target) == "app:4"


def test_a_revision_that_comes_before_the_write_wins() -> None:
    sim = starting()
    faster: list[str] = ["app:4"]

    def before_write(write: Write) -> None:
        if write.verb == "replace" and faster:
            sim.edit("deployments", "web", image(faster.pop()))

    sim.before_write = before_write
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.run(until="Succeeded")
    assert not faster
    assert image_of(sim.primary) == "app:4"
    assert not events(sim, "Restored")


# -- settings ------------------------------------------------------------------------------------------------------------------


def refused(sim: Sim) -> str:
    sim.run(5)
    found = sim.condition("Accepted")
    return f"{found.get('reason')}: {found.get('message')}"


def test_a_freeze_and_a_restoration_exclude_each_other() -> None:
    sim = running()
    sim.edit("canaries", "web", {"spec": {"analysis": {**REVERT, "freezeOnFailure": True}}})
    text = refused(sim)
    assert text.startswith("Invalid: spec.analysis.freezeOnFailure and spec.analysis.restore")


@pytest.mark.parametrize("kind", ["Service", "Knative"])
def test_targets_without_a_template_of_their_own_are_refused(kind: str) -> None:
    sim = Sim()
    sim.add(
        "services" if kind == "Service" else "kservices",
        service() if kind == "Service" else kservice(),
    )
    provider = "istio" if kind == "Service" else "knative"
    sim.add("canaries", canary(targetRef=target_ref(kind), provider=provider, analysis=REVERT))
    text = refused(sim)
    assert text.startswith("Invalid: spec.analysis.restore: 'revert' is not possible")
    assert "allowed kinds of spec.targetRef: Deployment, DaemonSet" in text


def test_a_value_that_is_none_is_refused() -> None:
    sim = running()
    sim.edit("canaries", "web", {"spec": {"analysis": {"restore": "rewind"}}})
    assert (
        refused(sim)
        == "Invalid: spec.analysis.restore: 'rewind' is not known; allowed: adopt, revert"
    )


def test_a_restoration_that_is_not_wanted_any_more_is_called_off() -> None:
    sim = starting()
    sim.admission = lambda verb, _plural, _obj: "not now" if verb == "replace" else ""
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.run(5)
    assert told(sim) == ("Unknown", "Pending")
    sim.edit("canaries", "web", {"spec": {"analysis": {"restore": None}}})
    sim.run(60)
    assert (told(sim), image_of(sim.target)) == (("", ""), "app:2")
