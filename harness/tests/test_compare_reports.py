"""What a comparison looks like: Markdown, JSON and its schema, the terminal's summary; and the command on recordings."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

import jsonschema
import pytest

from harness.cli.main import main
from harness.compare.comparison import compare
from harness.compare.files import recordings, write
from harness.compare.json_report import SCHEMA, json_comparison, schema_text
from harness.compare.live import folders
from harness.compare.markdown import markdown, since
from harness.compare.summary import summary
from harness.model import timeline as tl
from harness.model.outcome import ExitCode
from harness.report.limits import GITHUB
from harness.tests.compare_stories import BODY, Noise, Play, Shape, told
from harness.tests.test_compare_differences import BLOCKED, bundled, entry, flagger

if TYPE_CHECKING:
    from pathlib import Path

    from harness.compare.model import Comparison

OTHERWISE = Shape(iterations=(0, 1, 2), label="q|`x`", fence=False)


def comparison(*, table: bool = True) -> Comparison:
    entries = (entry(), entry(id="P14", paths=["objects.Nothing/*"])) if table else ()
    sets = [[flagger(OTHERWISE).timeline()], [bundled().timeline()]]
    return compare(sets, entries, reproduce="drill compare spread --subject a --subject b")


def test_the_schema_is_the_one_that_the_types_give() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "run python -m harness.compare.json_report"
    )


@pytest.mark.parametrize("table", [True, False])
def test_the_json_fits_its_schema(*, table: bool) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    body = json.loads(json_comparison(comparison(table=table)))
    jsonschema.validate(body, schema)
    assert body["exit_code"] == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**body, "more": 1}, schema)


def test_unexplained_differences_stand_first_and_documented_ones_have_their_reason() -> None:
    text = markdown(comparison())
    first = text.index("❌ **unexplained**")
    assert first < text.index("| K1 | `phases.web.Progressing.iterations` | 0, 1, 2 | 0, 1 |")
    assert "- **K1** (1 difference): It counts otherwise." in text
    assert "**Not found:** P14 says that `objects.Nothing/*` differs (table.yaml:7)" in text
    assert (
        "**❌ Verdict:** 1 comparison: 4 unexplained differences, 1 documented difference not found; 1 difference documented."
        in text
    )
    assert "drill compare spread --subject a --subject b" in text


def test_the_timelines_stand_side_by_side() -> None:
    text = markdown(comparison())
    assert (
        "| phase | flagger@1.44.0: since change | weight | iterations | pods | bundled: since change "
        "| weight | iterations | pods |"
    ) in text
    row = next(line for line in text.splitlines() if line.startswith("| Progressing |"))
    pods = "primary: 2 ready on 2 nodes<br>target: 2 ready on 2 nodes"
    assert row == f"| Progressing | +1.1 s | 0 | 0, 1, 2 | {pods} | +1.1 s | 0 | 0, 1 | {pods} |"
    assert "| Initializing | -6.0 s |" in text


def test_a_phase_that_one_of_them_lacks_leaves_its_cells_empty() -> None:
    shape = Shape(phases=("Waiting", *Shape().phases))
    text = markdown(
        compare([[flagger().timeline()], [bundled(shape).timeline()]], (), reproduce="x")
    )
    row = next(line for line in text.splitlines() if line.startswith("| Waiting |"))
    assert row.startswith("| Waiting | - | - | - | - | +")


def test_foreign_text_breaks_no_table() -> None:
    text = markdown(comparison())
    for line in text.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert cells in {5, 7, 10}, line


def test_what_is_the_same_is_told_as_such() -> None:
    text = markdown(compare([[flagger().timeline()], [bundled().timeline()]], (), reproduce="x"))
    assert "**✅ Verdict:** 1 comparison: no difference." in text
    assert "6 phases, 18 counters in phases, 12 placements at rest" in text


def test_a_control_that_failed_on_both_sides_is_no_bad_news() -> None:
    body = {"expect": {"phase": "Failed", "fail": ["never-blocked"]}}
    plays = [
        told(BLOCKED, subject=s, body=body)
        for s in (flagger().header().subject, tl.SubjectFacts("b", "1"))
    ]
    for play in plays:
        play.clean(40.0)
    found = compare([[play.timeline()] for play in plays], (), reproduce="x")
    assert "✅ fail as expected, ✅ fail as expected" in markdown(found)


def many() -> Comparison:
    """A hundred rollouts that all differ."""

    def play(subject: tl.SubjectFacts, phase: str) -> Play:
        found = told(Shape(), Noise(), subject=subject)
        for number in range(100):
            found.at(20.0).see(
                {
                    "kind": "Canary",
                    "metadata": {"name": f"web-{number:03}"},
                    "spec": {"targetRef": {"name": f"web-{number:03}"}, "note": "x" * 800},
                    "status": {"phase": phase, "message": phase * 300},
                }
            )
        return found

    one, other = tl.SubjectFacts("a", "1"), tl.SubjectFacts("b", "1")
    sets = [[play(one, "Waiting").timeline()], [play(other, "Failed").timeline()]]
    return compare(sets, (), reproduce="x")


def test_it_fits_github_however_much_differs() -> None:
    found = many()
    assert sum(len(pair.differences) for pair in found.pairs) > 300
    text = markdown(found)
    assert len(text) <= GITHUB
    assert "more (compare.json has them all)" in text
    assert text.rstrip().endswith("for each subject.")


def test_the_summary_says_what_is_wrong() -> None:
    text = summary(comparison())
    assert "fail        spread[plain]: flagger@1.44.0, bundled" in text
    assert (
        "- unexplained: objects.Canary/web.status.lastTrackedRevision: nothing | (present)" in text
    )
    assert "- not found: P14 objects.Nothing/* (table.yaml:7)" in text
    assert text.endswith("(exit code 1)\n")


def test_the_summary_of_very_much_is_short() -> None:
    assert len(summary(many()).splitlines()) < 30


def test_a_drill_that_never_began_is_told() -> None:
    found = dataclasses.replace(comparison(), problems=("spread[plain]: etcd died",))
    assert "**Not run:** spread\\[plain\\]: etcd died" in markdown(found)
    assert "not run     spread[plain]: etcd died" in summary(found)
    assert found.exit_code is ExitCode.ERROR


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.0, "+0.0 s"), (-20.3, "-20.3 s"), (69.7, "+1 min 9 s")]
)
def test_moments_are_told_from_the_change(seconds: float | None, text: str) -> None:
    assert since(seconds) == text


def test_each_subject_has_a_folder_of_its_own() -> None:
    assert folders(["flagger@1.44.0", "bundled", "bundled"]) == [
        *("flagger-1.44.0", "bundled", "bundled-2")
    ]


# ---- the command on recordings


def drill(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def recorded(folder: Path, *plays: Play) -> Path:
    for number, play in enumerate(plays):
        file = folder / f"drill-{number}" / "timeline.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text(play.text(), encoding="utf-8")
    return folder


def test_recordings_are_compared_without_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {**BODY, "id": "spread[other]", "variant": "other"}
    one = recorded(tmp_path / "a", flagger(), told(subject=flagger().header().subject, body=other))
    two = recorded(tmp_path / "b", bundled(), told(subject=bundled().header().subject, body=other))
    out = tmp_path / "out"
    assert drill("compare", "--timelines", str(one), str(two), "--out", str(out)) == ExitCode.OK
    assert "2 comparisons: no difference (exit code 0)" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {"compare.md", "compare.json"}


def test_files_are_compared_and_a_difference_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path, flagger(OTHERWISE), bundled())
    files = [str(tmp_path / f"drill-{n}" / "timeline.jsonl") for n in (0, 1)]
    assert drill("compare", "--timelines", *files) == ExitCode.FAILED
    assert (
        "unexplained: recorded.The primary's template.end.labels.extra" in capsys.readouterr().out
    )
    table = tmp_path / "t.yaml"
    table.write_text(
        "apiVersion: drill/v1\nkind: Differences\nentries:\n  - id: K9\n    subjects: ['flagger@*', bundled]\n"
        "    scenarios: [spread]\n    paths: ['phases.*', 'objects.*', 'recorded.*']\n    why: Known.\n"
    )
    assert drill("compare", "--timelines", *files, "--differences", str(table)) == ExitCode.OK
    assert drill("compare", "--timelines", *files, "--markdown") == ExitCode.FAILED
    assert "# Comparison: spread: flagger@1.44.0 and bundled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "Missing argument"),
        (["compare", "node-spread-blue-green"], "name at least two subjects"),
        (["compare", "node-spread-blue-green", "--subject", "bundled"], "at least two subjects"),
        (
            ["compare", "nosuch", "--subject", "bundled", "--subject", "bundled"],
            "there is no such scenario",
        ),
        (
            ["compare", "node-spread-blue-green", "--subject", "bundled", "--subject", "nobody"],
            "nobody",
        ),
        (
            ["compare", "controller-crash", *["--subject", "bundled"] * 2, "--cluster", "cloud"],
            "allowed: embedded",
        ),
        (["compare", "--timelines", "/nowhere"], "name at least two recordings"),
        (["compare", "--timelines", "/nowhere", "/never"], "/nowhere: No such file"),
        (["compare", "--timelines", "/nowhere", "/never", "--subject", "x"], "what was recorded"),
        (["compare", "x", "--differences", "/nowhere.yaml"], "/nowhere.yaml: there is no such"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_and_exit_code_4(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert drill(*arguments) == ExitCode.USAGE
    output = capsys.readouterr()
    assert message in output.out + output.err
    assert "Traceback" not in output.err


def test_a_folder_without_recordings_and_a_broken_one_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "x" / "timeline.jsonl"
    broken.parent.mkdir()
    broken.write_text("{}\n")
    (tmp_path / "empty").mkdir()
    assert drill("compare", "--timelines", str(tmp_path / "empty"), str(broken)) == ExitCode.USAGE
    assert "holds no timeline.jsonl" in capsys.readouterr().err
    assert drill("compare", "--timelines", str(broken), str(broken)) == ExitCode.USAGE
    assert "timeline.jsonl: line 1: not a timeline header" in capsys.readouterr().err


def test_recordings_of_another_scenario_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"values": {"replicas": 3}}
    recorded(tmp_path, flagger(), told(subject=bundled().header().subject, body=body))
    files = [str(tmp_path / f"drill-{n}" / "timeline.jsonl") for n in (0, 1)]
    assert drill("compare", "--timelines", *files) == ExitCode.USAGE
    assert "the scenario must be the same" in capsys.readouterr().err


def test_a_report_is_not_written_over_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, comparison())
    spread = ["compare", "node-spread-blue-green", "--subject", "bundled", "--subject", "bundled"]
    assert drill(*spread, "--out", str(tmp_path)) == ExitCode.USAGE
    assert "holds the report of another run" in capsys.readouterr().err


def test_reading_back_what_was_recorded(tmp_path: Path) -> None:
    folder = recorded(tmp_path, flagger(), bundled())
    assert [t.header.subject.name for t in recordings(folder)] == ["flagger@1.44.0", "bundled"]
