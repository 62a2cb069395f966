"""A recording in which two controllers drove one Canary says nothing about either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.checks.judge import judge
from harness.model import timeline as tl
from harness.model.outcome import Outcome
from harness.tests import stories

if TYPE_CHECKING:
    from harness.tests.timelines import Recording


def written(story: Recording, *managers: str, subresource: str = "status") -> Recording:
    """Say who wrote the Canary, in every state of it."""
    fields = [{"manager": one, "subresource": subresource} for one in managers]
    for line in story.lines:
        if isinstance(line, tl.ObjectSeen) and line.object["kind"] == "Canary":
            line.object["metadata"]["managedFields"] = fields
    return story


@pytest.mark.parametrize(
    ("managers", "subresource"),
    [
        (("flagger",), "status"),
        (("flagger", "rollout-drill"), "status"),
        (("flagger", "kubectl"), ""),
        ((), "status"),
    ],
)
def test_one_is_not_worth_a_word(managers: tuple[str, ...], subresource: str) -> None:
    story = written(stories.promotion().clean(529.0), *managers, subresource=subresource)
    report = judge(story.timeline())
    assert report.finding("one-controller") is None
    assert report.verdict.outcome is Outcome.PASS


def test_two_make_the_verdict_unknown() -> None:
    story = written(stories.promotion().clean(529.0), "flagger", "rollout-drill-controller")
    report = judge(story.timeline())
    found = report.finding("one-controller")
    assert found is not None
    assert found.evidence.startswith("2 controllers wrote statuses: flagger (web, first at +")
    assert report.verdict.outcome is Outcome.UNKNOWN


def test_one_after_the_other_is_what_an_upgrade_is() -> None:
    story = stories.promotion()
    # Which step it is does not matter here: what the recording shows is the same.
    story.scenario["steps"][0]["verb"] = "upgrade"
    report = judge(written(story, "flagger", "rollout-drill-controller").timeline())
    assert report.finding("one-controller") is None
