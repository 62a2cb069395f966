"""The faults of Flagger's detection that this controller must not have, one section for each id of known-deviations.

What stands here is the shortest proof of each; the details are in the tests of the concern: hand-over (`test_controller_handover.py`),
evidence (`…_evidence.py`), tracking (`…_tracking.py`), the table (`…_table.py`, `…_change.py`).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from harness.controller.core import Write, decide
from harness.controller.core.snapshots import deployment_snapshot
from harness.tests.controller_handover import HandOver, annotation, keyed
from harness.tests.controller_sim import (
    Refused,
    Sim,
    canary,
    deployment,
    image,
    image_of,
    never_ready,
    running,
)

JSON = dict[str, Any]


def starts(sim: Sim) -> int:
    """How many runs began, or began again."""
    return sum(row in ("start", "restart", "start-waiting") for row in sim.rows)


def writes(sim: Sim) -> int:
    return len(sim.actions)


def failed() -> Sim:
    sim = running(never_ready("web"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.settle()
    return sim


# -- D1: a change in Failed is recorded when its run starts, not before -------------------------------------------------------


def test_d1_a_change_in_failed_is_not_lost_when_the_start_is_refused() -> None:
    sim = failed()
    before = sim.status["lastAppliedSpec"]

    def refuse(write: Write) -> None:
        raise Refused(write)

    sim.edit("deployments", "web", image("app:3"))
    sim.before_write = refuse
    for _ in range(5):
        with pytest.raises(Refused):
            sim.controller_pass()
    assert (sim.phase, sim.status["lastAppliedSpec"]) == ("Failed", before)
    sim.before_write = None
    sim.run(until="Progressing")
    assert sim.status["lastAppliedSpec"] == deployment_snapshot(sim.target).hash


def test_d1_a_change_that_has_to_wait_for_pods_is_not_recorded_either() -> None:
    sim = failed()
    before = dict(sim.status)
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 0}})
    sim.edit("deployments", "web", image("app:3"))
    sim.run(100)
    assert "hold-start" in sim.rows
    assert sim.status == before
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 3}})
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


# -- D2: a template changed while the primary starts is not recorded as promoted ----------------------------------------------


def test_d2_a_change_during_the_bootstrap_gets_a_run() -> None:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(0.5)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Initialized")
    assert image_of(sim.primary) == "app:1"
    assert sim.status["lastPromotedSpec"] != deployment_snapshot(sim.target).hash
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


# -- D3: an upgrade of the controller, or of the API, starts nothing ----------------------------------------------------------


@pytest.mark.parametrize("phase", ["Initialized", "Succeeded"])
def test_d3_statuses_of_an_older_version_start_nothing(phase: str) -> None:
    sim = HandOver(phase).take_over()
    assert (sim.starts, sim.tracking_writes) == (0, 1)


@pytest.mark.parametrize("scaled", [False, True])
def test_d3_hashes_that_drift_start_nothing(*, scaled: bool) -> None:
    sim = running()
    sim.edit_status(
        {"lastAppliedSpec": "v2:0123456789abcdef", "lastPromotedSpec": "v2:0123456789abcdef"}
    )
    if scaled:
        sim.edit("deployments", "web", {"spec": {"replicas": 4}}, "hpa")
        sim._roll("web")
    before = writes(sim)
    sim.run(100)
    assert starts(sim) == 0
    assert sim.actions[before:] == [("status", "canaries", "web")]
    assert sim.status["lastPromotedSpec"] == deployment_snapshot(sim.target).hash


@pytest.mark.parametrize("read", [True, False])
def test_a_revision_that_lags_behind_the_observed_generation_hides_no_change(*, read: bool) -> None:
    """One write changes template and replicas: for a moment the generation is observed, and the revision is the one before.

    `read`: whether the ReplicaSets, which show that, may be read.
    """
    sim = running()
    sim.edit(
        "deployments", "web", {**image("app:2"), "spec": {**image("app:2")["spec"], "replicas": 4}}
    )
    target = sim.objects["deployments", "web"]
    target["status"]["observedGeneration"] = target["metadata"]["generation"]
    fence = deployment_snapshot(target).fence
    assert fence.revision == sim.status["lastTrackedRevision"].rpartition("/")[2]
    asked = decide(sim.world(), sim.canary, sim.now)
    assert asked.reads_revisions
    known = replace(sim.world(), revisions=tuple(sim.replica_sets) if read else ())
    assert decide(known, sim.canary, sim.now).row == "start"


# -- D5: a manual rollback ends the run ---------------------------------------------------------------------------------------


def test_d5_the_promoted_template_put_back_ends_the_run_and_the_bad_one_is_found_again() -> None:
    sim = running(analysis={"interval": "2s", "threshold": 2, "iterations": 9})
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(5)
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "ManualRollback"
    assert sim.target["spec"]["replicas"] == 0
    sim.run(100)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    assert starts(sim) == 2


# -- D6: what is recorded is what was compared --------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_d6_a_change_between_comparison_and_status_is_found(end: str) -> None:
    """The user is faster than our last write of the run: before it, or between it and the status."""
    for moment in ("write", "status"):
        sim = running(never_ready("web") if end == "Failed" else never_ready())
        sim.edit("deployments", "web", image("app:2"))
        sim.run(until="Progressing")
        compared = sim.status["lastAppliedSpec"]

        def change(given: Any, sim: Sim = sim, moment: str = moment) -> None:
            ends = moment == "status" and given.get("phase") == end
            zero = moment == "write" and given.body.get("spec", {}).get("replicas") == 0
            if ends or zero:
                sim.before_status = sim.before_write = None
                sim.edit("deployments", "web", image("app:3"))

        if moment == "write":
            sim.before_write = change
        else:
            sim.before_status = change
        sim.run(until=end) if moment == "status" else sim.run(30)
        if moment == "status":
            assert sim.status["lastAppliedSpec"] == compared
        sim.run(200)
        assert image_of(sim.primary) == "app:3", (end, moment, sim.phases())


# -- D7: fields that nobody knows count ---------------------------------------------------------------------------------------


def test_d7_a_field_that_no_client_knows_is_a_change() -> None:
    sim = running()
    field = {"spec": {"template": {"spec": {"fieldOfTheFuture": {"x": 1}}}}}
    sim.edit("deployments", "web", field)
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["template"]["spec"]["fieldOfTheFuture"] == {"x": 1}


# -- D10: a CRD that prunes the fence -----------------------------------------------------------------------------------------


def degraded() -> Sim:
    """A settled Canary under a CRD without the field."""
    sim = Sim()
    sim.prunes_fence = True
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    sim.settle()
    return sim


def test_d10_a_settled_canary_swallows_nothing() -> None:
    sim = degraded()
    assert "lastTrackedRevision" not in sim.status
    sim.edit("deployments", "web", annotation("x"))
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["template"]["metadata"]["annotations"]["note"] == "x"


def test_d10_a_running_canary_does_not_restart_forever() -> None:
    sim = degraded()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert starts(sim) == 1
    sim.settle()
    count = writes(sim)
    sim.run(1000)
    assert writes(sim) == count


def test_d10_it_is_said_once_and_heals() -> None:
    sim = degraded()
    assert sim.condition("Degraded")["status"] == "True"
    assert len([text for text in sim.messages() if "lastTrackedRevision" in text]) == 1
    assert [a for a in sim.actions if a[1] == "canaries"][-1] == ("patch", "canaries", "web")
    sim.prunes_fence = sim.knows_pruning = False
    sim.settle()
    assert sim.condition("Degraded") == {}
    assert sim.status["lastTrackedRevision"] == str(deployment_snapshot(sim.target).fence)
    assert sim.canary["metadata"]["annotations"] == {}
    assert starts(sim) == 0


def test_d10_killed_at_any_write_nothing_starts_and_nothing_is_lost() -> None:
    def story(kill: int | None) -> Sim:
        sim = degraded()
        sim.kill_after = kill
        sim.prunes_fence = sim.knows_pruning = False
        sim.settle()
        sim.prunes_fence = sim.knows_pruning = True
        sim.edit("canaries", "web", {"status": {"lastTrackedRevision": None}})
        sim.settle()
        sim.edit("deployments", "web", {"spec": {"replicas": 4}}, "hpa")
        sim.settle()
        assert "Progressing" not in sim.phases()
        sim.edit("deployments", "web", image("app:2"))
        sim.run(until="Succeeded")
        assert sim.phases().count("Progressing") == 1
        assert image_of(sim.primary) == "app:2"
        return sim

    whole = story(None)
    for number in range(1, len(whole.actions)):
        story(number)


def test_d10_only_the_fence_is_missing_every_feature_is_served() -> None:
    """No feature needs the field: nothing is refused for the lack of it."""
    sim = degraded()
    assert sim.condition("Accepted") == {}


# -- D11: adoption needs no images but evidence -------------------------------------------------------------------------------


def test_d11_a_change_that_is_no_image_is_found() -> None:
    sim = HandOver("Succeeded")
    sim.change(annotation("x"))
    assert sim.take_over().starts == 1


def test_d11_a_field_that_the_primary_lost_is_no_evidence_and_is_said_once() -> None:
    sim = HandOver("Succeeded", target=keyed(), lost=True).take_over()
    assert (sim.starts, len(sim.warnings)) == (0, 1)


# -- U1: a recreated target that equals what runs -----------------------------------------------------------------------------


def restored(sim: Sim, *, status: bool) -> None:
    """Every object made anew from a backup, with new UIDs; with or without the Canary's status."""
    for key, obj in list(sim.objects.items()):
        if key[0] == "services":
            continue
        fresh = copy.deepcopy(obj)
        kept = fresh.pop("status", None)
        for name in ("managedFields", "resourceVersion", "uid"):
            fresh["metadata"].pop(name, None)
        fresh.pop("seen", None)
        sim.remove(*key)
        sim.add(key[0], fresh)
        if key[0] == "canaries" and status:
            sim.edit_status(kept or {}, "velero")
    owner = {"kind": "Canary", "name": "web", "uid": sim.canary["metadata"]["uid"]}
    references = [owner | {"controller": True}]
    sim.edit("deployments", "web-primary", {"metadata": {"ownerReferences": references}})


@pytest.mark.parametrize("status", [True, False], ids=["with-status", "without-status"])
def test_u1_restored_from_a_backup_nothing_starts(*, status: bool) -> None:
    for phase in ("Initialized", "Succeeded"):
        sim = running()
        if phase == "Succeeded":
            sim.edit("deployments", "web", image("app:2"))
            sim.run(until="Succeeded")
            sim.settle()
        before, uid = starts(sim), sim.target["metadata"]["uid"]
        restored(sim, status=status)
        sim.run(100)
        assert sim.target["metadata"]["uid"] != uid
        assert starts(sim) == before
        assert sim.status["lastTrackedRevision"].startswith(sim.target["metadata"]["uid"])
        said = [text for text in sim.messages() if "recreated unchanged" in text]
        assert len(said) == status


def test_u1_with_a_primary_that_lost_a_field_nothing_starts_either() -> None:
    sim = HandOver("Succeeded", target=keyed(), lost=True).take_over()
    restored(sim, status=True)
    sim.run(100)
    assert sim.starts == 0


def test_u1_recreated_with_another_template_is_a_change() -> None:
    sim = running()
    restored(sim, status=True)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert starts(sim) == 1


def test_u1_recreated_over_another_primary_is_a_change() -> None:
    sim = running()
    sim.edit("deployments", "web-primary", image("app:other"))
    restored(sim, status=True)
    sim.run(100)
    assert starts(sim) == 1


# -- B1: intervals from one second --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "pace"), [("1s", 1.0), ("3s", 3.0), ("500ms", 1.0)])
def test_b1_intervals_from_one_second_are_honoured(given: str, pace: float) -> None:
    sim = running(analysis={"interval": given, "threshold": 1, "iterations": 4})
    sim.edit("deployments", "web", image("app:2"))
    began = sim.now
    sim.run(until="Promoting")
    assert sim.now - began == pytest.approx(1.0 + 4 * pace, abs=0.05)


# -- and all of it without looking at anything but its arguments --------------------------------------------------------------


def test_the_same_world_gives_the_same_decision() -> None:
    sim = HandOver("Succeeded", target=keyed(), lost=True)
    world = sim.world()
    assert decide(world, sim.canary, sim.now) == decide(copy.deepcopy(world), sim.canary, sim.now)
