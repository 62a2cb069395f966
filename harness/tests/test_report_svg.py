"""timeline.svg: whatever the report, the picture is one, and it shows where every pod was."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from harness.checks.judge import judge
from harness.data import data_path
from harness.model import timeline as tl
from harness.model.outcome import ExitCode
from harness.model.report import PhaseRow, PodPlace
from harness.report.svg import svg
from harness.report.svg_canvas import Scale, fitted, width_of
from harness.report.svg_pods import lanes, most_telling, stays
from harness.run.anonymise import Anonymiser
from harness.run.artefacts import write_drill
from harness.tests import stories
from harness.tests.test_report_formats import STORIES

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.report import DrillReport

NS = "{http://www.w3.org/2000/svg}"
FILES = sorted(data_path("fixtures", "timelines").rglob("*.jsonl"))


def told(name: str) -> DrillReport:
    return judge(STORIES[name]().timeline())


def drawn(report: DrillReport) -> ET.Element:
    return ET.fromstring(svg(report))  # noqa: S314 - our own


def texts(picture: ET.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{NS}text")]


def bar(picture: ET.Element, pod: str) -> list[ET.Element]:
    """Return the groups of a pod, one for each place where it was."""
    found = []
    for group in picture.iter(f"{NS}g"):
        title = group.find(f"{NS}title")
        if title is not None and str(title.text).startswith(f"pod {pod} "):
            found.append(group)
    return found


def y_of(path: ET.Element) -> float:
    return float(path.attrib["d"].split()[1].partition("h")[0])


def lane(picture: ET.Element, path: ET.Element) -> str:
    """Return the name of the lane that a bar is in."""
    names = [
        (float(text.attrib["y"]), text.text or "")
        for text in picture.iter(f"{NS}text")
        if text.attrib["x"] == "16" and "strong" in text.get("class", "")
    ]
    return max(entry for entry in names if entry[0] < y_of(path))[1]


def with_rows(*rows: PhaseRow) -> DrillReport:
    base = told("clean")
    return dataclasses.replace(base, rows=rows, observed_until=rows[-1].t, change_at=None)


def many(pods: int, moments: int) -> DrillReport:
    """Return a report of pods that are ready at every other moment."""
    rows = []
    for moment in range(moments):
        states = itertools.cycle(["ready", "not ready"] if moment % 2 else ["not ready", "ready"])
        places = tuple(
            PodPlace(f"p{i}", "web", "target", "abc", f"n{i % 40}", next(states))
            for i in range(pods)
        )
        phase = "Progressing" if moment % 3 else "Waiting"
        rows.append(PhaseRow(float(moment), None, phase, moment % 100, "promote", places))
    return with_rows(*rows)


@pytest.mark.parametrize("name", STORIES)
def test_every_story_gives_a_picture_of_960_pixels_that_says_what_it_is(name: str) -> None:
    picture = drawn(told(name))
    assert picture.tag == f"{NS}svg"
    assert picture.attrib["width"] == "960"
    assert picture.attrib["role"] == "img"
    assert picture.findtext(f"{NS}title")
    assert "Verdict: " in str(picture.findtext(f"{NS}desc"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_recording_gives_the_same_bytes_twice(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    picture = svg(judge(tl.parse(lines)))
    assert ET.fromstring(picture).tag == f"{NS}svg"  # noqa: S314 - our own
    assert picture == svg(judge(tl.parse(lines)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_drawn_outside_of_the_picture(file: Path) -> None:
    picture = drawn(judge(tl.parse(file.read_text(encoding="utf-8").splitlines())))
    height = float(picture.attrib["height"])
    for text in picture.iter(f"{NS}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        assert 0 <= x <= 960
        assert 0 < y < height
        if "text-anchor" not in text.attrib and y < height - 80 and x > 16:
            assert x + width_of(text.text or "", 10) <= 960


def test_a_pod_without_a_node_is_red_in_a_lane_of_its_own() -> None:
    picture = drawn(told("control"))
    (group,) = bar(picture, f"web-primary-{stories.NEW}-b6tnm")
    (path,) = group.findall(f"{NS}path")
    assert path.attrib["class"] == "bar pending"
    assert lane(picture, path) == "no node"
    assert f"web-primary {stories.NEW}" in texts(picture)
    assert re.search(r"\.pending,[^{]*\{stroke:#d1242f\}", svg(told("control")))


def test_without_such_a_pod_there_is_no_such_lane() -> None:
    assert "no node" not in texts(drawn(told("clean")))
    assert "Pending: no node" not in texts(drawn(told("clean")))


def test_a_pod_is_pale_until_it_is_ready_and_dashed_while_it_terminates() -> None:
    picture = drawn(told("clean"))
    (group,) = bar(picture, f"web-primary-{stories.OLD}-kx2lp")
    kinds = [path.attrib["class"] for path in group.findall(f"{NS}path")]
    assert kinds[:2] == ["bar primary soft", "bar primary"]
    assert lane(picture, group.findall(f"{NS}path")[0]) == stories.NORTH
    assert "terminating" in str(group.findtext(f"{NS}title"))


def test_a_pod_that_gets_a_node_later_is_in_both_lanes() -> None:
    def row(t: float, node: str, state: str) -> PhaseRow:
        pod = PodPlace("web-1", "web", "target", "abc", node, state)
        return PhaseRow(t, None, "Progressing", 0, "promote", (pod,))

    picture = drawn(
        with_rows(
            row(1, "", "Pending: Unschedulable"), row(2, "south", "not ready"), row(9, "south", "x")
        )
    )
    lanes = [
        lane(picture, path)
        for group in bar(picture, "web-1")
        for path in group.iter()
        if path.tag == f"{NS}path"
    ]
    assert sorted(lanes) == ["no node", "south"]


def test_a_pod_that_comes_back_under_its_name_has_two_bars() -> None:
    pod = PodPlace("db-0", "db", "other", "abc", "north", "ready")
    times = [(1.0, (pod,)), (2.0, ()), (3.0, (pod,)), (4.0, (pod,))]
    found = stays([PhaseRow(t, None, "Progressing", 0, "", pods) for t, pods in times])
    assert [(stay.since, stay.until) for stay in found] == [(1.0, 2.0), (3.0, 4.0)]


def test_phases_change_and_failed_checks_are_named() -> None:
    shown = texts(drawn(told("fail")))
    for phase in ("Initializing", "Initialized", "Progressing", "Promoting", "Failed"):
        assert phase in shown
    assert "change: new revision" in shown
    assert "never-blocked" in shown
    assert any(text.startswith("never-blocked: fail. pod web-primary-") for text in shown)
    assert any(text.startswith("ends-in: fail. ") for text in shown)


def test_a_control_says_that_its_failure_is_expected() -> None:
    assert any("fail, as expected. " in text for text in texts(drawn(told("control"))))


def test_gaps_are_said() -> None:
    assert any("The recording has gaps" in text for text in texts(drawn(told("unknown"))))


def test_a_weight_that_changes_is_drawn_and_one_that_does_not_is_not() -> None:
    assert "weight" not in texts(drawn(told("clean")))
    rows = [
        PhaseRow(t, None, "Progressing", w, "", ()) for t, w in ((0, 0), (1, 10), (2, 30), (4, 30))
    ]
    assert {"weight", "0 %", "100 %"} <= set(texts(drawn(with_rows(*rows))))


def test_foreign_text_stays_text() -> None:
    evil = '<script>&"\x00\x1b]]>'
    pod = PodPlace(evil, evil, "primary", evil, evil, evil)
    report = with_rows(
        PhaseRow(0, None, evil, 0, evil, (pod,)), PhaseRow(2, None, "after", 0, "", (pod,))
    )
    facts = dataclasses.replace(report.scenario, id=evil)
    verdict = dataclasses.replace(report.verdict, sentence=evil, exit_code=ExitCode.FAILED)
    report = dataclasses.replace(
        report, scenario=facts, verdict=verdict, change_at=1.0, change_step=evil
    )
    picture = drawn(report)
    allowed = {"svg", "title", "desc", "style", "g", "rect", "line", "path", "text", "circle"}
    assert {element.tag.removeprefix(NS) for element in picture.iter()} == allowed - {"circle"}
    assert any(text.startswith("<script>") for text in texts(picture))


def test_a_report_without_pods_says_so() -> None:
    assert "No pod was seen." in texts(drawn(told("unsupported")))
    assert "No pod was seen." in texts(drawn(dataclasses.replace(told("clean"), rows=())))


def test_500_pods_make_a_picture_below_a_megabyte_that_says_how_many_are_left_out() -> None:
    picture = svg(many(500, 60))
    assert len(picture.encode()) < 1_000_000
    assert "452 pods not shown" in picture


def test_restless_pods_make_a_picture_below_a_megabyte() -> None:
    assert len(svg(many(60, 3_000)).encode()) < 1_000_000


def test_of_too_many_pods_those_without_a_node_are_shown_first() -> None:
    crowd = [PodPlace(f"p{i}", "web", "primary", "abc", "north", "ready") for i in range(90)]
    homeless = PodPlace("late", "web", "other", "abc", "", "Pending: Unschedulable")
    rows = [
        PhaseRow(1, None, "Promoting", 0, "", tuple(crowd)),
        PhaseRow(2, None, "Promoting", 0, "", (*crowd, homeless)),
        PhaseRow(3, None, "after", 0, "", (*crowd, homeless)),
    ]
    shown, hidden = most_telling(stays(rows), 5)
    assert "late" in {stay.pod.name for stay in shown}
    assert hidden == 86


def test_many_nodes_have_lanes_only_where_a_pod_was() -> None:
    report = told("clean")
    nodes = tuple(f"node-{i}" for i in range(200))
    env = dataclasses.replace(report.environment, nodes=(*nodes, *report.environment.nodes))
    shown = texts(drawn(dataclasses.replace(report, environment=env)))
    assert "node-7" not in shown
    assert stories.NORTH in shown


def test_lanes_are_in_the_order_in_which_people_count() -> None:
    pods = [PodPlace(f"p{i}", "web", "target", "abc", f"n{i}", "ready") for i in (10, 9, 1)]
    assert list(lanes(stays([PhaseRow(0, None, "x", 0, "", tuple(pods))]), ("z",), 12)) == [
        "z",
        "n1",
        "n9",
        "n10",
    ]


def test_of_an_anonymised_recording_the_picture_holds_no_name() -> None:
    timeline = stories.promotion().clean(529.0).timeline()
    anonymiser = Anonymiser()
    deployments = [s.object for s in timeline.of(tl.ObjectSeen) if s.object["kind"] == "Deployment"]
    anonymiser.learn(deployments)
    header = anonymiser.header(timeline.header)
    hidden = tuple(anonymiser.observation(seen) for seen in timeline.observations)
    picture = svg(judge(tl.Timeline(header, hidden)))
    assert "zwolle" not in picture
    assert not re.search(r"\bweb\b", picture)
    assert {"node-1", "node-2"} <= set(texts(ET.fromstring(picture)))  # noqa: S314 - our own


def test_light_and_dark_are_styles_and_nothing_is_loaded() -> None:
    picture = svg(told("fail"))
    assert "@media (prefers-color-scheme:dark)" in picture
    addresses = re.findall(r"https?://[^\"' ]+", picture)
    assert addresses == ["http://www.w3.org/2000/svg"]
    assert "url(" not in picture
    assert "@import" not in picture
    assert "href" not in picture


@pytest.mark.parametrize("seconds", [0.004, 0.3, 1, 17.2, 361, 7200, 1e6])
def test_the_axis_has_a_handful_of_round_ticks(seconds: float) -> None:
    distance, ticks = Scale(0, 100, seconds).ticks()
    assert 3 <= len(ticks) <= 13
    assert f"{distance:e}"[0] in "125"
    assert ticks[-1] <= seconds + 1e-9


def test_a_long_name_keeps_both_ends() -> None:
    cut = fitted("ip-10-0-1-23.eu-west-1.compute.internal", 116)
    assert cut.startswith("ip-10-0")
    assert cut.endswith("internal")
    assert width_of(cut) <= 116
    assert width_of(fitted("節点" * 60, 116)) <= 116


def test_the_picture_is_written_beside_the_report_which_names_it(tmp_path: Path) -> None:
    report = told("clean")
    write_drill(tmp_path, report)
    assert (tmp_path / "timeline.svg").read_text(encoding="utf-8") == svg(report)
    assert "`timeline.svg`" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
