"""What checks and the report see of the queries to a drill's metrics server."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from harness.checks.expression import Unknown
from harness.checks.judge import judge
from harness.checks.queries import Asked
from harness.model.resolved import Resolved
from harness.model.timeline_outside import Queries, QueriesCounted
from harness.report.json_report import json_report
from harness.report.markdown import markdown
from harness.tests.checking import holds
from harness.tests.timelines import Recording, check, scenario

if TYPE_CHECKING:
    from collections.abc import Sequence


def asking(**more: object) -> Recording:
    return Recording(scenario(metrics={"good": "99"}, **more)).at(1.0)


def asked(story: Recording, *came: float, status: int = 200) -> Recording:
    passed = 0 if status == 429 else len(came)
    return story.add(Queries, came=came, statuses=(status,) * len(came), passed=passed)


def peak(came: Sequence[float]) -> int:
    """Return the most within one second, in the slow and obvious way."""
    return max((sum(t - 1.0 < other <= t for other in came) for t in came), default=0)


def test_nobody_asked_yet() -> None:
    assert (
        holds(asking(), "queries.total == 0 && queries.peak == 0 && queries.refused == 0") is True
    )
    assert isinstance(holds(asking(), "queries.counted == 0"), Unknown)


def test_without_metrics_nothing_can_be_said_of_queries() -> None:
    story = Recording().at(1.0).rollout("Initialized")
    assert isinstance(holds(story, "queries.total == 0"), Unknown)


def test_queries_are_counted_with_what_they_got() -> None:
    story = asked(asked(asking().at(3.0), 1.5, 2.0, 2.5), 2.9, status=429)
    assert holds(story, "queries.total == 4 && queries.passed == 3 && queries.refused == 1") is True
    assert holds(story, "queries.peak == 3") is True


@pytest.mark.parametrize(
    ("came", "most"),
    [
        ((), 0),
        ((1.0,), 1),
        ((1.0, 2.0), 1),
        ((1.0, 1.999), 2),
        ((0.0, 0.4, 0.8, 1.2, 1.6), 3),
        ((5.0, 5.0, 5.0), 3),
    ],
)
def test_the_peak_is_the_most_within_any_one_second(came: tuple[float, ...], most: int) -> None:
    assert peak(came) == most
    assert holds(asked(asking().at(9.0), *came), f"queries.peak == {most}") is True


def test_the_peak_does_not_depend_on_the_order_in_which_queries_are_told() -> None:
    chance = random.Random(7)  # noqa: S311 - for a test
    for _ in range(50):
        came = [round(chance.uniform(0, 6), 2) for _ in range(40)]
        log = Asked(Resolved.from_json(scenario(metrics={"good": "99"})))
        while came_now := came[len(log._came) : len(log._came) + 3]:
            log.take(Queries(9.0, tuple(came_now), (200,) * len(came_now), len(came_now)))
        row = log.row()
        assert row is not None
        assert row.peak == peak(came)


def test_the_servers_own_count_gives_a_rate_for_the_time_between_two_looks() -> None:
    story = asking()
    for t, total, seconds in ((1.0, 5, 0.0), (3.0, 15, 2.0), (4.5, 21, 1.5), (4.6, 22, 0.1)):
        story.at(t).add(QueriesCounted, total=total, seconds=seconds)
    # What was counted before the first look took nobody knows how long; and one query in a tenth of a second is no ten in one.
    assert holds(story, "queries.counted == 22 && queries.counted_peak == 5.0") is True


def test_a_peak_that_is_too_high_fails_with_the_number_and_stands_in_the_report() -> None:
    bound = check("not-too-many", "always", "queries.peak <= 2")
    story = asking(checks=[bound]).synced().step("initialise")
    asked(story.at(3.0), 2.1, 2.2, 2.3)
    story.at(3.0).add(QueriesCounted, total=0, seconds=0.0)
    story.at(4.0).add(QueriesCounted, total=3, seconds=1.0)
    asked(story.at(5.0), 4.5, status=429)
    story.at(6.0).step("new revision").step("promote").rollout("Succeeded")
    report = judge(story.timeline())
    finding = report.finding("not-too-many")
    assert finding is not None
    assert finding.outcome == "fail"
    assert "queries.peak = 3" in finding.evidence
    text = markdown(report)
    assert "What the metrics server was asked" in text
    assert "4 queries came in; what they got: 200: 3, 429 (refused at the door): 1." in text
    assert "At most 3 came in within one second (up to +2.3 s)." in text
    assert "By its own count the server answered 3, at most 3.0 in a second." in text
    assert '"counted_peak": 3.0' in json_report(report)


def test_a_server_that_nobody_asked_is_said_to_be_that() -> None:
    story = asking().synced().step("initialise").at(6.0).step("new revision")
    assert "Nobody asked it anything." in markdown(judge(story.timeline()))
    assert "metrics server was asked" not in markdown(judge(Recording().timeline()))
