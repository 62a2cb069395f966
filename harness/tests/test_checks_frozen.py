"""Phase Frozen wherever phases are known: an end that is neither a success nor a rollback."""

from __future__ import annotations

from typing import Any

import pytest

from harness.checks.expression import Expression
from harness.checks.judge import judge
from harness.checks.vocabulary import PHASES
from harness.handback.answers import Told
from harness.handback.plan import Case, Fate, Recorded, plan
from harness.model.outcome import ExitCode, Outcome
from harness.model.timeline import ObjectSeen
from harness.report.svg import svg
from harness.tests import stories
from harness.tests.checking import state_of
from harness.tests.populations import Behaviour, upgrade
from harness.tests.timelines import UNSCHEDULABLE, Recording, scenario

MESSAGE = "the analysis failed; the revision is frozen"


def frozen(expected: str = "Frozen") -> Recording:
    story = Recording(scenario(expect={"phase": expected, "fail": []})).at(1.0).synced()
    story.rollout("Initialized").deployment("web", "new").pod(
        "web", "new", "1", node="a", ready=True
    )
    story.step("initialise").at(2.0).step("new revision").at(3.0).rollout("Progressing")
    story.at(5.0).rollout("Frozen", failedChecks=3, message=MESSAGE).step("promote")
    return story.settle(5.1, 6.1).clean(7.0)


def test_a_frozen_rollout_has_ended() -> None:
    assert "Frozen" in PHASES
    state = state_of(frozen())
    for text in ("rollout.ended", 'rollout.phase == "Frozen"'):
        assert state.evaluate(Expression.compile(text)) is True
    assert Expression.compile('rollout.phase == "Freezing"').findings()


def test_the_verdict_says_that_it_was_frozen_and_when() -> None:
    report = judge(frozen().timeline())
    assert report.verdict.outcome is Outcome.PASS
    assert report.verdict.exit_code is ExitCode.OK
    assert report.verdict.took == pytest.approx(3.0)
    assert report.verdict.sentence == "Clean: the promotion was frozen 3.0 s after the change."
    assert report.verdict.final_phase == "Frozen"


def test_a_rollout_that_should_have_been_promoted_says_why_it_was_not() -> None:
    report = judge(frozen("Succeeded").timeline())
    assert report.verdict.exit_code is ExitCode.FAILED
    (ends,) = [finding for finding in report.findings if finding.id == "ends-in"]
    assert ends.evidence.startswith("ended in Frozen since +5.0 s")
    assert ends.evidence.endswith(f": {MESSAGE}")


def test_a_picture_has_a_colour_of_its_own_for_it() -> None:
    picture = svg(judge(frozen().timeline()))
    assert 'class="Frozen"' in picture
    assert ".Frozen{fill:" in picture


def test_what_was_blocked_when_it_froze_is_a_deadlock() -> None:
    """A freeze keeps the pods, and whoever cleans up later does not make them placeable."""
    story = stories.analysed(
        stories.initialised(Recording(stories.body()), keyed=False), keyed=False
    )
    stories.primary_pod(story.at(294.1), stories.NEW, "b6tnm", keyed=False)
    stories.primary_pod(story.at(294.3), stories.NEW, "b6tnm", keyed=False, refused=UNSCHEDULABLE)
    story.at(360.0).rollout("Frozen").step("promote", "held")
    story.at(360.2).gone(f"web-primary-{stories.NEW}-b6tnm").settle(361.0, 362.0)
    notes = [note.kind for finding in judge(story.timeline()).findings for note in finding.notes]
    assert "DEADLOCK" in notes


def test_of_many_rollouts_a_frozen_one_has_ended_and_is_seen() -> None:
    story = upgrade(3, Behaviour())
    last = [seen for seen in story.lines if isinstance(seen, ObjectSeen)]
    for seen in last:
        status = seen.object.get("status") or {}
        if seen.object["metadata"]["name"] == "web-001" and status.get("phase") == "Succeeded":
            status["phase"] = "Frozen"
    report = judge(story.clean(story.t + 5).timeline())
    assert {row.final for row in report.rollouts} == {"Succeeded", "Frozen"}
    assert report.verdict.took is not None
    picture = svg(report)
    assert "p-frozen" in picture
    assert ".p-frozen{stroke:" in picture


# Handback


def case(**status: Any) -> Case:
    held = {"lastAppliedSpec": "v2:a", "lastPromotedSpec": "v2:b", **status}
    canary = {"metadata": {"name": "web"}, "spec": {}, "status": held}
    return Case(canary, Recorded.SAME, told=Told("hash", {}))


def test_a_frozen_canary_is_not_handed_to_a_flagger() -> None:
    found = plan(case(phase="Frozen"))
    assert found.fate is Fate.TROUBLE
    assert found.patch == {}
    assert found.why.startswith("It is frozen, and Flagger knows no such phase:")


def test_a_canary_that_keeps_its_primary_is_not_handed_to_a_flagger() -> None:
    found = plan(case(phase="Succeeded", parked={"name": "web-74cfdc4c74"}))
    assert found.fate is Fate.TROUBLE
    assert found.patch == {}
    assert "restore: adopt" in found.why
    assert plan(case(phase="Succeeded")).fate is Fate.RESTS
