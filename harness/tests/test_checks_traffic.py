"""What checks and the report see of the requests that were sent while a drill was under way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from harness.checks.expression import Unknown
from harness.checks.judge import judge
from harness.checks.traffic_log import percentile
from harness.model.report_traffic import Answered
from harness.model.timeline import WatchState
from harness.model.timeline_traffic import TrafficBegan, TrafficWindow
from harness.model.traffic import PART_LABEL, PROBE, TRAFFIC, Traffic, read_traffic
from harness.report.json_report import json_report, schema
from harness.report.limits import GITHUB
from harness.report.markdown import markdown
from harness.report.read_back import read_report
from harness.tests.checking import holds
from harness.tests.timelines import Recording, check, scenario

if TYPE_CHECKING:
    from harness.model.report import Finding

OLD, NEW = "aaa", "bbb"
OLD_POD, NEW_POD = "web-primary-aaa-x", "web-primary-bbb-y"
NO_FAILURE = check("none-failed", "never", "traffic.failed > 0", **{"from": "initialise"})
NO_TARGET = check(
    "only-primary",
    "never",
    'answers.exists(a, a.role != "primary")',
    **{"from": "initialise"},
)


def asking(*checks: dict[str, Any]) -> Recording:
    """Return a recording up to the first step, of a scenario with traffic."""
    story = Recording(scenario(traffic={"rate": 20}, checks=list(checks))).synced()
    story.at(1.0).rollout("Initialized").deployment("web-primary", OLD)
    return story.pod("web-primary", OLD, "x", node="n", ready=True).step("initialise")


def window(
    story: Recording, since: float, *failures: str, late: float = 0.3, **answers: int
) -> Recording:
    """Requests of a quarter of a second are told: `web_primary_aaa_x=5` answers, and failures of some kinds."""
    pods = {name.replace("_", "-"): count for name, count in answers.items()}
    sent = sum(pods.values()) + len(failures)
    return story.at(since + late).add(
        TrafficWindow,
        since=since,
        until=since + 0.25,
        sent=sent,
        answers=tuple({"pod": pod, "ms": [1.5] * count} for pod, count in pods.items()),
        failures=tuple(
            {"at": since, "kind": kind, "ms": 2.0, "status": 503 * (kind == "status"), "pod": ""}
            for kind in failures
        ),
    )


def ended(story: Recording) -> Recording:
    """Go to the end of a promotion."""
    t = story.t
    story.at(t + 0.1).step("new revision").rollout("Progressing").step("promote")
    story.rollout("Succeeded")
    return story.settle(t + 0.2, t + 1.2).clean(t + 2.0)


def found(story: Recording, name: str) -> Finding:
    finding = judge(story.timeline()).finding(name)
    assert finding is not None
    return finding


def test_requests_that_were_all_answered_pass() -> None:
    story = window(asking(NO_FAILURE, NO_TARGET), 2.0, web_primary_aaa_x=5)
    ended(story)
    assert found(story, "none-failed").outcome == "pass"
    assert found(story, "only-primary").outcome == "pass"


def test_one_failed_request_fails_and_the_verdict_says_how_and_when() -> None:
    story = window(asking(NO_FAILURE), 2.0, web_primary_aaa_x=5)
    story = window(window(story, 2.5, "refused", web_primary_aaa_x=3), 3.0, "timeout", "refused")
    report = judge(ended(story).timeline())
    assert report.verdict.outcome == "fail"
    told = "3 of 11 requests failed (refused 2, timeout 1), from +2.5 s to +3.0 s"
    assert told in report.verdict.sentence


@pytest.mark.parametrize("checked", [NO_FAILURE, NO_TARGET])
def test_without_a_single_request_nothing_is_known(checked: dict[str, Any]) -> None:
    finding = found(ended(asking(checked)), checked["id"])
    assert finding.outcome == "unknown"
    assert "no request was sent" in finding.evidence


def test_requests_of_another_time_do_not_count() -> None:
    late = check("late", "never", "traffic.failed > 0", **{"from": "promote"})
    story = window(asking(late), 2.0, web_primary_aaa_x=5)
    assert found(ended(story), "late").outcome == "unknown"


def test_something_true_of_requests_is_nothing_without_any() -> None:
    empty = check("empty", "eventually", "traffic.failed == 0")
    assert found(ended(asking(empty)), "empty").outcome == "unknown"
    assert found(ended(window(asking(empty), 2.0, web_primary_aaa_x=1)), "empty").outcome == "pass"


def test_a_gap_in_the_log_is_unknown_and_a_failure_beside_it_a_failure() -> None:
    def story(*failures: str) -> Recording:
        told = window(asking(NO_FAILURE), 2.0, *failures, web_primary_aaa_x=5)
        told.at(3.0).add(WatchState, kind=TRAFFIC, state="gap", since=2.25, reason="lines lost")
        return ended(window(told, 3.0, web_primary_aaa_x=5))

    assert found(story(), "none-failed").outcome == "unknown"
    assert "gap from 2.2 s to 3.0 s (lines lost)" in found(story(), "none-failed").evidence
    assert found(story("refused"), "none-failed").outcome == "fail"


def test_without_traffic_nothing_can_be_said() -> None:
    story = Recording().at(1.0).rollout("Initialized")
    assert isinstance(holds(story, "traffic.sent == 0"), Unknown)
    assert isinstance(holds(story, "answers.all(a, a.requests > 0)"), Unknown)
    assert judge(story.timeline()).traffic is None


def test_who_answered_is_known_by_revision_even_when_the_pod_is_gone_already() -> None:
    story = asking()
    story.deployment("web-primary", NEW, number=2)
    story.pod("web-primary", NEW, "y", node="n", ready=True).at(1.5).gone(OLD_POD)
    window(story, 1.4, web_primary_aaa_x=3, web_primary_bbb_y=1)
    old = 'answers.exists(a, a.hash == "aaa" && a.role == "primary" && a.requests == 3 && a.share == 75'
    assert holds(story, f'{old} && a.first == 1.4 && a.last == 1.65 && a.pods == ["{OLD_POD}"])')
    assert holds(story, 'traffic.shares["primary"] == 100 && traffic.answered == 4') is True


def test_an_answer_of_the_target_is_found_out() -> None:
    story = asking(NO_TARGET)
    story.deployment("web", NEW).pod("web", NEW, "z", node="n", ready=True)
    finding = found(ended(window(story, 2.0, web_primary_aaa_x=4, web_bbb_z=1)), "only-primary")
    assert finding.outcome == "fail"
    assert "target bbb answered 1 requests" in finding.evidence


def test_an_answer_of_somebody_unknown_is_no_answer_of_the_primary() -> None:
    story = ended(window(asking(NO_TARGET), 2.0, web_primary_aaa_x=4, stranger=1))
    assert found(story, "only-primary").outcome == "unknown"
    assert (
        found(ended(window(asking(NO_FAILURE), 2.0, stranger=1)), "none-failed").outcome == "pass"
    )


def test_shares_are_those_of_the_last_seconds() -> None:
    story = asking()
    story.deployment("web", NEW).pod("web", NEW, "z", node="n", ready=True)
    window(story, 2.0, web_primary_aaa_x=5)
    window(story, 6.0, web_primary_aaa_x=2, web_bbb_z=2)
    assert holds(story, 'traffic.shares["primary"] == 78 && traffic.shares["target"] == 22') is True
    window(story, 9.0, web_bbb_z=4)
    assert holds(story, 'traffic.shares["primary"] == 25 && traffic.shares["target"] == 75') is True
    window(story, 20.0, "timeout")
    assert holds(story, 'traffic.shares["primary"] == 0 && traffic.last_failure == 20.0') is True


def test_every_way_to_fail_is_counted_also_one_of_later_versions() -> None:
    story = window(asking(), 2.0, "refused", "status", "tls-of-tomorrow")
    assert holds(story, 'traffic.kinds["refused"] == 1 && traffic.kinds["other"] == 1') is True
    assert holds(story, "traffic.failed == 3 && traffic.sent == 3 && traffic.answered == 0") is True


def test_the_pod_that_asks_is_no_part_of_what_is_drilled() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "traffic-probe-a", "uid": "p", "labels": {PART_LABEL: PROBE}},
    }
    story = asking().see(pod)
    assert holds(story, "pods.size() == 1") is True
    del pod["metadata"]["labels"]  # type: ignore[attr-defined]
    assert holds(story.see(pod), "pods.size() == 2") is True


def reported() -> Recording:
    """Return a drill with requests in two phases, in two revisions."""
    story = asking(NO_FAILURE)
    story.at(2.3).add(
        TrafficBegan,
        url="http://web:80/hostname",
        rate=20,
        pod="traffic-probe-a",
        waited=1.5,
        lines=12,
        within=0.004,
    )
    window(story, 2.0, web_primary_aaa_x=4)
    story.at(3.0).rollout("Promoting").deployment("web-primary", NEW, number=2)
    story.pod("web-primary", NEW, "y", node="n", ready=True)
    window(story, 2.9, "refused", web_primary_aaa_x=1, web_primary_bbb_y=3)
    return ended(story)


def test_the_report_tells_requests_by_the_phase_in_which_they_began() -> None:
    report = judge(reported().timeline())
    assert report.traffic is not None
    first, second = report.traffic.rows
    assert (first.phase, first.sent, first.failed, first.first_failure) == (
        "Initialized",
        4,
        0,
        None,
    )
    # The middle of the second window lies behind the change of phase.
    assert (second.phase, second.sent, second.kinds) == ("Promoting", 5, {"refused": 1})
    assert second.answered == (
        Answered("primary", OLD, 1, 25.0),
        Answered("primary", NEW, 3, 75.0),
    )
    assert (second.median, second.p99, second.last_failure) == (1.5, 1.5, 2.9)
    assert (report.traffic.sent, report.traffic.failed) == (9, 1)
    text = markdown(report)
    assert "asked `http://web:80/hostname` 20 times a second from +2.0 s to +3.1 s" in text
    assert "9 requests, 1 failed. Before that, 1.5 s went by without an answer" in text
    assert "primary aaa: 25 %, primary bbb: 75 %" in text
    assert "1 (refused 1; +2.9 s)" in text
    assert "Failed requests (1 of 1)" in text


def test_the_report_with_traffic_fits_its_schema_and_is_read_back() -> None:
    report = judge(reported().timeline())
    text = json_report(report)
    jsonschema.validate(json.loads(text), schema())
    again = read_report(text)
    assert getattr(again, "traffic", None) == report.traffic


def test_a_report_of_many_failures_still_fits() -> None:
    story = asking(NO_FAILURE)
    for number in range(400):
        window(story, 2.0 + number / 4, *["refused"] * 20)
        story.rollout(("Progressing", "Promoting")[number % 2])
    report = judge(ended(story).timeline())
    assert report.traffic is not None
    assert (report.traffic.failed, len(report.traffic.failures)) == (8000, 200)
    assert len(markdown(report)) <= GITHUB


def test_a_report_says_that_nobody_asked_anything() -> None:
    assert "No request was sent" in markdown(judge(ended(asking(NO_FAILURE)).timeline()))


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, None),
        ([3.0], 99, 3.0),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
        ([1.0] * 99 + [9.0], 99, 1.0),
        ([1.0] * 98 + [9.0] * 2, 99, 9.0),
    ],
)
def test_a_percentile_is_a_value_that_was_measured(
    values: list[float], percent: int, expected: float | None
) -> None:
    assert percentile(values, percent) == expected


def test_settings_are_read_back_and_what_is_unreadable_has_its_default() -> None:
    given = Traffic("initialise", "gate.istio", 80, "/", "web.example", 50, 1.0, keep_alive=True)
    body = {name: getattr(given, name) for name in given.__dataclass_fields__}
    assert read_traffic(body) == given
    assert read_traffic({"rate": "(redacted)"}) == Traffic()
    assert read_traffic(None) is None
