"""What the report quotes: when it is read, from what, and what is said about its change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.checks.judge import judge
from harness.checks.paths import PathMissingError, read
from harness.model.outcome import Outcome
from harness.tests import stories
from harness.tests.stories import NEW, OLD

if TYPE_CHECKING:
    from harness.model.report import Recorded


def entry(obj: str, path: str, *at: str) -> Recorded:
    record: list[dict[str, Any]] = [{"title": "It", "object": obj, "path": path, "at": list(at)}]
    return judge(stories.promotion(stories.body(record=record)).timeline()).recorded[0]


def test_a_term_that_stays_is_unchanged() -> None:
    recorded = entry("primary", "spec.template.spec.affinity", "initialise", "end")
    assert recorded.change == "unchanged"
    assert (
        recorded.summary
        == "Read from Deployment web-primary: unchanged between initialise (+2:14) and end (+8:41)."
    )
    assert recorded.diff == ""


def test_a_change_comes_with_both_pods_and_a_diff() -> None:
    recorded = entry("primary-pod", "spec.affinity", "initialise", "end")
    assert recorded.change == "changed"
    assert recorded.summary.startswith(
        f"Read from Pod web-primary-{OLD}-kx2lp and Pod web-primary-{NEW}-b6tnm: changed between"
    )
    assert recorded.diff.splitlines()[:2] == ["--- initialise", "+++ end"]
    assert f'-                "{OLD}"' in recorded.diff
    assert f'+                "{NEW}"' in recorded.diff


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    [
        ("rollout", "status.phase", "Succeeded"),
        ("target", "metadata.name", "web"),
        ("Deployment/web-primary", "spec.template.spec.containers[0].image", "web:2"),
        ("primary", 'metadata.annotations["deployment.kubernetes.io/revision"]', "2"),
    ],
)
def test_objects_are_found_by_role_or_by_name(obj: str, path: str, value: str) -> None:
    assert entry(obj, path, "end").readings[0].value == value


@pytest.mark.parametrize(
    ("obj", "path", "reason"),
    [
        ("primary", "spec.nope.deeper", "Deployment web-primary: spec has no nope"),
        ("DaemonSet/web", "spec", "there was no DaemonSet/web"),
        ("target-pod", "spec", "there was no target-pod"),
    ],
)
def test_what_is_not_there_is_said(obj: str, path: str, reason: str) -> None:
    recorded = entry(obj, path, "end")
    assert recorded.change == "missing"
    assert recorded.readings[0].reason == reason


def test_a_moment_that_never_came_is_unknown_and_not_a_failure() -> None:
    story = stories.promotion()
    story.lines = [line for line in story.lines if line.t < 100.0]
    finding = judge(story.at(101.0).step("initialise", "timed-out").timeline()).finding("recorded")
    assert finding is not None
    assert finding.outcome is Outcome.UNKNOWN
    assert "initialise: step initialise never held" in finding.evidence


def test_paths_say_where_they_end() -> None:
    with pytest.raises(PathMissingError, match="a has only 1 entries"):
        read({"a": [1]}, "a[1]")
