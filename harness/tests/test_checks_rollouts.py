"""Drills with many rollouts, judged: what holds for every one of them, and how a message names those for which it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.checks.judge import judge
from harness.model.outcome import ExitCode, Outcome
from harness.model.timeline import StepState, SubjectState
from harness.tests import stories
from harness.tests.populations import CHECKS, Behaviour, app_of, names, upgrade
from harness.tests.timelines import check

if TYPE_CHECKING:
    from harness.model.report import DrillReport, Finding
    from harness.tests.populations import PopulationStory


def report_of(story: PopulationStory) -> DrillReport:
    return judge(story.clean(story.t + 5).timeline())


def finding(report: DrillReport, check_id: str) -> Finding:
    found = report.finding(check_id)
    assert found is not None
    return found


def test_an_upgrade_that_starts_nothing_passes_and_says_how_all_of_them_ended() -> None:
    report = report_of(upgrade(30))
    assert report.verdict.outcome is Outcome.PASS
    assert report.verdict.sentence.startswith("Clean: all 30 rollouts ended in Succeeded, the last")
    assert report.verdict.final_phase == "Succeeded"
    assert report.verdict.took is not None
    assert report.rows == ()
    assert [row.name for row in report.rollouts] == names(30)


def test_a_control_fails_with_the_count_and_the_first_three() -> None:
    report = report_of(upgrade(30, Behaviour(started=28)))
    found = finding(report, "no-start")
    assert found.outcome is Outcome.FAIL
    assert found.evidence.startswith(
        "28 of 30 rollouts: rollout web-000 Progressing, starts 1 since"
    )
    assert found.evidence.endswith("; and 25 more")
    assert "no-start (28 of 30 rollouts, the first web-000 Progressing" in report.verdict.sentence


def test_the_control_is_as_expected_when_exactly_that_check_fails() -> None:
    wanted = {"phase": "Succeeded", "fail": ["no-start"]}
    report = report_of(upgrade(12, Behaviour(started=12), expect=wanted))
    assert report.verdict.as_expected
    assert report.verdict.exit_code is ExitCode.OK
    toothless = report_of(upgrade(12, expect=wanted))
    assert toothless.verdict.exit_code is ExitCode.FAILED


@pytest.mark.parametrize("how", [Behaviour(ignored=1), Behaviour(looks=1), Behaviour(looks=0)])
def test_a_subject_that_did_not_look_at_every_rollout_gives_unknown_though_nothing_else_fails(
    how: Behaviour,
) -> None:
    report = report_of(upgrade(10, how))
    found = finding(report, "looked-at")
    assert found.outcome is Outcome.UNKNOWN
    assert found.evidence.startswith("not shown: never true")
    assert found.statement.endswith(", otherwise unknown")
    assert {f.outcome for f in report.findings if f.id != "looked-at"} == {Outcome.PASS}
    assert report.verdict.outcome is Outcome.UNKNOWN
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert not report.verdict.as_expected


def test_who_was_not_looked_at_is_named() -> None:
    found = finding(report_of(upgrade(10, Behaviour(ignored=4))), "looked-at")
    assert found.evidence.endswith(
        "not so for 4 of 10 rollouts: web-006, web-007, web-008 and 1 more"
    )


def test_the_subjects_own_word_is_as_good_as_the_audit_log() -> None:
    report = report_of(upgrade(5, Behaviour(audit=False)))
    assert finding(report, "looked-at").outcome is Outcome.PASS


def test_a_check_that_only_says_whether_the_others_mean_anything_still_fails_without_that_word() -> (
    None
):
    checks = [{k: v for k, v in row.items() if k != "otherwise"} for row in CHECKS]
    report = report_of(upgrade(5, Behaviour(ignored=1), checks=checks))
    assert finding(report, "looked-at").outcome is Outcome.FAIL
    assert report.verdict.outcome is Outcome.FAIL


def test_of_the_values_only_the_single_ones_that_are_used_are_told() -> None:
    values = {"looks": 9, "starts": {"a": 0}, "canaries": 3}
    found = finding(report_of(upgrade(3, values=values)), "looked-at")
    assert "at the end values.looks = 9, not so for 3 of 3 rollouts" in found.evidence
    assert "canaries" not in found.evidence


def test_a_failure_is_worse_than_not_having_looked() -> None:
    report = report_of(upgrade(5, Behaviour(started=1, ignored=1)))
    assert report.verdict.outcome is Outcome.FAIL
    assert report.verdict.exit_code is ExitCode.FAILED


def unfinished(story: PopulationStory, count: int) -> PopulationStory:
    for name in names(count):
        story.canary(name, "Failed", message="rolled back")
    return story


def test_ends_in_holds_for_every_rollout_and_names_three_of_the_others() -> None:
    story = upgrade(9)
    story.at(story.t - 1.15)
    report = report_of(unfinished(story, 5).at(60))
    found = finding(report, "ends-in")
    assert found.outcome is Outcome.FAIL
    assert found.title == "All 9 rollouts end in Succeeded"
    assert (
        "not so for 5 of 9 (5 in Failed, 4 in Succeeded): web-000 ended in Failed" in found.evidence
    )
    assert found.evidence.endswith("; 2 more")
    assert report.verdict.final_phase == ""
    assert "5 in Failed, 4 in Succeeded" in finding(report, "ends-in").evidence


def test_where_any_phase_will_do_the_checks_decide() -> None:
    story = upgrade(4, expect={"phase": "any", "fail": []})
    story.at(story.t - 1.15)
    report = report_of(unfinished(story, 2).at(60))
    assert finding(report, "ends-in").outcome is Outcome.PASS
    assert "of 4 rollouts ended 2 in Failed, 2 in Succeeded" in report.verdict.sentence
    single = judge(stories.blocked(stories.body(expect={"phase": "any", "fail": []})).timeline())
    assert finding(single, "ends-in").outcome is Outcome.PASS


def test_what_a_controller_writes_at_every_tick_without_meaning_anything_is_no_change() -> None:
    story = upgrade(3)
    story.at(story.t - 0.5)
    for tick in range(3):
        for name in names(3):
            story.canary(name, "Succeeded", lastTransitionTime=f"2026-10-29T11:30:0{tick}Z")
            story.deployment(app_of(name), "r2", number=2, replicas=1)
    assert finding(report_of(story), "settled").outcome is Outcome.PASS


def test_one_of_many_that_goes_on_in_the_settle_time_is_named() -> None:
    story = upgrade(3)
    story.at(story.t - 0.5).canary("web-001", "Progressing")
    found = finding(report_of(story), "settled")
    assert found.outcome is Outcome.FAIL
    assert "the phase of web-001 went from Succeeded to Progressing" in found.evidence


def test_counts_are_split_at_the_change_and_the_target_is_witnessed_before_and_after() -> None:
    report = report_of(upgrade(2, Behaviour(started=1, writes=1)))
    first, second = report.rollouts
    assert (first.before.starts, second.before.starts) == (1, 0)
    assert (first.before.tracking_writes, first.before.primary_rolls) == (1, 0)
    assert first.after is not None
    assert (first.after.starts, first.after.primary_rolls) == (1, 1)
    assert first.target_before.text == first.target_after.text == "r1/1"
    assert first.target_unchanged
    assert report.environment.subject_text == "flagger@1.37.0 → flagger@1.38.0"


def test_what_happens_while_many_targets_are_being_changed_comes_after_the_change() -> None:
    story = upgrade(2)
    acted = next(
        line
        for line in story.lines
        if isinstance(line, StepState) and (line.step, line.state) == ("real change", "acted")
    )
    # The first one is taken up before the last one is changed.
    at = story.lines.index(acted)
    story.t = acted.t
    del story.lines[at:]
    story.promote("web-000", 2).step("real change", "acted", "held").step("promote", "started")
    story.promote("web-001", 2)
    end = story.t
    report = report_of(story.at(end).step("promote", "held").settle(end + 0.1, end + 1.1))
    assert finding(report, "once").outcome is Outcome.PASS
    assert [row.target_unchanged for row in report.rollouts] == [True, True]
    assert [row.after.starts for row in report.rollouts if row.after is not None] == [1, 1]


def test_a_target_that_changed_while_nobody_ran_is_seen_against_the_state_before() -> None:
    story = upgrade(2)
    stopped = next(
        line.t for line in story.lines if isinstance(line, SubjectState) and line.state == "stopped"
    )
    story.at(stopped + 0.5).revise("web-001", 7)
    rows = report_of(story.at(60)).rollouts
    assert rows[0].target_unchanged
    assert (rows[1].target_before.text, rows[1].target_after.text) == ("r1/1", "r7/7")


def test_the_expected_number_of_starts_comes_from_the_scenarios_table() -> None:
    story = upgrade(2, values={"looks": 2, "starts": {"calm": 0}})
    story.at(story.t - 0.5).canary("web-000", "Succeeded", "calm")
    rows = report_of(story).rollouts
    assert [(row.group, row.expected) for row in rows] == [("calm", 0), ("", None)]


def test_a_hundred_rollouts_are_judged_in_seconds() -> None:
    checks: list[dict[str, Any]] = [
        *CHECKS,
        check("phases", "never", 'rollouts.exists(r, r.phase == "Failed")'),
        check("pods", "always", "pods.all(p, !p.gated)"),
    ]
    timeline = upgrade(100, Behaviour(started=98), checks=checks).timeline()
    begin = time.process_time()
    judge(timeline)
    # About half a second of processor time; looking at all rollouts for every observation takes minutes.
    assert time.process_time() - begin < 10
