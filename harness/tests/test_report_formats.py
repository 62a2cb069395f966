"""The other formats: JSON and its schema, JUnit, the terminal's summary."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from harness.checks.judge import judge
from harness.model import timeline as tl
from harness.model.report import DrillReport, RunReport
from harness.report.json_report import SCHEMA, json_report, schema_text
from harness.report.junit import junit
from harness.report.summary import summary
from harness.tests import stories
from harness.tests.timelines import Recording


def unsupported() -> Recording:
    return (
        Recording(stories.body())
        .at(0.1)
        .add(tl.Missing, features=("x",), lacking="subject bundled")
    )


def interrupted() -> Recording:
    story = stories.promotion()
    story.lines = [line for line in story.lines if line.t < 152.0]
    return story.at(152.1).add(tl.Interrupted, signal="SIGTERM").clean(160.0)


def unknown() -> Recording:
    return stories.promotion().clean(529.0).at(300.0).gap("Pod", since=295.0)


def error() -> Recording:
    story = stories.promotion()
    story.lines = [line for line in story.lines if line.t < 152.0]
    return story.at(152.1).add(tl.HarnessError, message="etcd died\x00").clean(160.0)


def left() -> Recording:
    return (
        stories.promotion()
        .at(529.0)
        .add(tl.Leftovers, items=({"kind": "Namespace", "name": "x"},), kinds_listed=9)
    )


STORIES = {
    "clean": lambda: stories.promotion().clean(529.0),
    "control": lambda: stories.blocked(stories.control()).clean(368.0),
    "fail": lambda: stories.blocked().clean(368.0),
    "pending": stories.promotion,
    "unsupported": unsupported,
    "interrupted": interrupted,
    "unknown": unknown,
    "error": error,
    "left-behind": left,
}


def report(name: str) -> DrillReport:
    return judge(STORIES[name]().timeline())


def test_the_schema_is_the_one_that_the_types_give() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "run python -m harness.report.json_report"
    )


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", sorted(STORIES))
def test_every_report_fits_the_schema(name: str) -> None:
    validator().validate(json.loads(json_report(report(name))))


def test_a_runs_report_fits_the_schema_and_has_its_exit_code() -> None:
    body = json.loads(json_report(RunReport("r", tuple(report(name) for name in STORIES))))
    validator().validate(body)
    assert body["exit_code"] == 2
    assert [drill["format"] for drill in body["drills"]] == ["drill-report/1"] * len(STORIES)


@pytest.mark.parametrize("change", [{"verdict": None}, {"more": 1}, {"format": "drill-report/2"}])
def test_the_schema_refuses_what_is_none(change: dict[str, object]) -> None:
    body = {**report("clean").to_json(), **change}
    assert not validator().is_valid(body)


def suite_of(*names: str) -> ET.Element:
    text = junit(RunReport("r", tuple(report(name) for name in names)))
    found = ET.fromstring(text).find("testsuite")  # noqa: S314 - our own output
    assert found is not None
    return found


def case(name: str) -> ET.Element:
    found = suite_of(name).find("testcase")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "tag", "kind"),
    [
        ("fail", "failure", "fail"),
        ("unknown", "error", "unknown"),
        ("error", "error", "error"),
        ("interrupted", "error", "interrupted"),
        ("left-behind", "error", "left-behind"),
        ("pending", "error", "unknown"),
    ],
)
def test_junit_reports_what_is_no_pass(name: str, tag: str, kind: str) -> None:
    element = case(name).find(tag)
    assert element is not None
    assert element.get("type") == kind
    assert element.get("message")


@pytest.mark.parametrize("name", ["clean", "control"])
def test_junit_passes_what_is_as_expected(name: str) -> None:
    assert [child.tag for child in case(name)] == ["properties"]


def test_junit_skips_what_is_unsupported() -> None:
    assert case("unsupported").find("skipped") is not None


def test_junit_failures_carry_the_findings_and_their_diagnosis() -> None:
    text = case("fail").findtext("failure") or ""
    assert "fail never-blocked: No pod was ever blocked\n  pod web-primary-" in text
    assert "DEADLOCK: The primary's rolling update cannot finish" in text


def test_junit_has_every_check_as_a_property_of_its_drill() -> None:
    found = {p.get("name"): p.get("value") for p in case("clean").iterfind("properties/property")}
    assert found["check.never-blocked"] == "pass: 41 observations from +0.4 s to +8:42"
    assert case("clean").get("classname") == "scenarios.node-spread-blue-green"
    assert case("clean").get("name") == "with-key"


def test_junit_counts_and_is_xml_whatever_a_message_holds() -> None:
    suite = suite_of(*STORIES)
    counted = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "9", "failures": "1", "errors": "5", "skipped": "1"}


def test_the_summary_has_a_line_for_each_drill_and_details_only_of_the_unexpected() -> None:
    text = summary(RunReport("r", (report("clean"), report("control"), report("fail"))))
    lines = text.splitlines()
    assert lines[0] == "pass        node-spread-blue-green[with-key]"
    assert text.count("- never-blocked: fail: pod web-primary-") == 1
    assert lines[-1] == "3 drills: 2 fail, 1 pass; 2 of 3 as expected (exit code 1)"


def test_the_summary_lets_no_message_move_the_cursor() -> None:
    clean = report("clean")
    verdict = dataclasses.replace(clean.verdict, sentence="a\x1b[2Jb\nc")
    assert "\x1b" not in summary(RunReport("r", (dataclasses.replace(clean, verdict=verdict),)))


def test_the_summary_of_nothing_says_so() -> None:
    assert summary(RunReport("r", ())) == "0 drills: nothing was run (exit code 5)\n"
