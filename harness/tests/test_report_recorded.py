"""Recordings of real drills on the embedded cluster: each gives its scenario's outcome, and no longer does once it is tampered with."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

import pytest

from harness.checks.judge import judge
from harness.data import data_path
from harness.model import timeline as tl
from harness.model.outcome import ExitCode, Outcome
from harness.model.resolved import Resolved

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.report import DrillReport

FILES = sorted(data_path("fixtures", "timelines", "recorded").glob("*.jsonl"))
PATHS = re.compile(r"(?<![\w.:/-])/(?:root|home|tmp|work|Users|opt|usr)/|file:/|[A-Z]:\\\\")
ADDRESSES = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
INSIDE = re.compile(r"(?:127\.0\.0\.1|10\.96\.|198\.1[89]\.)")
"""Loopback, the embedded cluster's Services, and the range for benchmarks, which simulated pods have."""

recordings = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def read(file: Path) -> tl.Timeline:
    return tl.parse(file.read_text(encoding="utf-8").splitlines())


def outcomes(report: DrillReport) -> dict[str, Outcome]:
    return {finding.id: finding.outcome for finding in report.findings}


def without(timeline: tl.Timeline, kind: str, phase: str = "") -> tl.Timeline:
    """Return the recording without the objects of a kind, or without those in a phase."""
    kept = tuple(
        seen
        for seen in timeline.observations
        if not (
            isinstance(seen, tl.ObjectSeen)
            and seen.object["kind"] == kind
            and phase in {"", seen.object.get("status", {}).get("phase")}
        )
    )
    assert len(kept) < len(timeline.observations)
    return dataclasses.replace(timeline, observations=kept)


def test_there_are_recordings() -> None:
    assert {file.stem for file in FILES} >= {
        "node-spread-blue-green-with-key",
        "node-spread-blue-green-without-key",
        "quota-refusal-too-few",
    }


@recordings
def test_a_recording_gives_the_outcome_that_its_scenario_expects(file: Path) -> None:
    timeline = read(file)
    expected = Resolved.from_json(timeline.header.scenario).expect
    report = judge(timeline)
    assert {c for c, outcome in outcomes(report).items() if outcome != "pass"} == set(expected.fail)
    assert report.verdict.final_phase == expected.phase
    assert report.verdict.outcome is (Outcome.FAIL if expected.fail else Outcome.PASS)
    assert report.verdict.as_expected
    assert report.verdict.exit_code is ExitCode.OK


@recordings
def test_without_its_pods_nothing_is_said_to_hold_for_pods(file: Path) -> None:
    before = outcomes(judge(read(file)))
    report = judge(without(read(file), "Pod"))
    assert outcomes(report)["primary-served-throughout"] is not Outcome.PASS
    # What a Deployment says of itself is still evidence; of pods there is none.
    if before["never-blocked"] is Outcome.PASS or file.stem.startswith("node-spread"):
        assert outcomes(report)["never-blocked"] is Outcome.UNKNOWN
    assert not report.verdict.as_expected
    assert report.verdict.exit_code is not ExitCode.OK


@recordings
def test_a_gap_in_the_watch_of_pods_leaves_what_was_always_so_unknown(file: Path) -> None:
    timeline = read(file)
    before = outcomes(judge(timeline))
    held = next(s for s in timeline.of(tl.StepState) if (s.step, s.state) == ("initialise", "held"))
    gap = tl.WatchState(t=held.t + 3.0, kind="Pod", state="gap", since=held.t + 2.0, reason="410")
    lines = sorted((*timeline.observations, gap), key=lambda seen: seen.t)
    report = judge(dataclasses.replace(timeline, observations=tuple(lines)))
    after = outcomes(report)
    assert after["primary-served-throughout"] is Outcome.UNKNOWN
    # A violation that was seen stays one, whatever else was missed.
    seen = before["never-blocked"] is Outcome.FAIL
    assert after["never-blocked"] is (Outcome.FAIL if seen else Outcome.UNKNOWN)
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert report.gaps


@recordings
def test_without_its_last_phase_the_promotion_did_not_end(file: Path) -> None:
    timeline = read(file)
    report = judge(without(timeline, "Canary", judge(timeline).verdict.final_phase))
    assert outcomes(report)["ends-in"] is Outcome.FAIL
    assert report.verdict.exit_code is ExitCode.FAILED


@recordings
def test_a_recording_holds_nothing_about_the_machine_that_made_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert PATHS.findall(text) == []
    assert [a for a in ADDRESSES.findall(text) if not INSIDE.match(a)] == []
    events = [s.object for s in read(file).of(tl.ObjectSeen) if s.object["kind"] == "Event"]
    # A component names its host there.
    assert {e.get("reportingInstance", "") for e in events} <= {"", "default-scheduler"}
    assert not any(e.get("source", {}).get("host") for e in events)
    assert "password" not in json.dumps(events).lower()
