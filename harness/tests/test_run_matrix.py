"""The tables of a run, and of folders with the reports of several: which drills are in them, and where their reports are."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from harness.cli.main import main
from harness.cli.sets import across_options, parse_across
from harness.data import data_path
from harness.model.outcome import ExitCode, Outcome
from harness.model.report import RunReport
from harness.report.matrix import Absent, Told, matrix
from harness.report.matrix_markdown import cell_text
from harness.report.read_back import ReportError
from harness.run import session
from harness.run.artefacts import write_drill, write_matrix, write_run
from harness.run.matrix import INTERRUPTED, gather, of_run
from harness.run.plan import Plan
from harness.scenario.loaded import load
from harness.subjects.base import SubjectError
from harness.tests.test_report_matrix import upgraded

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.report import DrillReport
    from harness.report.matrix_model import Matrix

SCENARIO = data_path("scenarios", "flagger-upgrade")
TO = ("bundled", "flagger@1.38.0", "flagger@1.44.0")


def plans() -> list[Plan]:
    drills = load(SCENARIO).resolve("any", {"canaries": "3"}, {"to": list(TO)})
    return [Plan(drill, SCENARIO, "bundled", "embedded", "drill run x") for drill in drills]


def report(plan: Plan, started: int = 0, run: str = "r-1", at: str = "") -> DrillReport:
    made = upgraded(started=started)
    drill = plan.resolved
    facts = dataclasses.replace(
        made.scenario, id=drill.id, name=drill.name, variant=drill.variant, values=drill.values
    )
    return dataclasses.replace(
        made,
        scenario=facts,
        drill_id=plan.name.title,
        run_id=run,
        started_at=at or made.started_at,
    )


def write(folder: Path, pairs: list[tuple[Plan, DrillReport]]) -> None:
    """Write the reports of a run as it would."""
    for plan, one in pairs:
        write_drill(folder / plan.name.folder, one)
    write_run(folder, RunReport(pairs[0][1].run_id, tuple(one for _, one in pairs)))


def cells(found: Matrix | None) -> dict[str, str]:
    assert found is not None
    (table,) = found.tables
    return {value: cell_text(table.cell(value)) for value in table.rows.values}


def drill(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


# ---- a run


def test_a_run_has_all_that_was_planned_with_the_reason_for_what_did_not_take_place() -> None:
    first, second, third = plans()
    finished = {first.name.title: report(first, 3)}
    errors = {second.name.title: SubjectError("no Go")}
    found = of_run([first, second, third], finished, errors)
    assert cells(found) == {
        "bundled": "fail: 3 of 3 started",
        "flagger@1.38.0": "not run",
        "flagger@1.44.0": "not run",
    }
    assert found is not None
    told = found.tables[0].cells
    assert [cell.sentence for cell in told[1:]] == ["no Go", INTERRUPTED]
    assert told[0].report == f"{first.name.folder}/report.md"
    assert first.name.folder.startswith("flagger-upgrade-any-to=bundled-")


def test_a_run_in_which_nothing_was_varied_has_no_table() -> None:
    (one,) = load(SCENARIO).resolve("bundled-to-bundled")
    plan = Plan(one, SCENARIO, "bundled", "embedded", "drill run x")
    assert of_run([plan], {plan.name.title: report(plan)}, {}) is None


def test_a_run_leaves_its_table_beside_the_folders_of_its_drills(tmp_path: Path) -> None:
    pairs = [(plan, report(plan)) for plan in plans()]
    found = of_run(plans(), {plan.name.title: one for plan, one in pairs}, {})
    run = RunReport("r-1", tuple(one for _, one in pairs))
    session._write(tmp_path, session.Session(run, matrix=found))
    assert {path.name for path in tmp_path.iterdir()} == {
        *("matrix.md", "matrix.json", "report.md", "report.json", "junit.xml"),
    }
    session._write(tmp_path / "other", session.Session(run))
    assert not (tmp_path / "other" / "matrix.md").exists()


# ---- folders


def test_a_folder_gives_the_same_table_again(tmp_path: Path) -> None:
    pairs = [(plan, report(plan, n)) for n, plan in enumerate(plans())]
    write(tmp_path, pairs)
    again = matrix(gather([tmp_path], tmp_path))
    by_run = of_run(plans(), {plan.name.title: one for plan, one in pairs}, {})
    assert again == by_run
    # Without the run's report too.
    (tmp_path / "report.json").unlink()
    assert matrix(gather([tmp_path], tmp_path)) == by_run


def test_several_runs_are_merged_and_a_cell_that_was_run_again_replaces_itself(
    tmp_path: Path,
) -> None:
    first, second, third = plans()
    write(tmp_path / "b", [(first, report(first, 1)), (third, report(third))])
    later = {"run": "r-2", "at": "2027-01-01T00:00:00+00:00"}
    write(
        tmp_path / "a", [(first, report(first, 3, **later)), (second, report(second, 2, **later))]
    )
    found = matrix(gather([tmp_path / "a", tmp_path / "b"], tmp_path / "out"))
    assert cells(found) == {
        "bundled": "fail: 3 of 3 started",
        "flagger@1.44.0": "pass: 0 of 3 started",
        "flagger@1.38.0": "fail: 2 of 3 started",
    }
    assert found is not None
    assert found.tables[0].cell("bundled").report == f"../a/{first.name.folder}/report.md"
    assert found.tables[0].facts.runs == ("r-2", "r-1")


def test_values_come_in_the_order_in_which_the_folders_are_named(tmp_path: Path) -> None:
    folders = []
    for number, plan in enumerate(plans()):
        folders.append(tmp_path / str(number))
        write(folders[-1], [(plan, report(plan, run=f"r-{number}"))])
    assert list(cells(matrix(gather(folders, tmp_path)))) == list(TO)
    assert list(cells(matrix(gather(folders[::-1], tmp_path)))) == list(TO)[::-1]


def test_a_drill_that_never_began_stays_in_the_table_until_it_is_run(tmp_path: Path) -> None:
    first, second, _ = plans()
    write(tmp_path / "a", [(first, report(first))])
    made = of_run([first, second], {first.name.title: report(first)}, {})
    assert made is not None
    write_matrix(tmp_path / "a", made)
    found = gather([tmp_path], tmp_path)
    assert [type(one) for one in found] == [Told, Absent]
    assert cells(matrix(found)) == {"bundled": "pass: 0 of 3 started", "flagger@1.38.0": "not run"}
    write(tmp_path / "b", [(second, report(second, run="r-2"))])
    assert cells(matrix(gather([tmp_path], tmp_path)))["flagger@1.38.0"] == "pass: 0 of 3 started"


def test_a_file_that_is_no_report_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "report.json").write_text("{}")
    with pytest.raises(ReportError, match=r"x/report\.json: is no report of format"):
        gather([tmp_path], tmp_path)


# ---- commands


def test_the_command_prints_and_writes_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [(plan, report(plan, n)) for n, plan in enumerate(plans())])
    assert drill("matrix", str(tmp_path)) == ExitCode.FAILED
    told = capsys.readouterr().out
    assert "flagger@1.44.0  fail: 2 of 3 started" in told
    assert not (tmp_path / "matrix.md").exists()
    # Into the same folder too, and again.
    for _ in range(2):
        assert drill("matrix", str(tmp_path), "--out", str(tmp_path)) == ExitCode.FAILED
    body = json.loads((tmp_path / "matrix.json").read_text())
    for cell in body["tables"][0]["cells"]:
        assert (tmp_path / cell["report"]).is_file()
    capsys.readouterr()
    assert drill("matrix", str(tmp_path), "--markdown") == ExitCode.FAILED
    assert capsys.readouterr().out == (tmp_path / "matrix.md").read_text()


def test_the_command_has_nothing_to_say_where_nothing_was_varied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_drill(tmp_path / "x", upgraded())
    assert drill("matrix", str(tmp_path)) == ExitCode.NOTHING_SELECTED
    assert "no report of a drill with a value that was varied" in capsys.readouterr().err
    assert drill("matrix", str(tmp_path / "nowhere")) == ExitCode.USAGE
    assert "nowhere: is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["to"], "--across 'to': expected KEY=VALUE,VALUE"),
        (["to="], "--across 'to=': expected KEY=VALUE,VALUE"),
        (["=a"], "--across '=a': expected KEY=VALUE,VALUE"),
        (["to=[a"], "--across 'to=[a': '[a' is not a list of YAML values"),
        (["to=a]"], "--across 'to=a]': 'a]' is not a list of YAML values"),
        (["to=a", "to=b"], "--across to: given twice; put all of its values behind one"),
        (["t=a"], "--across: t: the scenario declares no such value"),
        (["canaries=1,two"], "--across: canaries: must be a whole number"),
        (["to=nobody"], "upgrade.subject: 'nobody' names no subject (allowed: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_and_exit_code_4(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [part for option in options for part in ("--across", option)]
    assert drill("run", "flagger-upgrade", "--variant", "any", *given) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_values_are_read_as_yaml_and_written_so_that_they_are_read_again() -> None:
    given = parse_across(
        ["a=1,true,null", "b=flagger@1.37.0,flagger@path:/x/y", "c='a,b',[1, 2],\"1\""]
    )
    assert given == {
        "a": [1, True, None],
        "b": ["flagger@1.37.0", "flagger@path:/x/y"],
        "c": ["a,b", [1, 2], "1"],
    }
    assert parse_across(across_options(given)[1::2]) == given
    assert across_options({"b": ["flagger@1.37.0", "bundled"]}) == [
        "--across",
        "b=flagger@1.37.0,bundled",
    ]


def test_render_knows_the_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["render", "flagger-upgrade", "--variant", "any", "--across", "canaries=1,2"]
    assert drill(*line) == ExitCode.OK
    assert capsys.readouterr().out.count("kind: Canary\n") == 3


def test_a_drill_of_the_table_can_be_run_alone_by_its_own_command() -> None:
    label = "any,from=flagger-1.37.0,to=bundled"
    (one,) = load(SCENARIO).resolve(label, None, {"from": ["flagger@1.37.0"], "to": ["bundled"]})
    assert one.id == f"flagger-upgrade[{label}]"
    assert (one.subject, one.subjects[1]) == ("flagger@1.37.0", "bundled")


def test_a_matrix_that_is_not_judged_has_no_such_checks() -> None:
    (one,) = load(SCENARIO).resolve("any", {"realChange": "false"})
    ids = {check.id for check in one.checks}
    assert "no-start" in ids
    assert not ids & {"record-current", "record-written-once", "change-ran", "change-ran-once"}
    assert one.expect.phase == "any"
    assert one.slow
    assert all(line.by for line in one.done_when)
    assert Outcome.FAIL not in {
        check.otherwise for check in one.checks if check.id == "looked-at-each"
    }
