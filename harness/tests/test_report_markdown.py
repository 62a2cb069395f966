"""The Markdown reports: that of a drill says what a person would have written down by hand, and fits into an issue."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest

from harness.checks.judge import judge
from harness.data import data_path
from harness.model import timeline as tl
from harness.model.outcome import Outcome
from harness.model.report import PhaseRow, PodPlace, RunReport
from harness.report.limits import GITHUB, STEPS, fit
from harness.report.markdown import markdown
from harness.report.markdown_run import markdown_run
from harness.report.text import block, code, code_cell, esc, table
from harness.tests import stories
from harness.tests.stories import NEW, NORTH, OLD, SOUTH, TARGET
from harness.tests.timelines import UNSCHEDULABLE

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from harness.model.report import DrillReport


@pytest.fixture(scope="module")
def clean() -> DrillReport:
    return judge(stories.promotion().clean(529.0).timeline())


@pytest.fixture(scope="module")
def control() -> DrillReport:
    return judge(stories.blocked(stories.control()).clean(368.0).timeline())


def cells(text: str, first: str) -> list[list[str]]:
    """Return the rows of the table whose first heading is given."""
    rows = []
    inside = False
    for line in text.splitlines():
        if line.startswith(f"| {first} |"):
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not line.startswith("|--"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def pods(*places: tuple[str, str, str, str]) -> str:
    return "<br>".join(
        f"{app} {revision}@{node} ({state})" for app, revision, node, state in places
    )


OLD_BOTH = [("web-primary", OLD, NORTH, "ready"), ("web-primary", OLD, SOUTH, "ready")]
NEW_BOTH = [("web-primary", NEW, NORTH, "ready"), ("web-primary", NEW, SOUTH, "ready")]
TARGET_BOTH = [("web", TARGET, NORTH, "ready"), ("web", TARGET, SOUTH, "ready")]
HAND_WRITTEN = [
    ("+2:14", "-", "Initialized", pods(*OLD_BOTH)),
    ("+2:29", "0.0 s", "Progressing", pods(("web", TARGET, NORTH, "not ready"), ("web", TARGET, SOUTH, "not ready"), *OLD_BOTH)),
    ("+4:54", "2 min 25 s", "Promoting", pods(*TARGET_BOTH, *OLD_BOTH, ("web-primary", NEW, NORTH, "not ready"))),
    ("+8:26", "5 min 57 s", "Finalising", pods(*TARGET_BOTH, *NEW_BOTH)),
    ("+8:41", "6 min 12 s", "Succeeded", pods(*NEW_BOTH)),
    ("+8:42", "6 min 13 s", "after", pods(*NEW_BOTH)),
]  # fmt: skip
"""What a person noted down at each phase of such a promotion."""


def test_the_table_has_every_row_of_a_hand_written_report(clean: DrillReport) -> None:
    rows = [(row[0], row[1], row[2], row[4]) for row in cells(markdown(clean), "time")]
    assert [row for row in rows if row in HAND_WRITTEN] == HAND_WRITTEN


def test_it_has_what_happened_between_the_phases_too(clean: DrillReport) -> None:
    told = markdown(clean)
    assert f"web-primary {OLD}@{NORTH} (ready, terminating)" in told
    assert len(cells(told, "time")) > len(HAND_WRITTEN)


def test_both_terms_are_quoted_with_the_pod_they_were_read_from(clean: DrillReport) -> None:
    text = markdown(clean)
    blocks = [json.loads(found) for found in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    template = stories.affinity("web-primary", keyed=True)[stories.TERM]
    admitted = stories.affinity("web-primary", OLD, keyed=True)[stories.TERM]
    assert blocks == [template, admitted]
    assert f"Read from Pod web-primary-{OLD}-kx2lp after initialise (+2:14)." in text
    assert (
        "Read from Deployment web-primary: unchanged between initialise (+2:14) and end (+8:41)."
        in text
    )


def test_it_says_where_when_and_with_what(clean: DrillReport) -> None:
    text = markdown(clean)
    for told in (
        "Run `20261029T112235Z-4f1c` of `node-spread-blue-green[with-key]` against context `homelab`, 2026-10-29 11:22:35 to 11:31:24 UTC.",
        "Scenario digest `0123456789ab`",
        "Nodes: real: zwolle-pi-1, zwolle-pi-2.",
        "**Set-up:** A two-replica Deployment held to two nodes",
        "**✅ Verdict:** Clean: the promotion Succeeded 6 min 12 s after the change",
        "Time zero is 2026-10-29T11:22:35Z",
        "The change (step `new revision`) was made at +2:29.",
        "- [x] One promotion is observed from start to finish.",
        "Nothing. Teardown removed 1 Namespace in 6.0 s. 61 resource types were listed",
        "drill run node-spread --cluster context:homelab",
        "| Kubernetes | v1.35.2 |",
    ):
        assert told in text


def test_the_parts_come_in_the_order_in_which_they_are_needed(clean: DrillReport) -> None:
    text = markdown(clean)
    parts = ("# Drill result", "Run `", "Nodes:", "**Set-up:**", "Verdict:", "| check |", "| time |", "```json",
             "## Done when", "## What was left", "## How to reproduce", "## Versions")  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_full_report_of_a_clean_promotion(clean: DrillReport, snapshot: SnapshotAssertion) -> None:
    assert markdown(clean) == snapshot


def test_full_report_of_a_control(control: DrillReport, snapshot: SnapshotAssertion) -> None:
    assert markdown(control) == snapshot


def test_report_of_a_run(
    clean: DrillReport, control: DrillReport, snapshot: SnapshotAssertion
) -> None:
    assert markdown_run(RunReport("20261029T112235Z-4f1c", (clean, control))) == snapshot


def test_simulated_nodes_are_called_that_with_what_they_do_not_prove() -> None:
    cluster = tl.ClusterFacts(
        "embedded", "pool-1", "v1.35.4", ("node-0",), simulated="kwok v0.8.0", seed=7
    )
    text = markdown(judge(stories.promotion(cluster=cluster).timeline()))
    assert "Nodes: simulated (kwok v0.8.0): node-0." in text
    assert "no container ran" in text
    assert "seed 7" in text


def test_a_report_written_before_teardown_says_so(clean: DrillReport) -> None:
    text = markdown(judge(stories.promotion().timeline()))
    assert "Teardown is in progress" in text
    assert "- [ ] Nothing that the drill created is left. (nothing-left is unknown)" in text
    assert "- [x] Nothing that the drill created is left." in markdown(clean)


def test_what_is_left_is_listed_by_kind() -> None:
    items = (
        {"kind": "Service", "namespace": "x", "name": "web", "finalizers": ["a/b"], "why": "stuck"},
        {"kind": "ConfigMap", "namespace": "x", "name": "c"},
    )
    why = ("Service x/web waits for finalizer a/b.",)
    story = stories.promotion().at(529.0)
    story = story.add(tl.Leftovers, items=items, kinds_listed=61, explained=why)
    text = markdown(judge(story.timeline()))
    assert "**2 objects:**\n- ConfigMap `x/c`\n- Service `x/web`, finalizers `a/b`: stuck\n" in text
    assert "\nWhy it did not go:\n\n- Service x/web waits for finalizer a/b.\n" in text


def test_a_changed_term_is_shown_as_a_diff() -> None:
    record = [
        {
            "title": "T",
            "object": "primary-pod",
            "path": "spec.affinity",
            "at": ["initialise", "end"],
        }
    ]
    text = markdown(judge(stories.promotion(stories.body(record=record)).timeline()))
    assert "```diff\n--- initialise\n+++ end\n" in text


def test_foreign_text_cannot_break_the_table_or_call_anybody() -> None:
    story = stories.blocked()
    message = "a|b\n| fake | row |\n<script>alert(1)</script> @octocat #12 `x` [l](http://x) *b*"
    stories.primary_pod(story.at(294.3), NEW, "b6tnm", keyed=False, refused=message)
    text = markdown(judge(story.timeline()))
    assert {len(row) for row in cells(text, "check")} == {3}
    assert {len(row) for row in cells(text, "time")} == {5}
    assert "<script" not in text
    assert "@octocat" not in text
    assert "[l](http" not in text


@pytest.mark.parametrize(
    ("given", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("a\nb", "a b"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("failed_checks", "failed_checks"),
        ("_x_", r"\_x\_"),
        ("hash@node", "hash@node"),
        ("\x1b[31m", r"\[31m"),
    ],
)
def test_escaping(given: str, escaped: str) -> None:
    assert esc(given) == escaped


def test_code_and_blocks_use_longer_fences_than_their_text() -> None:
    assert code("a`b") == "``a`b``"
    assert code_cell("a||b") == r"`a\|\|b`"
    assert block("```\nx\n```", "json").startswith("````json\n")


def test_tables_are_not_padded() -> None:
    assert table(("a", "b"), [("x" * 50, "1e5")]).splitlines()[1:] == [
        "|---|---|",
        f"| {'x' * 50} | 1e5 |",
    ]


def huge(report: DrillReport, count: int, many: int) -> DrillReport:
    """Return a report with so many rows of so many pods."""
    phases = ("Progressing", "Promoting", "Succeeded")
    rows = tuple(
        PhaseRow(
            float(n),
            float(n),
            phases[n * 3 // count],
            0,
            "promote",
            tuple(
                PodPlace(f"p{i}", "web-primary", "primary", NEW, f"node-{n}-{i}", "ready")
                for i in range(many)
            ),
        )
        for n in range(count)
    )
    return dataclasses.replace(report, rows=rows)


def test_a_long_table_shows_the_changes_of_phase_and_folds_the_rest(clean: DrillReport) -> None:
    text = markdown(huge(clean, 60, 2))
    assert [row[2] for row in cells(text, "time")] == ["Progressing", "Promoting", "Succeeded"]
    assert "<summary>All rows (60 of 60)</summary>" in text


@pytest.mark.parametrize(("count", "many"), [(400, 6), (5000, 8), (300, 500)])
def test_a_huge_report_fits_and_says_what_it_leaves_out(
    clean: DrillReport, count: int, many: int
) -> None:
    text = markdown(huge(clean, count, many))
    assert len(text) <= GITHUB
    assert "are left out" in text
    assert "## Versions" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_huge_recording_fits_and_shows_its_newest_rows() -> None:
    story = stories.blocked()
    for n in range(200):
        message = f"{n} nodes are available: {UNSCHEDULABLE * 20}"
        stories.primary_pod(
            story.at(295.0 + n / 10), NEW, f"x{n:04d}", keyed=False, refused=message
        )
    text = markdown(judge(story.timeline()))
    assert len(text) <= GITHUB
    assert "| after |" in text
    assert "more" in text


def test_what_cannot_fit_is_cut_off_in_the_open() -> None:
    text = fit(
        lambda limits: (
            "<details>\n\n```\n" + "line\n" * limits.evidence * 100 + "```\n\n</details>\n"
        ),
        2_000,
    )
    assert len(text) <= 2_000
    assert text.endswith("(Cut off here: report.json has everything.)\n")
    assert text.count("```") == 2
    assert text.count("<details>") == text.count("</details>")


def test_shorter_limits_are_shorter_in_everything() -> None:
    for more, less in itertools.pairwise(STEPS):
        assert all(
            a >= b
            for a, b in zip(dataclasses.astuple(more), dataclasses.astuple(less), strict=True)
        )


@pytest.mark.parametrize("count", [1, 10, 60, 3000])
def test_the_report_of_any_number_of_drills_fits(clean: DrillReport, count: int) -> None:
    bad = dataclasses.replace(
        clean, verdict=dataclasses.replace(clean.verdict, outcome=Outcome.FAIL, as_expected=False)
    )
    text = markdown_run(RunReport("r", (bad,) * count))
    assert len(text) <= GITHUB
    assert f"{count} drill" in text
    assert ("<details open>" in text) is (count <= 10)


def test_a_run_without_drills_has_a_report() -> None:
    assert "0 drills" in markdown_run(RunReport("r", ()))


@pytest.mark.parametrize("name", sorted(stories.FIXTURES))
def test_recorded_timelines_are_what_the_stories_tell(name: str) -> None:
    path = data_path("fixtures", "timelines", f"{name}.jsonl")
    assert path.read_text(encoding="utf-8") == stories.FIXTURES[name](), (
        "run python -m harness.tests.stories"
    )
