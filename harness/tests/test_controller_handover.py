"""Canaries that another controller left, in every phase: what is taken over, what starts, what is written (B4, D11, gap G2)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.evidence import HISTORY, current_revision
from harness.controller.core.names import MANAGER
from harness.tests.controller_handover import (
    FLAGGER,
    LEGACY,
    HandOver,
    annotation,
    in_legacy_form,
    keyed,
)
from harness.tests.controller_sim import deployment, image, image_of, never_ready, running

JSON = dict[str, Any]

SETTLED = ("Initialized", "Succeeded")
MID_RUN = ("Waiting", "Progressing", "WaitingPromotion", "Failed")
PROMOTING = ("Promoting", "Finalising")


def is_ours(status: JSON) -> bool:
    """Whether the tracking fields all have the present form."""
    hashes = [str(status.get(key) or "") for key in ("lastAppliedSpec", "lastPromotedSpec")]
    return all(found.startswith("v2:") for found in hashes) and "/" in status["lastTrackedRevision"]


# -- nothing happened meanwhile ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True], ids=["equal", "field-lost"])
@pytest.mark.parametrize("phase", SETTLED)
def test_a_settled_canary_is_taken_over_with_one_tracking_write(phase: str, *, lost: bool) -> None:
    sim = HandOver(phase, target=keyed(), lost=lost)
    before = dict(sim.status)
    primary = sim.primary["spec"]["template"]
    sim.take_over()
    assert (sim.starts, sim.tracking_writes, sim.phase) == (0, 1, phase)
    assert is_ours(sim.status)
    assert sim.primary["spec"]["template"] == primary
    # Phase, counters, times, conditions and what we do not know stay.
    tracked = ("lastAppliedSpec", "lastPromotedSpec", "lastTrackedRevision", "trackedConfigs")
    assert {k: v for k, v in sim.status.items() if k not in tracked} == {
        k: v for k, v in before.items() if k not in tracked
    }
    assert len(sim.warnings) == lost
    assert all("matchLabelKeys" in text for text in sim.warnings)


@pytest.mark.parametrize("phase", MID_RUN)
def test_a_run_of_the_other_starts_over_once(phase: str) -> None:
    sim = HandOver(phase).take_over()
    assert (sim.starts, sim.phase) == (1, "Succeeded")
    # One when the run begins, one when it has succeeded.
    assert sim.tracking_writes == 2
    assert is_ours(sim.status)
    assert sim.status["trackedConfigs"] == {"configmap/web-config": "241889ca0604e333"}
    assert not sim.warnings


@pytest.mark.parametrize("lost", [False, True], ids=["equal", "field-lost"])
@pytest.mark.parametrize("phase", PROMOTING)
def test_a_promotion_of_the_other_ends_in_our_form(phase: str, *, lost: bool) -> None:
    sim = HandOver(phase, target=keyed(), lost=lost).take_over()
    assert (sim.starts, sim.phase) == (0, "Succeeded")
    assert sim.tracking_writes == 2
    assert is_ours(sim.status)
    assert sim.status["lastPromotedSpec"] == sim.status["lastAppliedSpec"]
    assert "replace" not in {verb for verb, _, _ in sim.actions}
    assert len(sim.warnings) == lost


def test_a_bootstrap_of_the_other_is_finished() -> None:
    sim = HandOver("Initializing").take_over()
    assert (sim.starts, sim.tracking_writes, sim.phase) == (0, 1, "Initialized")
    assert is_ours(sim.status)


def test_what_was_taken_over_is_an_ordinary_canary_from_then_on() -> None:
    for phase in (*SETTLED, *MID_RUN, *PROMOTING):
        sim = HandOver(phase).take_over()
        writes, starts = len(sim.actions), sim.starts
        sim.run(1000)
        assert len(sim.actions) == writes, phase
        sim.edit("deployments", "web", image("app:9"))
        sim.run(100)
        assert (sim.phase, sim.starts) == ("Succeeded", starts + 1), phase
        assert image_of(sim.primary) == "app:9"


# -- the target was changed while nobody watched -----------------------------------------------------------------------------


@pytest.mark.parametrize("change", [image("app:8"), annotation("x")], ids=["image", "annotation"])
@pytest.mark.parametrize("phase", SETTLED)
def test_a_change_while_nobody_watched_is_analysed(phase: str, change: JSON) -> None:
    sim = HandOver(phase, target=keyed(), lost=True)
    sim.change(change)
    sim.take_over()
    assert (sim.starts, sim.phase) == (1, "Succeeded")
    assert not sim.warnings
    assert sim.primary["spec"]["template"]["spec"] is not None
    assert sim.status["lastPromotedSpec"] == sim.status["lastAppliedSpec"]


@pytest.mark.parametrize("phase", PROMOTING)
def test_a_change_during_the_other_s_promotion_is_analysed_after_it(phase: str) -> None:
    """Gap G2: the promotion ends, and what came after it is not hidden by its status."""
    sim = HandOver(phase)
    sim.change(annotation("meanwhile"), after=0)
    sim.take_over()
    assert sim.phases()[-1] == "Succeeded"
    assert sim.starts == 1
    assert sim.primary["spec"]["template"]["metadata"]["annotations"]["note"] == "meanwhile"


def test_a_change_before_the_last_status_of_the_other_s_promotion_is_analysed_too() -> None:
    """The promotion's moment counts, not the last status: Finalising was written after the change."""
    sim = HandOver("Promoting")
    sim.change(annotation("meanwhile"), after=2)
    sim.later(5)
    sim.flagger_status("Finalising", "2222222222", LEGACY)
    sim.take_over()
    assert (sim.starts, sim.phase) == (1, "Succeeded")


def test_a_change_during_the_other_s_bootstrap_is_analysed() -> None:
    """D2 across a hand-over: the primary was made from an older template."""
    sim = HandOver("Initializing")
    sim.change(annotation("meanwhile"), after=5)
    sim.take_over()
    assert sim.phases()[:2] == ["Initialized", "Progressing"]
    assert (sim.starts, sim.phase) == (1, "Succeeded")


def test_scaling_while_nobody_watched_is_no_change() -> None:
    for manager in ("hpa", "user"):
        sim = HandOver("Succeeded", target=keyed(), lost=True)
        sim.later(30)
        # The user's entry holds the template as well: its time moves although the template does not.
        sim.edit("deployments", "web", {"spec": {"replicas": 5}}, manager)
        sim._roll("web")
        sim.take_over()
        assert (sim.starts, sim.tracking_writes) == (0, 1), manager


def test_an_earlier_template_put_back_while_nobody_watched_is_a_change() -> None:
    """Its ReplicaSet is old; only managedFields and the ReplicaSet's history tell."""
    sim = HandOver("Succeeded", target=keyed(), lost=True)
    sim.change(image("app:1"))
    current = current_revision(sim.target, sim.replica_sets)
    assert current is not None
    assert HISTORY in current["metadata"]["annotations"]
    sim.take_over()
    assert (sim.starts, sim.phase) == (1, "Succeeded")
    assert image_of(sim.primary) == "app:1"


def test_a_change_and_back_is_none() -> None:
    sim = HandOver("Succeeded")
    sim.change(image("app:8"))
    sim.change(image("app:2"))
    sim.take_over()
    assert (sim.starts, sim.tracking_writes, sim.warnings) == (0, 1, [])


# -- what else may meet a hand-over ------------------------------------------------------------------------------------------


def test_without_a_primary_nothing_is_adopted_and_nothing_starts() -> None:
    sim = HandOver("Succeeded")
    primary = sim.primary
    sim.remove("deployments", "web-primary")
    sim.take_over()
    assert (sim.starts, sim.tracking_writes) == (0, 0)
    assert sim.looks[-1] == "migration-failed"
    assert len(sim.warnings) == 1
    assert "web-primary is gone" in sim.warnings[0]
    sim.add("deployments", primary)
    sim.take_over()
    assert (sim.starts, sim.tracking_writes) == (0, 1)


def test_a_second_writer_in_the_middle_wins() -> None:
    """The other controller is not quite gone: it writes between our decision and our write."""
    sim = HandOver("Succeeded")

    def other(_: JSON) -> None:
        sim.before_status = None
        sim.later(1)
        sim.flagger_status("Succeeded", "7777777777", "7777777777")

    sim.before_status = other
    sim.take_over()
    assert (sim.starts, sim.tracking_writes) == (0, 1)
    assert is_ours(sim.status)
    refused = [action for action in sim.actions if action[0] == "status"]
    assert len(refused) == 2, "one refused, one decided anew"


def test_a_second_writer_that_starts_a_run_wins() -> None:
    sim = HandOver("Succeeded")

    def other(_: JSON) -> None:
        sim.before_status = None
        sim.flagger_status("Promoting", "3333333333", "2222222222")

    sim.before_status = other
    sim.take_over()
    assert "adopt-promotion" in sim.rows
    assert (sim.starts, sim.phase) == (0, "Succeeded")


def test_a_target_and_a_primary_at_zero_are_taken_over_as_they_are() -> None:
    sim = HandOver("Succeeded")
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 0}})
    sim.take_over()
    assert (sim.starts, sim.tracking_writes) == (0, 1)
    assert sim.target["spec"]["replicas"] == sim.primary["spec"]["replicas"] == 0


@pytest.mark.parametrize("phase", [*SETTLED, *MID_RUN, *PROMOTING])
def test_a_suspended_canary_is_not_taken_over_yet(phase: str) -> None:
    sim = HandOver(phase)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.take_over()
    assert sim.actions == []
    assert sim.looks
    assert set(sim.looks) == {"suspended"}
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(200)
    assert is_ours(sim.status)


def test_the_failed_revision_fails_once_more_and_then_stays() -> None:
    """Failed restarts once (B4); the run is recorded when it begins, not before (D1), and not again after."""
    sim = HandOver("Failed")
    sim.delay = never_ready("web")
    sim.take_over()
    assert (sim.starts, sim.phase) == (1, "Failed")
    sim.run(1000)
    assert sim.starts == 1


@pytest.mark.parametrize("phase", ["Progressing", "Failed"])
def test_what_the_other_promoted_is_recognised_when_it_is_put_back(phase: str) -> None:
    """D5 across a hand-over: its hash is unknown, but the primary runs it."""
    sim = HandOver(phase)
    sim.edit("canaries", "web", {"spec": {"analysis": {"iterations": 99}}})
    sim.later(30)
    sim.run(until="Progressing")
    sim.run(5)
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "ManualRollback"
    sim.run(100)
    assert (sim.phase, sim.starts) == ("Failed", 1)
    assert image_of(sim.primary) == "app:1"


def test_killed_at_any_write_a_hand_over_ends_the_same() -> None:
    for phase in (*SETTLED, *MID_RUN, *PROMOTING):
        whole = HandOver(phase, target=keyed(), lost=True).take_over()
        for number in range(1, len(whole.actions) + len(whole.notes) + 1):
            sim = HandOver(phase, target=keyed(), lost=True)
            sim.kill_after = number
            sim.take_over()
            assert (sim.phase, sim.starts > 0) == (whole.phase, whole.starts > 0), (phase, number)
            assert sorted(sim.warnings) == sorted(whole.warnings)
            assert is_ours(sim.status)


# -- statuses of our own that somebody put into the old form -----------------------------------------------------------------


def test_our_own_status_in_legacy_form_is_taken_over() -> None:
    sim = running()
    sim.now += 100
    in_legacy_form(sim)
    before = len(sim.actions)
    sim.run(100)
    assert sim.actions[before:] == [("status", "canaries", "web")]
    assert is_ours(sim.status)


def test_our_own_primary_says_what_it_was_made_from() -> None:
    """Better than any time: the template changed long before the status, and yet it was never promoted."""
    sim = running()
    sim.now += 100
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.edit("deployments", "web", image("app:2"))
    sim.settle()
    sim.now += 100
    sim.edit_status({"lastTransitionTime": "2027-01-15T08:30:00Z"}, MANAGER)
    in_legacy_form(sim)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


def test_a_hand_patched_status_does_not_hide_a_change_before_it() -> None:
    """The last write that counts is that of whoever watched; a patch by hand came later and watched nothing."""
    sim = HandOver("Succeeded", target=deployment())
    sim.change(annotation("x"))
    sim.later(30)
    sim.edit_status({"lastAppliedSpec": "9999999999", "lastPromotedSpec": "9999999999"})
    managers = {entry["manager"] for entry in sim.canary["metadata"]["managedFields"]}
    assert {FLAGGER, "user"} <= managers
    sim.take_over()
    assert sim.starts == 1
