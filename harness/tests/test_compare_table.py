"""The table of documented differences: its file, its mistakes, and the shipped one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from harness.compare.comparison import compare
from harness.compare.files import SHIPPED, recordings, tables
from harness.compare.json_report import json_comparison
from harness.compare.live import folders
from harness.compare.markdown import markdown
from harness.compare.table import is_scenario, load, matches
from harness.data import data_path
from harness.model.outcome import ExitCode
from harness.run.selection import select
from harness.scenario.problem import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
apiVersion: drill/v1
kind: Differences
entries:
  - id: K1
    subjects: ['flagger@*', bundled]
    scenarios: ['spread[*]']
    paths: [phases.*]
    values: {bundled: nothing}
    why: Because.
"""


def table(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "differences.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_an_entry_is_read_with_its_line(tmp_path: Path) -> None:
    (placed,) = load(table(tmp_path, GOOD), "mine.yaml")
    assert placed.where == "mine.yaml:4"
    assert placed.entry.values == {"bundled": "nothing"}
    assert placed.entry.elsewhere is False


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("id: K1", "id: bug-7", ":4: entries[0].id: 'bug-7' is no id; it is one of the letters"),
        ("    why: Because.\n", "", ":4: entries[0].why: is missing"),
        ("why: Because.", "why: ''", ":9: entries[0].why: must not be empty"),
        ("why: Because.", "why: {}", ":9: entries[0].why: must be a text, not a mapping"),
        ("    paths", "    path", ":7: entries[0].path: is not a known field; did you mean 'paths'?"),
        ("paths: [phases.*]", "paths: []", ":7: entries[0].paths: must not be empty"),
        (", bundled]", "]", ":5: entries[0].subjects: must name two subjects"),
        ("{bundled:", "{bundle:", ":8: entries[0].values.bundle: is none of the entry's subjects; did you mean 'bundled'?"),
        ("why: Because.", "why: Because.\n    elsewhere: often", ":10: entries[0].elsewhere: must be true or false, not a text"),
        ("drill/v1", "drill/v2", ":1: apiVersion: cannot be 'drill/v2' (allowed: drill/v1)"),
        ("kind: Differences", "kind: Scenario", ":2: kind: cannot be 'Scenario' (allowed: Differences)"),
        ("kind: Differences", "kinds: Differences", ":2: kinds: is not a known field; did you mean 'kind'?"),
        (GOOD, "- x\n", "must be a mapping, not a list"),
        (GOOD, "", "must hold exactly one document"),
    ],
    ids=lambda value: value if str(value).startswith(":") else "",
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_field(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    file = table(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        load(file, "t.yaml")
    assert told in str(caught.value)
    assert all(line.startswith("t.yaml") for line in str(caught.value).splitlines())


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    file = table(
        tmp_path, GOOD.replace("id: K1", "id: x").replace("paths: [phases.*]", "paths: []")
    )
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert len(caught.value.problems) == 2


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no such file"):
        tables([tmp_path / "none.yaml"])


def test_a_further_table_comes_behind_the_shipped_one(tmp_path: Path) -> None:
    assert tables([table(tmp_path, GOOD)])[:-1] == tables()


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("a.*.c", "a.b.d.c", True),
        ("*[x]", "spread[x]", True),
        ("a[0]", "a0", False),
        ("*", "any\nthing", True),
        ("a", "ab", False),
    ],
)
def test_a_star_stands_for_anything_and_the_rest_for_itself(
    pattern: str, text: str, *, fits: bool
) -> None:
    assert matches(pattern, text) is fits


def test_a_scenario_without_a_variant_stands_for_all_of_them() -> None:
    assert is_scenario(["spread"], "spread[with-key]")
    assert is_scenario(["spread[with-*]"], "spread[with-key]")
    assert not is_scenario(["spread[no-surge]"], "spread[with-key]")
    assert not is_scenario(["spread"], "spread-more[with-key]")


def test_the_shipped_table_is_about_scenarios_that_there_are() -> None:
    known = [drill.id for _, drill in select([], [])]
    for placed in load(data_path(*SHIPPED)):
        for pattern in placed.entry.scenarios:
            assert any(is_scenario([pattern], name) for name in known), (placed.where, pattern)


RECORDED = sorted(path.name for path in data_path("reports", "comparisons").glob("*"))


@pytest.mark.parametrize("name", RECORDED)
def test_published_comparisons_come_out_of_their_recordings_again(name: str) -> None:
    folder = data_path("reports", "comparisons", name)
    published = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
    sets = [recordings(folder / subject) for subject in folders(published["subjects"])]
    found = compare(sets, tables(), reproduce=published["reproduce"])
    assert markdown(found) == (folder / "compare.md").read_text(encoding="utf-8")
    assert json_comparison(found) == (folder / "compare.json").read_text(encoding="utf-8")
    assert found.exit_code is ExitCode.OK
