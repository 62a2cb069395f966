"""Handback: what each Canary needs so that a Flagger finds its own hash, and what is said about those it will start."""

from __future__ import annotations

from typing import Any

import pytest

from harness.handback.answers import Told
from harness.handback.plan import Case, Fate, Recorded, plan
from harness.tests.controller_sim import merge

JSON = dict[str, Any]

V2, OLD_V2 = "v2:aaaaaaaaaaaaaaaa", "v2:bbbbbbbbbbbbbbbb"
NOW, BEFORE = "666b6b6fb6", "7874dcb6f7"
CM = {"configmap/settings": "241889ca0604e333"}


def case(phase: str, recorded: Recorded = Recorded.SAME, **more: Any) -> Case:
    status: JSON = {
        "phase": phase,
        "lastAppliedSpec": V2,
        "lastPromotedSpec": V2,
        "lastTrackedRevision": "uid/3/1",
    }
    status |= more.pop("status", {})
    spec = more.pop("spec", {})
    canary = {"metadata": {"name": "web", **more.pop("metadata", {})}, "spec": spec}
    told = more.pop("told", Told(NOW, {}))
    return Case(canary | {"status": status}, recorded, told=told, **more)


def legacy_verdict(status: JSON, told: Told) -> bool:
    """Whether a Flagger up to 1.44 sees a change (spec change-detection A and B10), written down once more."""
    applied, promoted = status.get("lastAppliedSpec"), status.get("lastPromotedSpec")
    if not applied:
        return True
    if told.hash not in (promoted, applied):
        return True
    tracked = status.get("trackedConfigs")
    if not told.configs and tracked is None:
        return False
    return tracked != told.configs


@pytest.mark.parametrize(
    ("phase", "fate"),
    [
        ("Initialized", Fate.RESTS),
        ("Succeeded", Fate.RESTS),
        ("Failed", Fate.RESTS),
        ("Progressing", Fate.GOES_ON),
        ("WaitingPromotion", Fate.GOES_ON),
        ("Waiting", Fate.GOES_ON),
        ("Promoting", Fate.GOES_ON),
        ("Finalising", Fate.GOES_ON),
    ],
)
@pytest.mark.parametrize("configs", [{}, CM])
def test_a_target_that_is_the_one_on_record_starts_nothing(
    phase: str, fate: Fate, configs: dict[str, str]
) -> None:
    told = Told(NOW, configs)
    before = case(phase, told=told)
    assert legacy_verdict(before.status, told), "without a handback it would start"
    result = plan(before)
    assert result.fate is fate
    after = merge(before.status, result.patch)
    assert not legacy_verdict(after, told)
    assert after["lastAppliedSpec"] == after["lastPromotedSpec"] == NOW
    assert "lastTrackedRevision" not in after
    assert after["phase"] == phase


@pytest.mark.parametrize(
    ("phase", "fate", "word"),
    [
        ("Succeeded", Fate.STARTS, "starts an analysis"),
        ("Failed", Fate.STARTS, "starts an analysis"),
        ("Progressing", Fate.STARTS, "starts the analysis over"),
        ("Promoting", Fate.STARTS, "ends the promotion, then starts"),
        ("Waiting", Fate.GOES_ON, "its gate"),
    ],
)
def test_an_unseen_change_is_not_hidden(phase: str, fate: Fate, word: str) -> None:
    before = case(phase, Recorded.CHANGED, evidence="row changed")
    result = plan(before)
    assert (result.fate, result.patch) == (fate, {})
    assert word in result.why
    assert "row changed" in result.why
    assert legacy_verdict(before.status, Told(NOW, {}))


def test_a_changed_config_is_not_hidden() -> None:
    before = case(
        "Succeeded", configs_changed=True, status={"trackedConfigs": {"configmap/a": "1"}}
    )
    result = plan(before)
    assert (result.fate, result.patch) == (Fate.STARTS, {})
    assert "ConfigMap" in result.why


def test_what_cannot_be_told_is_said_so() -> None:
    result = plan(case("Succeeded", Recorded.UNKNOWN, evidence="no primary"))
    assert result.fate is Fate.STARTS
    assert "cannot be told" in result.why


def test_a_hash_in_place_proves_more_than_our_comparison() -> None:
    before = case(
        "Succeeded",
        Recorded.UNKNOWN,
        status={"lastAppliedSpec": NOW, "lastPromotedSpec": NOW, "lastTrackedRevision": None},
    )
    result = plan(before)
    assert (result.fate, result.patch) == (Fate.RESTS, {})
    assert "in place already" in result.why


def test_a_failed_one_keeps_both_revisions_apart() -> None:
    before = case("Failed", status={"lastPromotedSpec": OLD_V2}, promoted=BEFORE)
    after = merge(before.status, plan(before).patch)
    assert (after["lastAppliedSpec"], after["lastPromotedSpec"]) == (NOW, BEFORE)
    assert not legacy_verdict(after, Told(NOW, {}))
    assert not legacy_verdict(after, Told(BEFORE, {})), "going back is seen as a rollback"


def test_a_promoted_template_that_is_gone_is_said() -> None:
    result = plan(case("Failed", status={"lastPromotedSpec": OLD_V2}))
    assert "not kept any more" in result.why
    assert "lastPromotedSpec" not in result.patch


def test_configs_of_nobody_are_removed() -> None:
    before = case(
        "Succeeded", status={"trackedConfigs": {"secret/gone": "1"} | CM}, told=Told(NOW, CM)
    )
    result = plan(before)
    assert result.patch["trackedConfigs"] == {"secret/gone": None} | CM
    assert merge(before.status, result.patch)["trackedConfigs"] == CM


def test_the_last_config_is_removed_too() -> None:
    before = case("Succeeded", status={"trackedConfigs": CM}, told=Told(NOW, {}))
    assert merge(before.status, plan(before).patch)["trackedConfigs"] == {}


@pytest.mark.parametrize(
    ("given", "fate", "word"),
    [
        (case("Succeeded", told=None), Fate.TROUBLE, "does not exist"),
        (case("Succeeded", told=Told(problem="kind 'X'")), Fate.LEFT, "kind 'X'"),
        (case("Succeeded", told=Told(NOW, configs_problem="secret s")), Fate.TROUBLE, "secret s"),
        (case("Succeeded", metadata={"deletionTimestamp": "now"}), Fate.LEFT, "deleted"),
        (case("Terminating"), Fate.LEFT, "deleted"),
        (case("Paused"), Fate.LEFT, "'Paused'"),
        (case("Initializing"), Fate.GOES_ON, "initialisation"),
        (case("Initializing", Recorded.CHANGED), Fate.GOES_ON, "moved on"),
        (
            case("Failed", status={"lastAppliedSpec": "", "lastPromotedSpec": ""}),
            Fate.TROUBLE,
            "never became ready",
        ),
    ],
)
def test_what_is_not_touched(given: Case, fate: Fate, word: str) -> None:
    result = plan(given)
    assert (result.fate, result.patch) == (fate, {})
    assert word in result.why


def test_a_flagger_with_a_fence_needs_only_its_configs() -> None:
    result = plan(case("Succeeded", fenced=True, told=Told(NOW, CM)))
    assert (result.fate, result.patch) == (Fate.RESTS, {"trackedConfigs": CM})


def test_a_suspended_one_says_when_it_counts() -> None:
    result = plan(case("Succeeded", spec={"suspend": True}))
    assert result.suspended
    assert "suspended" in result.why
    assert result.patch["lastAppliedSpec"] == NOW


def test_json_holds_all_of_it() -> None:
    shown = plan(case("Succeeded")).to_json()
    assert shown["canary"] == "web"
    assert shown["fate"] == "rests"
    assert shown["patch"]["lastTrackedRevision"] is None
