"""Built-in checks and the scenario's own: for each one a recording in which exactly it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.checks.judge import judge
from harness.model import timeline as tl
from harness.model.outcome import ExitCode, Outcome
from harness.report.markdown import markdown
from harness.tests import stories
from harness.tests.stories import NEW, NORTH, OLD, SOUTH
from harness.tests.timelines import UNSCHEDULABLE, Recording

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.report import DrillReport

LEFT = {
    "kind": "ConfigMap",
    "namespace": "drill-x",
    "name": "web",
    "finalizers": ["example.com/hold"],
    "why": "its finalizer is never removed",
}


def clean() -> Recording:
    return stories.promotion().clean(529.0)


def failing(report: DrillReport) -> set[str]:
    return {f.id for f in report.findings if f.outcome is Outcome.FAIL}


def evidence(report: DrillReport, check_id: str) -> str:
    finding = report.finding(check_id)
    assert finding is not None
    return finding.evidence


def replace_step(story: Recording, state: str, detail: str) -> None:
    """Let the last step end otherwise, after which the drill is over."""
    story.lines = [
        tl.StepState(line.t, line.step, state, detail)  # type: ignore[arg-type]
        if isinstance(line, tl.StepState) and (line.step, line.state) == ("promote", "held")
        else line
        for line in story.lines
        if not isinstance(line, tl.Settled)
    ]


def timed_out(story: Recording) -> None:
    replace_step(story, "timed-out", "rollout.ended was false")


def failed_at_the_end(story: Recording) -> None:
    story.at(521.05).rollout("Failed", message="rolled back")


def blocked_for_a_moment(story: Recording) -> None:
    stories.primary_pod(story.at(294.02), NEW, "b6tnm", keyed=True, refused=UNSCHEDULABLE)


def gated_for_a_moment(story: Recording) -> None:
    stories.primary_pod(story.at(294.02), NEW, "b6tnm", keyed=True, gated=True)


def refused_by_quota(story: Recording) -> None:
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "message": "pods is forbidden: exceeded quota: few",
    }
    story.at(294.01).deployment("web-primary", NEW, number=2, conditions=[failure])
    stories.primary(story.at(294.03), NEW, 2, keyed=True)


def not_served(story: Recording) -> None:
    for suffix, node in (("kx2lp", NORTH), ("w9ddz", SOUTH)):
        stories.primary_pod(story.at(200.0), OLD, suffix, keyed=True, node=node)
        stories.primary_pod(story.at(201.0), OLD, suffix, keyed=True, node=node, ready=True)


def second_wave(story: Recording) -> None:
    stories.primary_pod(story.at(521.8), "9b8c7d6f5e", "zz9zz", keyed=True, node=NORTH)


def lost_term(story: Recording) -> None:
    story.at(500.5).deployment("web-primary", NEW, number=2)


def forbidden(story: Recording) -> None:
    story.at(300.0).add(
        tl.SubjectState,
        state="forbidden",
        detail="patch /apis/apps/v1/namespaces/x/deployments/web",
    )


def left_behind(story: Recording) -> None:
    story.lines.pop()
    story.at(529.0).add(tl.Leftovers, items=(LEFT,), kinds_listed=61)


CASES: list[tuple[str, Callable[[Recording], None], str]] = [
    ("steps-completed", timed_out, "step promote timed out at +8:41: waited 6 min 12 s for rollout.ended; seen last: rollout.ended was false"),
    ("ends-in", failed_at_the_end, "ended in Failed since +8:41 (6 min 12 s after the change): rolled back"),
    ("never-blocked", blocked_for_a_moment, f"pod web-primary-{NEW}-b6tnm Pending since +4:54 (2 min 25 s after the change), until +4:54; scheduler: 0/2 nodes"),
    ("never-blocked", gated_for_a_moment, f"pod web-primary-{NEW}-b6tnm gated since +4:54"),
    ("never-blocked", refused_by_quota, "Deployment web-primary cannot create pods since +4:54 (2 min 25 s after the change), until +4:54; controller: pods is forbidden: exceeded quota: few"),
    ("primary-served-throughout", not_served, "primary.ready = 0 since +3:20 (51.0 s after the change), until +3:21; its pods: "),
    ("settled", second_wave, "primary or phase changed after the end: pod web-primary-9b8c7d6f5e-zz9zz appeared at +8:41"),
    ("recorded", lost_term, "The term on the primary, end: Deployment web-primary: spec.template.spec.affinity has no podAntiAffinity"),
    ("nothing-forbidden", forbidden, "refused: patch /apis/apps/v1/namespaces/x/deployments/web (at +5:00)"),
    ("nothing-left", left_behind, "left behind: ConfigMap drill-x/web (finalizers: example.com/hold): its finalizer is never removed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check_id", "alter", "told"), CASES, ids=lambda v: getattr(v, "__name__", None)
)
def test_each_check_fails_alone_when_the_recording_is_altered_so(
    check_id: str, alter: Callable[[Recording], None], told: str
) -> None:
    story = clean()
    alter(story)
    report = judge(story.timeline())
    assert failing(report) == {check_id}
    assert evidence(report, check_id).startswith(told)
    assert not report.verdict.as_expected
    expected = ExitCode.LEFT_BEHIND if check_id == "nothing-left" else ExitCode.FAILED
    assert report.verdict.exit_code is expected


def test_unaltered_nothing_fails() -> None:
    report = judge(clean().timeline())
    assert {f.outcome for f in report.findings} == {Outcome.PASS}
    assert report.verdict.exit_code is ExitCode.OK


def test_a_refused_verb_is_an_error_and_not_the_subjects_failure() -> None:
    story = clean()
    replace_step(story, "failed", "the API server refused the patch")
    report = judge(story.timeline())
    assert report.verdict.outcome is Outcome.ERROR
    assert report.verdict.exit_code is ExitCode.ERROR
    assert evidence(report, "steps-completed").endswith("the API server refused the patch")


def test_old_pods_on_their_way_out_may_go_during_the_settle_time() -> None:
    story = clean()
    for name, change in ((520.0, "ADDED"), (521.9, "DELETED")):
        stories.primary_pod(
            story.at(name), OLD, "w9ddz", keyed=True, node=SOUTH, ready=True, terminating=True
        )
        assert isinstance(story.lines[-1], tl.ObjectSeen)
        story.lines[-1] = tl.ObjectSeen(name, change, story.lines[-1].object)  # type: ignore[arg-type]
    assert failing(judge(story.timeline())) == set()


def test_a_phase_that_goes_on_during_the_settle_time_is_not_settled() -> None:
    story = clean()
    story.at(521.9).rollout("Progressing").at(522.0).rollout("Succeeded")
    told = evidence(judge(story.timeline()), "settled")
    assert "the phase went from Succeeded to Progressing at +8:41" in told


def test_a_gap_in_the_settle_time_is_unknown() -> None:
    report = judge(clean().at(521.9).gap("Canary", since=521.5).timeline())
    finding = report.finding("settled")
    assert finding is not None
    assert finding.outcome is Outcome.UNKNOWN


def test_without_a_listing_it_is_unknown_whether_anything_is_left() -> None:
    report = judge(stories.promotion().timeline())
    assert evidence(report, "nothing-left") == "teardown in progress"
    assert report.verdict.outcome is Outcome.PASS
    assert report.verdict.as_expected
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert report.verdict.sentence.endswith("Teardown is in progress.")


def test_what_was_kept_as_asked_is_not_judged_but_said() -> None:
    report = judge(stories.promotion().at(529.0).add(tl.Kept).timeline())
    assert report.finding("nothing-left") is None
    assert report.left.state == "kept"
    assert report.verdict.exit_code is ExitCode.OK
    assert "Everything, as was asked for: namespace" in markdown(report)


def test_types_that_may_not_be_listed_are_named() -> None:
    story = stories.promotion().at(529.0)
    story.add(tl.Leftovers, items=(), kinds_listed=58, refused=("secrets",))
    report = judge(story.timeline())
    assert evidence(report, "nothing-left").endswith(
        "not listed, since that is not allowed: secrets"
    )
    assert "Not listed, since that is not allowed: secrets" in markdown(report)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"items": (), "kinds_listed": 3, "error": "connection refused"},
            "could not be listed: connection refused",
        ),
        ({"items": (), "kinds_listed": 0}, "no resource type was listed"),
    ],
)
def test_a_listing_that_failed_proves_nothing(fields: dict[str, object], told: str) -> None:
    report = judge(stories.promotion().at(529.0).add(tl.Leftovers, **fields).timeline())
    assert evidence(report, "nothing-left") == told
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert not report.verdict.as_expected


def test_a_subject_that_the_harness_does_not_run_is_not_judged_by_its_requests() -> None:
    story = clean()
    story.lines = [line for line in story.lines if not isinstance(line, tl.SubjectState)]
    assert judge(story.timeline()).finding("nothing-forbidden") is None


def test_a_rollout_object_that_was_never_seen_is_unknown() -> None:
    story = clean()
    story.lines = [
        line
        for line in story.lines
        if not (isinstance(line, tl.ObjectSeen) and line.object["kind"] == "Canary")
    ]
    finding = judge(story.timeline()).finding("ends-in")
    assert finding is not None
    assert finding.outcome is Outcome.UNKNOWN


def test_a_phase_that_is_none_of_the_ends_says_for_how_long() -> None:
    story = clean()
    story.lines = [line for line in story.lines if line.t < 521.0]
    story.at(581.0).step("promote", "timed-out")
    told = evidence(judge(story.timeline()), "ends-in")
    assert (
        told
        == "ended in Finalising since +8:26 (5 min 57 s after the change), for 1 min 15 s when observation ended"
    )


def test_a_time_out_without_a_subject_says_that_it_had_gone() -> None:
    story = clean()
    timed_out(story)
    story.at(400.0).add(tl.SubjectState, state="exited", detail="code 2")
    told = evidence(judge(story.timeline()), "steps-completed")
    assert told.endswith("; the subject had exited at +6:40 (code 2)")


def test_what_is_refused_during_teardown_is_no_fault_of_the_subjects() -> None:
    """Its rights go with everything else that the drill made, and it may take a minute until it is ended."""
    story = clean()
    story.at(525.0).add(tl.SubjectState, state="forbidden", detail="watch /apis/apps/v1/x")
    found = judge(story.timeline()).finding("nothing-forbidden")
    assert found is not None
    assert found.outcome is Outcome.PASS
