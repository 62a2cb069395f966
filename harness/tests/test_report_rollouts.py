"""Reports of drills with many rollouts: the tables, the picture, and that both stay small."""

from __future__ import annotations

import functools
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import jsonschema
import pytest

from harness.checks.judge import judge
from harness.model.report import Counted, Revision, RolloutRow, RunReport
from harness.report.json_report import SCHEMA, json_report
from harness.report.junit import junit
from harness.report.limits import GITHUB
from harness.report.markdown import markdown
from harness.report.markdown_rollouts import at_once
from harness.report.markdown_run import markdown_run
from harness.report.svg import svg
from harness.report.svg_rollouts import MOST_LANES, chosen, stretches
from harness.tests import stories
from harness.tests.populations import Behaviour, upgrade

if TYPE_CHECKING:
    from harness.model.report import DrillReport
    from harness.tests.populations import PopulationStory


def report_of(story: PopulationStory) -> DrillReport:
    return judge(story.clean(story.t + 5).timeline())


@functools.cache
def many(count: int) -> DrillReport:
    """All but two start without reason."""
    return report_of(upgrade(count, Behaviour(started=count - 2)))


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| web-")]


def cells(count: int) -> PopulationStory:
    """Half of the rollouts are in one cell, half in another, of which one starts although none should."""
    story = upgrade(count, Behaviour(started=1), values={"looks": 2, "starts": {"a": 0, "b": 0}})
    for line in story.lines:
        obj = getattr(line, "object", {})
        if obj.get("kind") == "Canary":
            name = obj["metadata"]["name"]
            obj["metadata"]["labels"] = {"drill/cell": "a" if int(name[-3:]) % 2 == 0 else "b"}
    return story


def test_the_table_of_rollouts_replaces_that_of_phases_and_pods() -> None:
    text = markdown(report_of(upgrade(3, Behaviour(started=1, writes=1))))
    assert "What became of every rollout" in text
    assert "Where every pod ran" not in text
    assert len(rows_of(text)) == 3
    assert rows_of(text)[0].startswith("| web-000 | Initialized, Progressing +")
    assert " | 1 then 1 | 0 then 1 | " in rows_of(text)[0]
    assert rows_of(text)[0].endswith("| r1/1 unchanged |")
    assert "**1 of 3 started an analysis; 0 rolled their primary;" in text
    assert "| subject | flagger@1.37.0 → flagger@1.38.0, Canary" in text
    assert "Counts begin with the upgrade at +" in text
    assert "<summary>All 3 rollouts" not in text


def test_the_most_analyses_at_the_same_time_are_told_and_a_hand_over_is_not_two() -> None:
    def row(name: str, *phases: tuple[float, str]) -> RolloutRow:
        none = Counted(0, 0, 0, 0)
        return RolloutRow(name, "", phases, none, None, None, 0, Revision("", ""), Revision("", ""))

    assert at_once([row("a", (0.0, ""), (1.0, "Initialized"))]) == 0
    first = row("a", (1.0, "Progressing"), (2.0, "WaitingPromotion"), (3.0, "Promoting"))
    assert at_once([first, row("b", (3.0, "Progressing"), (4.0, "Failed"))]) == 1
    assert at_once([first, row("b", (2.9, "Progressing")), row("c", (1.0, "Progressing"))]) == 3
    assert "analyses at the same time: 1 at most" in markdown(
        report_of(upgrade(3, Behaviour(started=1)))
    )


def test_a_rollout_object_without_a_phase_yet_was_made_and_is_not_gone() -> None:
    report = report_of(upgrade(2, Behaviour()))
    first = report.rollouts[0]
    phases = ((1.0, ""), (2.0, "Initializing"), (3.0, ""))
    made = replace(report, upgrade_at=None, rollouts=(replace(first, phases=phases),))
    (told,) = rows_of(markdown(made))
    assert "| made +1.0 s, Initializing +2.0 s, gone +3.0 s |" in told


def test_targets_are_compared_only_where_a_subject_was_replaced_or_stopped() -> None:
    report = report_of(upgrade(2, Behaviour()))
    nothing = replace(report.rollouts[0], target_before=Revision("", ""))
    text = markdown(replace(report, rollouts=(nothing, nothing)))
    for part in ("target before → after", "targets unchanged", "ReplicaSet and revision"):
        assert part in markdown(report)
        assert part not in text


def test_more_than_twenty_rows_are_folded_below_a_line_that_sums_them_up() -> None:
    text = markdown(report_of(upgrade(21, Behaviour(started=20))))
    assert "<details><summary>All 21 rollouts</summary>" in text
    assert text.index("20 of 21 started an analysis") < text.index("<summary>All 21 rollouts")


def test_groups_have_a_line_each_with_what_was_expected() -> None:
    text = markdown(report_of(cells(30)))
    assert "| a | 15 | 15 Succeeded | 1 of 15 ❌ | 0 | 0 |" in text
    assert "| b | 15 | 15 Succeeded | 0 of 15 | 0 | 0 |" in text
    assert "| web-000 (a) | " in text
    assert " | 1 then 1 ❌ | 0 | " in text


@pytest.mark.parametrize("count", [100, 500])
def test_it_fits_into_a_comment_however_many_there_are(count: int) -> None:
    report, started = many(count), count - 2
    text = markdown(report)
    assert len(text) < GITHUB
    assert "Cut off here" not in text
    assert f"{started} of {count} started an analysis" in text
    assert f"{started} of {count} rollouts: rollout web-000" in text
    assert len(rows_of(text)) >= 100
    run = markdown_run(RunReport("r", (report,)))
    assert len(run) < GITHUB
    assert len(report.to_json()["rollouts"]) == count


def test_of_too_many_rows_those_that_are_unlike_the_others_are_kept() -> None:
    text = markdown(many(500))
    assert "| web-498 | " in text
    assert "| web-499 | " in text
    assert "| web-400 | " not in text
    assert "of 500 rollouts</summary>" in text


def test_report_json_has_rows_only_where_there_are_several_rollouts() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    several = json.loads(json_report(report_of(upgrade(3))))
    jsonschema.validate(several, schema)
    assert several["rollouts"][0]["target_before"] == {"hash": "r1", "number": "1"}
    assert several["environment"]["subjects"] == ["flagger@1.37.0", "flagger@1.38.0"]
    single = json.loads(json_report(judge(stories.promotion().timeline())))
    jsonschema.validate(single, schema)
    assert not {"rollouts", "upgrade_at"} & single.keys()
    assert not {"subjects", "control_planes"} & single["environment"].keys()


def test_junit_names_all_subjects() -> None:
    text = junit(RunReport("r", (report_of(upgrade(2)),)))
    assert 'value="flagger@1.37.0 → flagger@1.38.0"' in text


def test_a_picture_has_a_lane_for_each_rollout_with_its_phases() -> None:
    root = ET.fromstring(  # noqa: S314 - our own
        svg(report_of(upgrade(3, Behaviour(started=1))))
    )
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"web-000", "web-001", "web-002", "upgrade", "change: real change"} <= set(texts)
    hints = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(hint.startswith("web-000: no phase from +") for hint in hints)
    kinds = {element.get("class") for element in root.iter("{http://www.w3.org/2000/svg}path")}
    assert {"lane p-good", "lane p-run", "lane p-promote"} <= kinds


def test_a_picture_of_500_rollouts_is_small_and_says_how_many_are_not_in_it() -> None:
    report = many(500)
    text = svg(report)
    assert len(text) < 100_000
    assert "440 rollouts like these not shown" in text
    shown, hidden = chosen(report.rollouts)
    assert (len(shown), hidden) == (MOST_LANES, 440)
    assert "web-499" in {row.name for row in shown}


def test_the_same_recording_gives_the_same_bytes() -> None:
    timeline = cells(24).timeline()
    first, second = judge(timeline), judge(timeline)
    for form in (markdown, svg, json_report):
        assert form(first) == form(second)


def test_a_wait_for_its_turn_is_part_of_a_row_and_has_its_own_colour() -> None:
    story = upgrade(3, Behaviour())
    waits = {"type": "Queued", "status": "True", "lastTransitionTime": "2026-10-29T11:22:40Z"}
    for t, phase, conditions in (
        (4.7, "Succeeded", [waits]),
        (4.8, "Succeeded", [waits, {"type": "Warned", "status": "True"}]),
        (4.9, "Progressing", []),
        (5.0, "Succeeded", []),
        (5.1, "Succeeded", [waits]),
    ):
        story.at(t).canary("web-001", phase, conditions=conditions)
    report = report_of(story.at(5.8))
    rows = {row.name: row for row in report.rollouts}
    assert rows["web-000"].queued == ()
    assert rows["web-001"].queued == ((4.7, 4.9), (5.1, None))
    text = markdown(report)
    (told,) = (row for row in rows_of(text) if row.startswith("| web-001"))
    assert told.count("in line +") == 2
    kinds = [(piece.since, piece.kind) for piece in stretches(rows["web-001"], 5.8)]
    last = [(4.42, "good"), (4.7, "queued"), (4.9, "run"), (5.0, "good"), (5.1, "queued")]
    assert kinds[-5:] == last
    assert "in line from" in svg(report)
    jsonschema.validate(json.loads(json_report(report)), json.loads(SCHEMA.read_text()))
