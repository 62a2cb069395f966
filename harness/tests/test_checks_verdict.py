"""The verdict: outcome, expectation, exit code, and a sentence that says no more than the findings do."""

from __future__ import annotations

from typing import Any

import pytest

from harness.checks.judge import judge
from harness.model import timeline as tl
from harness.model.outcome import ExitCode, Outcome
from harness.tests import stories
from harness.tests.stories import NEW, NORTH
from harness.tests.timelines import Recording

THREE_NODES = "3 schedulable nodes, exactly 2 wanted"


def verdict(story: Recording) -> Any:
    return judge(story.timeline()).verdict


def test_a_clean_promotion_says_how_long_it_took_and_what_held() -> None:
    result = verdict(stories.promotion().clean(529.0))
    assert result.sentence == (
        "Clean: the promotion Succeeded 6 min 12 s after the change; no pod was ever blocked; "
        "the primary was served throughout; the term on the primary is unchanged."
    )
    assert result.took == pytest.approx(372.0)


@pytest.mark.parametrize(
    ("expected", "sentence", "evidence"),
    [
        (
            "any",
            "Clean: the rollout object is gone since +8:41",
            "no phase: it is gone since +8:41",
        ),
        ("Succeeded", "Failed: ends-in (", "ended in no phase: it is gone since +8:41"),
    ],
)
def test_a_rollout_object_that_was_deleted_is_gone_and_in_no_phase(
    expected: str, sentence: str, evidence: str
) -> None:
    story = stories.promotion(stories.body(expect={"phase": expected, "fail": []}))
    place = next(index for index, line in enumerate(story.lines) if line.t > 521.0)
    rest, story.lines[place:] = story.lines[place:], []
    story.at(521.05).gone("web", "Canary")
    story.lines += rest
    report = judge(story.clean(529.0).timeline())
    assert report.verdict.sentence.startswith(sentence)
    (ends,) = [f for f in report.findings if f.id == "ends-in"]
    assert ends.evidence == f"{evidence} (6 min 12 s after the change)"


def test_a_control_that_fails_as_it_should_is_fine() -> None:
    result = verdict(stories.blocked(stories.control()).clean(368.0))
    assert (result.outcome, result.as_expected, result.exit_code) == (
        Outcome.FAIL,
        True,
        ExitCode.OK,
    )
    assert result.sentence.startswith(
        "As expected for this control: never-blocked failed (DEADLOCK: pod web-primary-"
    )
    assert result.sentence.endswith("the promotion Failed 3 min 31 s after the change.")


def test_the_same_recording_without_the_expectation_fails() -> None:
    body = {**stories.control(), "expect": {"phase": "Failed", "fail": []}}
    result = verdict(stories.blocked(body).clean(368.0))
    assert (result.as_expected, result.exit_code) == (False, ExitCode.FAILED)
    assert result.sentence.startswith("Failed: never-blocked (DEADLOCK: pod web-primary-")


def test_a_control_in_which_another_check_fails_too_fails() -> None:
    story = stories.blocked(stories.control()).clean(368.0)
    story.at(300.0).add(tl.SubjectState, state="forbidden", detail="get secrets")
    result = verdict(story)
    assert result.exit_code is ExitCode.FAILED
    assert result.sentence.startswith(
        "Not as expected for this control: nothing-forbidden (refused: get secrets"
    )


def test_a_control_whose_check_passes_fails_although_nothing_else_did() -> None:
    body = {**stories.control(), "expect": {"phase": "Succeeded", "fail": ["never-blocked"]}}
    result = verdict(stories.promotion(body).clean(529.0))
    assert (result.outcome, result.exit_code) == (Outcome.PASS, ExitCode.FAILED)
    assert result.sentence.startswith(
        "Not as expected for this control: never-blocked should have failed in this control and passed;"
    )


def test_a_control_whose_check_is_unknown_is_undecided() -> None:
    body = {**stories.control(), "expect": {"phase": "Succeeded", "fail": ["never-blocked"]}}
    result = verdict(stories.promotion(body).clean(529.0).at(300.0).gap("Pod", since=295.0))
    assert result.exit_code is ExitCode.UNDECIDED
    assert result.sentence.startswith("Unknown: never-blocked (the watch of Pod has a gap")


def test_a_precondition_that_does_not_hold_is_unknown_and_nothing_else_is_claimed() -> None:
    story = Recording(stories.body()).at(0.3).add(tl.Precondition, holds=False, reason=THREE_NODES)
    report = judge(story.timeline())
    assert report.verdict.outcome is Outcome.UNKNOWN
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert report.verdict.sentence == f"Unknown: precondition ({THREE_NODES})."
    assert [f.id for f in report.findings] == ["precondition"]
    assert report.left.state == "nothing-made"
    assert {item.outcome for item in report.done} == {Outcome.UNKNOWN}


def test_a_missing_feature_is_unsupported() -> None:
    story = Recording(stories.body()).at(0.1)
    story.add(tl.Missing, features=("match-label-keys",), lacking="cluster old (Kubernetes 1.28.0)")
    result = verdict(story)
    assert (result.outcome, result.exit_code) == (Outcome.UNSUPPORTED, ExitCode.UNDECIDED)
    assert (
        result.sentence
        == "Unsupported: requires (cluster old (Kubernetes 1.28.0) lacks match-label-keys)."
    )


def test_an_error_of_the_harness_beats_everything_but_an_interruption() -> None:
    story = stories.promotion()
    story.lines = [line for line in story.lines if line.t < 300.0]
    story.at(301.0).add(tl.HarnessError, message="the API server went away").clean(310.0)
    result = verdict(story)
    assert (result.outcome, result.exit_code) == (Outcome.ERROR, ExitCode.ERROR)
    assert "the API server went away" in result.sentence
    assert (
        verdict(story.at(302.0).add(tl.Interrupted, signal="SIGINT")).exit_code
        is ExitCode.INTERRUPTED
    )


def test_an_interrupted_drill_says_when_and_in_which_phase() -> None:
    story = stories.promotion()
    story.lines = [line for line in story.lines if line.t < 152.0]
    story.at(152.1).add(tl.Interrupted, signal="SIGTERM").clean(160.0)
    result = verdict(story)
    assert (result.outcome, result.exit_code) == (Outcome.UNKNOWN, ExitCode.INTERRUPTED)
    assert result.sentence == "Interrupted by SIGTERM at +2:32 in phase Progressing."


def test_what_was_left_behind_is_said_and_decides_the_exit_code() -> None:
    items = ({"kind": "Namespace", "name": "drill-x"},)
    result = verdict(stories.promotion().at(529.0).add(tl.Leftovers, items=items, kinds_listed=61))
    assert result.exit_code is ExitCode.LEFT_BEHIND
    assert result.outcome is Outcome.FAIL
    assert result.sentence.startswith("Clean but for what is left: the promotion ")
    assert result.sentence.endswith(" 1 object was left behind.")


def test_a_recording_that_breaks_off_is_never_clean() -> None:
    text = stories.promotion().clean(529.0).text()
    lines = text[: int(len(text) * 0.9)].splitlines()
    report = judge(tl.parse(lines))
    assert report.truncated
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert "never-blocked (the recording breaks off at " in report.verdict.sentence
    assert report.left.state == "unlisted"


def test_an_empty_recording_is_unknown() -> None:
    report = judge(Recording(stories.body()).timeline())
    assert report.verdict.outcome is Outcome.UNKNOWN
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert report.rows == ()


def test_every_prefix_of_a_recording_can_be_judged_and_none_is_clean() -> None:
    story = stories.promotion().clean(529.0)
    timeline = story.timeline()
    for end in range(len(timeline.observations)):
        report = judge(tl.Timeline(timeline.header, timeline.observations[:end]))
        assert report.verdict.exit_code is not ExitCode.OK


def test_the_done_list_ticks_what_its_checks_proved() -> None:
    report = judge(stories.blocked().timeline())
    assert [item.outcome for item in report.done] == [
        Outcome.PASS,
        Outcome.PASS,
        Outcome.PASS,
        Outcome.UNKNOWN,
    ]
    assert report.done[-1].reason == "nothing-left is unknown"


def test_a_done_line_by_an_unknown_check_is_not_ticked() -> None:
    body = stories.body(doneWhen=[{"text": "x", "by": ["no-such-check"]}])
    assert judge(stories.promotion(body).timeline()).done[0].outcome is Outcome.UNKNOWN


def test_the_same_recording_gives_the_same_report() -> None:
    text = stories.blocked().clean(368.0).text()
    first, second = (judge(tl.parse(text.splitlines())) for _ in range(2))
    assert first == second
    assert first.to_json() == second.to_json()


def deadlock(story: Recording) -> list[str]:
    report = judge(story.timeline())
    return [note.text for finding in report.findings for note in finding.notes]


def test_a_blocked_surge_is_called_a_deadlock_of_the_primarys_rolling_update() -> None:
    notes = deadlock(stories.blocked())
    assert len(notes) == 1
    assert notes[0].startswith(
        "The primary's rolling update cannot finish: this is a scheduling deadlock, not slowness."
    )
    assert f"web-primary-{NEW}-b6tnm" in notes[0]
    assert "maxSurge 25%, that is 1, maxUnavailable 25%, that is 0" in notes[0]
    assert "matchLabelKeys: [pod-template-hash]" in notes[0]
    assert "maxSurge 0, maxUnavailable 1" in notes[0]
    assert "analysis" not in notes[0]


def test_a_pod_that_is_placed_after_all_was_no_deadlock() -> None:
    story = stories.blocked()
    stories.primary_pod(story.at(320.0), NEW, "b6tnm", keyed=False, node=NORTH)
    assert deadlock(story) == []


def test_without_surge_it_is_no_deadlock() -> None:
    story = stories.blocked()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    story.at(294.0).deployment("web-primary", NEW, number=2, strategy=strategy)
    assert deadlock(story) == []


def test_a_pod_that_is_blocked_for_another_reason_is_no_deadlock() -> None:
    story = stories.blocked()
    stories.primary_pod(
        story.at(294.3), NEW, "b6tnm", keyed=False, refused="0/2 nodes: 2 Insufficient cpu."
    )
    assert deadlock(story) == []


def test_a_plain_deployment_can_deadlock_too() -> None:
    story = Recording(stories.body()).synced().at(1.0).step("initialise")
    term = stories.affinity("api", keyed=False)
    story.deployment("api", "new", number=2, affinity=term).pod(
        "api", "old", "a", node=NORTH, ready=True, affinity=term
    )
    story.at(2.0).pod(
        "api", "new", "b", affinity=term, refused="2 node(s) didn't match pod anti-affinity rules"
    )
    assert deadlock(story.at(60.0).step("promote", "timed-out"))[0].startswith(
        "The rolling update of api cannot finish"
    )
