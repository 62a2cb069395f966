"""The report of a benchmark: table, goals, exit code, JSON and its schema."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import jsonschema
import pytest

from harness.bench import output
from harness.bench.goals import goals, percent
from harness.bench.json_report import SCHEMA, json_report, schema_text
from harness.bench.markdown import markdown
from harness.bench.model import Load, RequestRow, Requests
from harness.bench.profile_page import profile_page
from harness.bench.rows import ratio, rows, seconds
from harness.bench.summary import summary
from harness.model.outcome import ExitCode
from harness.tests.bench_reports import SETUP, both, report, stage, storm, with_stage

if TYPE_CHECKING:
    from pathlib import Path


def cells(text: str, figure: str) -> list[list[str]]:
    """Return the cells of the table's rows for a figure, in the order of stages."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if f"| {figure} |" in line]
    return [[cell.strip() for cell in line] for line in lines]


def test_figures_stand_side_by_side_with_ratios_to_the_first_subject() -> None:
    text = markdown(both())
    assert cells(text, "time")[0] == ["**initialise all**", "time", "30.0 s", "3.00 s", "0.100"]
    (detected,) = cells(text, "change detected after, median")
    assert detected[2:] == ["9.00 s", "0.90 s", "0.100"]
    assert [row[2:] for row in cells(text, "requests")][:2] == [
        ["6,000", "600", "0.100"],
        ["5,000", "0", "0"],
    ]


def test_a_restarted_subject_has_no_time_but_how_soon_it_had_looked() -> None:
    found = {row.figure: row.values for row in rows(both()) if row.stage == "restart loop"}
    assert "time" not in found
    assert found["all looked at after a start, median"] == ("2.00 s", "2.00 s")
    assert found["all looked at after a start, most"] == ("3.00 s", "3.00 s")
    assert found["writes after the first start"] == ("5", "5")
    assert found["writes after all later starts"] == ("0", "0")


def test_a_stage_that_one_subject_lacks_leaves_dashes() -> None:
    first, second = both().subjects
    short = dataclasses.replace(second, stages=second.stages[:1])
    found = [row for row in rows(report(first, short)) if row.stage == "idle"]
    assert {row.values[1] for row in found} == {"-"}
    assert {row.ratios for row in found} == {("-",)}


def test_rollouts_that_starved_are_in_the_table_only_where_there_are_any() -> None:
    assert not any(row.figure == "rollouts that got there" for row in rows(both()))
    first, second = both().subjects
    starved = with_stage(second, "promote all", ended=97)
    found = [row for row in rows(report(first, starved)) if row.figure == "rollouts that got there"]
    assert [row.values for row in found] == [("100 of 100", "97 of 100")]


@pytest.mark.parametrize(
    ("value", "first", "shown"),
    [(1.0, 3.0, "0.333"), (3.0, 1.0, "3"), (5.0, 0.0, "-"), (0.0, 5.0, "0"), (None, 1.0, "-")],
)
def test_ratios(value: float | None, first: float, shown: str) -> None:
    assert ratio(value, first) == shown


def test_short_times_have_hundredths() -> None:
    assert (seconds(0.123), seconds(9.99), seconds(12.34), seconds(83)) == (
        "0.12 s",
        "9.99 s",
        "12.3 s",
        "1 min 23 s",
    )


@pytest.mark.parametrize(
    ("share", "shown"), [(0.004, "0.4 %"), (0.017, "1.7 %"), (0.333, "33 %"), (1.5, "150 %")]
)
def test_shares(share: float, shown: str) -> None:
    assert percent(share) == shown


# ---- goals and exit codes


def test_the_goals_are_stated_against_flagger_and_met_here() -> None:
    made = both().goals
    assert all(goal.met for goal in made)
    assert [goal.figure for goal in made] == [
        "analyses that nobody asked for",
        "promote all: a change is detected, at the median",
        "restart loop: writes after the first start",
        "idle: requests",
        "idle: CPU",
        "initialise all: time",
        "RSS, the most",
    ]


@pytest.mark.parametrize(
    ("name", "changes", "figure"),
    [
        ("idle", {"unasked": 1}, "analyses that nobody asked for"),
        ("restart loop", {"writes_by_start": (0, 0, 1)}, "restart loop: writes"),
        ("idle", {"requests": Requests(51, 51, 0, 0, 0, ())}, "idle: requests"),
        ("initialise all", {"seconds": 10.1}, "initialise all: time"),
    ],
)
def test_a_goal_that_is_missed_is_said(name: str, changes: dict[str, object], figure: str) -> None:
    first, second = both().subjects
    made = goals([first, with_stage(second, name, **changes)])
    assert [goal.figure.startswith(figure) for goal in made if not goal.met] == [True]


def test_without_flagger_as_the_first_subject_only_absolute_goals_are_stated() -> None:
    first, second = both().subjects
    assert len(goals([second, first])) == 3
    assert goals([first]) == ()


def test_the_exit_code_tells_of_starvation_and_not_of_goals() -> None:
    slow = report(storm("flagger@1.44.0", "1.44.0", 1.0), storm("bundled", "0.1.0", 2.0))
    assert not all(goal.met for goal in slow.goals)
    assert slow.exit_code is ExitCode.OK
    starved = report(storm("bundled", "0.1.0", 1.0, problems=("idle: something",)))
    assert starved.exit_code is ExitCode.FAILED
    assert dataclasses.replace(starved, interrupted=True).exit_code is ExitCode.INTERRUPTED


# ---- texts


def test_what_went_wrong_and_who_else_used_the_machine_stand_at_the_top() -> None:
    figures = storm("bundled", "0.1.0", 1.0, problems=("promote all: 3 of 100 were not Succeeded",))
    head = markdown(report(figures)).partition("## Figures")[0]
    assert "- bundled: promote all: 3 of 100 were not Succeeded" in head
    assert "nothing to do with it" not in head
    busy = with_stage(figures, "promote all", machine=(Load("everything else", 120.0),))
    head = markdown(report(busy)).partition("## Figures")[0]
    assert "**Processes that have nothing to do with it used" in head


def test_the_report_says_where_the_time_went() -> None:
    text = markdown(both())
    part = text.partition("### bundled: promote all")[2].partition("###")[0]
    assert "2 cores for 9.0 s are 18 CPU seconds, of which 23 were used" in part
    assert "kube-apiserver 20.0, bundled 2.0, everything else 1.0" in part
    assert "1,700 requests are 188.9 a second and 17.0 for each rollout" in part
    assert "| Progressing | 100 | 30.0 s | 31.0 s | 32.0 s |" in part


def test_requests_are_listed_by_verb_and_resource_for_each_subject() -> None:
    text = markdown(both()).partition("## Requests by verb and resource")[2]
    assert "| patch | `canaries.flagger.app/status` | 1,500 | 150 |" in text
    assert "| get | `deployments.apps` | 4,500 (2 refused) | 450 (2 refused) |" in text


def test_a_report_with_many_kinds_of_requests_still_fits_into_a_comment() -> None:
    many = tuple(RequestRow("get", f"kind{number}.{'x' * 300}", 1, 0, 0.1) for number in range(80))
    stages = tuple(
        stage(name, 1.0, 80, requests=Requests(80, 80, 0, 0, 0, many))
        for name in ("initialise all", "idle", "promote all", "upgrade", "restart loop")
    )
    figures = dataclasses.replace(storm("bundled", "1", 1.0), stages=stages)
    text = markdown(report(figures))
    assert len(text) <= 65_536
    assert "more, see bench.json" in text


def test_a_profiled_run_says_that_its_times_do_not_compare() -> None:
    setup = dataclasses.replace(SETUP, profiled=True)
    text = markdown(report(storm("bundled", "1", 1.0), setup=setup))
    assert "ran under a profiler" in text
    assert "| 0.50 | 0.75 | 5 | `harness/kube/client.py:5 send` |" in profile_page(both())


def test_the_summary_has_figures_problems_and_goals() -> None:
    figures = storm("bundled", "0.1.0", 0.1, problems=("idle: what nobody expected",))
    text = summary(report(storm("flagger@1.44.0", "1.44.0", 1.0), figures))
    assert "bundled: idle: what nobody expected" in text
    assert "met: bundled: idle: requests: 0 %" in text


# ---- data


def test_the_schema_in_the_package_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "run python -m harness.bench.json_report"
    )


def test_a_report_as_data_keeps_to_the_schema_and_nothing_else_does() -> None:
    schema = json.loads(schema_text())
    data = json.loads(json_report(both()))
    jsonschema.validate(data, schema)
    assert data["exit_code"] == 0
    assert data["format"] == "drill-bench/1"
    del data["subjects"][0]["stages"][0]["usage"]["cpu"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_the_files_of_a_benchmark(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    output.write(out, both())
    output.write_log(out, "flagger@path:flagger", "said nothing")
    assert sorted(path.name for path in out.iterdir()) == [
        "bench.json",
        "bench.md",
        "flagger-path-flagger.log",
        "profile.md",
    ]
    output.write(tmp_path / "other", report(storm("bundled", "1", 1.0)))
    assert not (tmp_path / "other" / "profile.md").exists()
