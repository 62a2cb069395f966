"""Tables of drills for which values were varied: what a cell says, and that nothing unknown reads like a number."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from harness.checks.judge import judge
from harness.model.names import label_part
from harness.model.outcome import ExitCode, Outcome
from harness.model.report import RunReport
from harness.report.json_report import json_report
from harness.report.limits import GITHUB
from harness.report.matrix import Absent, Told, matrix
from harness.report.matrix_json import SCHEMA, json_matrix, schema_text
from harness.report.matrix_markdown import cell_text, matrix_markdown, matrix_text
from harness.report.read_back import ReportError, read_report
from harness.tests import stories
from harness.tests.populations import Behaviour, upgrade

if TYPE_CHECKING:
    from harness.model.report import DrillReport
    from harness.report.matrix_model import Cell, Matrix, Table

NAMES = {"old": "flagger@1.37.0", "new": "flagger@1.38.0", "own": "bundled"}


@functools.cache
def upgraded(count: int = 3, **behaviour: Any) -> DrillReport:
    """Return the report of an upgrade of so many rollouts."""
    story = upgrade(count, Behaviour(**behaviour))
    return judge(story.clean(story.t + 5).timeline())


def drill(report: DrillReport, **varied: Any) -> Told:
    """Return a drill of a matrix with this report."""
    told = {name: NAMES.get(value, value) for name, value in varied.items()}
    parts = [f"{name}={label_part(value)}" for name, value in told.items()]
    label = ",".join(["any", *parts])
    across = " ".join(f"--across {name}={value}" for name, value in told.items())
    facts = dataclasses.replace(
        report.scenario, variant=label, values={**report.scenario.values, **told}
    )
    line = (
        f"drill run flagger-upgrade --variant {label} {across} --set canaries=3 --cluster embedded"
    )
    made = dataclasses.replace(report, scenario=facts, reproduce=line, drill_id=label)
    return Told(made, f"{label}/report.md")


def of(*drills: Told | Absent) -> Table:
    """Return the only table of these drills."""
    found = matrix(drills)
    assert found is not None
    (table,) = found.tables
    return table


def only(report: DrillReport) -> Cell:
    """Return the cell of a drill with this report."""
    return of(drill(report, **{"from": "old", "to": "new"})).cell(NAMES["old"], NAMES["new"])


def square() -> list[Told]:
    """Return two by two drills: only the way from the old one to the new one starts anything."""
    ways = [("old", "old", 0), ("old", "new", 3), ("new", "old", 2), ("new", "new", 0)]
    return [drill(upgraded(started=n), **{"from": a, "to": b}) for a, b, n in ways]


def whole(*drills: Told | Absent) -> Matrix:
    found = matrix(drills)
    assert found is not None
    return found


# ---- what is in it


def test_rows_are_the_first_value_that_was_varied_and_columns_the_second() -> None:
    table = of(*square())
    assert (table.rows.name, table.rows.values) == ("from", (NAMES["old"], NAMES["new"]))
    assert table.columns is not None
    assert (table.columns.name, table.columns.values) == ("to", (NAMES["old"], NAMES["new"]))
    cells = [cell_text(cell) for cell in table.cells]
    assert cells == ["pass: 0 of 3 started", *(f"fail: {n} of 3 started" for n in (3, 2)), cells[0]]
    assert table.title == "flagger-upgrade[any]"


def test_values_keep_the_order_of_the_drills() -> None:
    order = [drill(upgraded(), **{"from": a}) for a in ("own", "new", "old")]
    assert of(*order).rows.values == (NAMES["own"], NAMES["new"], NAMES["old"])


def test_drills_for_which_nothing_was_varied_make_no_table() -> None:
    assert matrix([Told(upgraded())]) is None
    assert matrix([]) is None


def test_one_value_makes_a_list() -> None:
    found = whole(drill(upgraded(), to="old"), drill(upgraded(started=3), to="new"))
    (table,) = found.tables
    assert table.columns is None
    text = matrix_markdown(found)
    assert "| `to` | outcome |" in text
    assert "| flagger@1.38.0 | [❌ fail: 3 of 3 started](any" in text
    assert "flagger@1.38.0  fail: 3 of 3 started" in matrix_text(found)


def test_a_third_value_makes_a_table_for_each_of_its_values() -> None:
    found = whole(
        *(
            drill(
                upgraded(started=0 if back else 3), **{"from": "own", "to": "new", "handback": back}
            )
            for back in (False, True)
        )
    )
    assert [table.title for table in found.tables] == [
        "flagger-upgrade[any,handback=false]",
        "flagger-upgrade[any,handback=true]",
    ]
    assert [cell_text(table.cells[0]) for table in found.tables] == [
        "fail: 3 of 3 started",
        "pass: 0 of 3 started",
    ]


def test_drills_with_other_values_are_not_mixed() -> None:
    small = drill(upgraded(3), **{"from": "old"})
    facts = small.report.scenario
    facts = dataclasses.replace(facts, values={**facts.values, "canaries": 3})
    small = Told(dataclasses.replace(small.report, scenario=facts))
    other = dataclasses.replace(facts, values={**facts.values, "canaries": 5})
    large = Told(dataclasses.replace(drill(upgraded(5), **{"from": "old"}).report, scenario=other))
    titles = [table.title for table in whole(small, large).tables]
    assert titles == ["flagger-upgrade[any,canaries=3]", "flagger-upgrade[any,canaries=5]"]


def test_of_several_reports_of_a_cell_the_latest_counts_wherever_it_stands() -> None:
    late = drill(
        dataclasses.replace(upgraded(started=3), started_at="2027-01-01T00:00:00+00:00"), to="new"
    )
    found = whole(late, drill(upgraded(), to="new"))
    assert cell_text(found.tables[0].cells[0]) == "fail: 3 of 3 started"
    assert found.tables[0].cells[0].earlier == 1
    assert "Run again, the latest counts: flagger@1.38.0 (1 earlier report)." in (
        matrix_markdown(found)
    )


def test_values_that_were_taken_out_of_a_recording_are_told_by_the_label() -> None:
    told = drill(upgraded(), to="new")
    facts = dataclasses.replace(told.report.scenario, values={"to": "<redacted>"})
    table = of(Told(dataclasses.replace(told.report, scenario=facts)))
    assert table.rows.values == ("flagger-1.38.0",)


# ---- what is not known


def test_none_that_was_seen_to_start_is_no_zero_where_nothing_looked() -> None:
    cell = only(upgraded(ignored=1))
    assert cell.outcome is Outcome.UNKNOWN
    assert cell_text(cell) == "unknown: starts not known"


def test_none_is_no_zero_in_a_drill_that_fails_for_another_reason_either() -> None:
    report = upgraded(ignored=1)
    failed = [
        dataclasses.replace(f, outcome=Outcome.FAIL) if f.id == "served" else f
        for f in report.findings
    ]
    verdict = dataclasses.replace(report.verdict, outcome=Outcome.FAIL)
    report = dataclasses.replace(report, findings=tuple(failed), verdict=verdict)
    assert cell_text(only(report)) == "fail: starts not known"


def test_some_are_at_least_some_where_not_everything_was_looked_at() -> None:
    assert cell_text(only(upgraded(started=1, ignored=1))) == "fail: at least 1 of 3 started"


def test_all_are_all_whatever_was_looked_at() -> None:
    assert cell_text(only(upgraded(started=3, ignored=1))) == "fail: 3 of 3 started"


def test_a_drill_that_never_came_to_its_upgrade_has_no_number() -> None:
    report = dataclasses.replace(upgraded(), upgrade_at=None)
    assert only(report).started is None


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.UNSUPPORTED])
def test_what_did_not_take_place_as_it_should_has_its_outcome_only(outcome: Outcome) -> None:
    verdict = dataclasses.replace(upgraded().verdict, outcome=outcome, as_expected=False)
    report = dataclasses.replace(upgraded(), verdict=verdict)
    assert cell_text(only(report)) == str(outcome)


def test_a_recording_that_breaks_off_proves_no_zero() -> None:
    assert only(dataclasses.replace(upgraded(), truncated=True)).started is None


def test_what_may_be_left_behind_says_nothing_about_what_started() -> None:
    findings = [
        dataclasses.replace(f, outcome=Outcome.UNKNOWN) if f.id == "nothing-left" else f
        for f in upgraded().findings
    ]
    assert Outcome.UNKNOWN in {finding.outcome for finding in findings}
    assert only(dataclasses.replace(upgraded(), findings=tuple(findings))).started == 0


def test_a_drill_of_one_rollout_has_its_outcome_only() -> None:
    promoted = judge(stories.promotion().timeline())
    facts = dataclasses.replace(promoted.scenario, variant="v,replicas=1", values={"replicas": 1})
    table = of(Told(dataclasses.replace(promoted, scenario=facts)))
    assert (table.rows.values, cell_text(table.cells[0])) == (("1",), str(promoted.verdict.outcome))


def test_a_control_says_so() -> None:
    verdict = dataclasses.replace(upgraded(started=3).verdict, control=True, as_expected=True)
    cell = only(dataclasses.replace(upgraded(started=3), verdict=verdict))
    assert cell_text(cell) == "fail (control, as expected): 3 of 3 started"


def test_a_drill_that_never_began_is_in_the_table_with_its_reason() -> None:
    values = {"from": NAMES["new"], "to": NAMES["own"], "looks": 5}
    absent = Absent("flagger-upgrade", "any,from=flagger-1.38.0,to=bundled", values, "no Go")
    found = whole(*square(), absent)
    (table,) = found.tables
    assert table.columns is not None
    assert table.columns.values == (NAMES["old"], NAMES["new"], NAMES["own"])
    assert cell_text(table.cell(NAMES["new"], NAMES["own"])) == "not run"
    assert cell_text(table.cell(NAMES["old"], NAMES["own"])) == "not run"
    text = matrix_markdown(found)
    assert "flagger@1.38.0 → bundled: no Go." in text
    assert "flagger@1.37.0 → bundled: it is not among these drills." in text
    assert found.exit_code is ExitCode.ERROR


def test_the_worst_cell_gives_the_exit_code() -> None:
    assert whole(*square()).exit_code is ExitCode.FAILED
    assert whole(drill(upgraded(), to="new")).exit_code is ExitCode.OK
    assert whole(drill(upgraded(ignored=1), to="new")).exit_code is ExitCode.UNDECIDED


# ---- what it looks like


def test_the_page_has_the_table_with_links_and_everything_below_it() -> None:
    text = matrix_markdown(whole(*square()))
    assert text.startswith("# Matrix: flagger-upgrade\\[any\\]\n")
    assert "| `from` ↓ `to` → | flagger@1.37.0 | flagger@1.38.0 |" in text
    link = "any%2Cfrom=flagger-1.37.0%2Cto=flagger-1.38.0/report.md"
    assert "| flagger@1.37.0 | [✅ pass: 0 of 3 started](any" in text
    assert f"[❌ fail: 3 of 3 started]({link})" in text
    assert (
        "drill run flagger-upgrade --variant any --across from=flagger@1.37.0,flagger@1.38.0 "
        "--across to=flagger@1.37.0,flagger@1.38.0 --set canaries=3 --cluster embedded\n"
    ) in text
    assert "Nodes: real, 2 for each drill. What was seen holds for these nodes" in text
    assert "| subjects | flagger@1.37.0, flagger@1.38.0 |" in text
    assert "| when | " in text
    assert " together |" in text
    assert "`no-start`" in text


def test_the_page_says_that_nodes_are_simulated_and_what_that_does_not_prove() -> None:
    report = upgraded()
    env = dataclasses.replace(report.environment, simulated="kwok v1")
    text = matrix_markdown(whole(drill(dataclasses.replace(report, environment=env), to="new")))
    assert "Nodes: simulated (kwok v1), 2 for each drill. API server, controllers and" in text
    assert "| nodes | simulated (kwok v1), 2 for each drill |" in text


def test_commands_that_differ_in_more_than_their_cells_are_all_told() -> None:
    first, second = drill(upgraded(), to="old"), drill(upgraded(), to="new")
    other = f"{second.report.reproduce} --seed 2"
    second = Told(dataclasses.replace(second.report, reproduce=other))
    assert of(first, second).reproduce == (first.report.reproduce, other)


def test_a_matrix_of_the_file_needs_no_option_to_reproduce() -> None:
    drills = [drill(upgraded(), to=to) for to in ("old", "new")]
    plain = [
        Told(
            dataclasses.replace(
                one.report, reproduce=f"drill run x --variant {one.report.scenario.variant}"
            )
        )
        for one in drills
    ]
    assert of(*plain).reproduce == ("drill run x --variant any",)


def test_a_large_one_fits_into_a_comment() -> None:
    drills = [
        drill(upgraded(started=3), **{"from": f"flagger@1.{a}.0", "to": f"flagger@1.{b}.0"})
        for a in range(14)
        for b in range(14)
    ]
    text = matrix_markdown(whole(*drills))
    assert len(text) < GITHUB
    assert "Every drill, with its verdict" in text
    least = matrix_markdown(whole(*drills), limit=30_000)
    assert "Every drill, with its verdict" not in least
    assert least.count("[❌ fail: 3 of 3 started](") == 196


def test_the_json_form_fits_its_schema_which_is_up_to_date() -> None:
    text = SCHEMA.read_text(encoding="utf-8")
    assert text == schema_text()
    body = json.loads(json_matrix(whole(*square())))
    jsonschema.validate(body, json.loads(text))
    cell = body["tables"][0]["cells"][1]
    assert (cell["started"], cell["rollouts"], cell["outcome"]) == (3, 3, "fail")
    assert cell["values"] == {"from": NAMES["old"], "to": NAMES["new"]}


# ---- reports read back


def test_a_report_reads_back_the_same() -> None:
    for report in (upgraded(started=1), judge(stories.promotion().timeline())):
        again = read_report(json_report(report))
        assert json_report(again) == json_report(report)
        run = RunReport("r", (report,))
        assert json_report(read_report(json_report(run))) == json_report(run)


def test_a_report_of_a_later_version_is_read_without_what_is_not_known() -> None:
    body = {**upgraded().to_json(), "later": {"a": 1}}
    assert read_report(json.dumps(body)) == read_report(json_report(upgraded()))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "is no report of format drill-report/1 or drill-run/1"),
        ('{"format": "drill-report/1"}', "run_id: Field required"),
        ('{"format": "drill-run/1", "drills": [1]}', "is no report of format drill-report/1"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(ReportError, match=told):
        read_report(text)
