"""matrix.md and the table for a terminal (template: reports/templates/matrix.md.j2)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tabulate import tabulate

from harness.model.clock import span
from harness.model.outcome import Outcome
from harness.report.limits import GITHUB
from harness.report.markdown import MARKS, REAL, SIMULATED, environment
from harness.report.text import code_cell, esc, plural, short, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.report.matrix_model import Cell, Facts, Matrix, Table

_SENTENCES: Final = (600, 200, 80, 0)
"""Most characters of a drill's verdict; the whole list of drills is left out at the last one."""
_COUNTS: Final = (
    "Every cell is a drill: its outcome and, where it has several rollouts, how many of them started an analysis between the upgrade "
    "(or, without one, the subject's last start) and the real change, if there is one."
)


def matrix_markdown(matrix: Matrix, *, limit: int = GITHUB) -> str:
    """Return the tables as Markdown of at most `limit` characters, unless the tables alone are longer."""
    text = ""
    for sentence in _SENTENCES:
        text = _render(matrix, sentence)
        if len(text) <= limit:
            break
    return text


def matrix_text(matrix: Matrix) -> str:
    """Return the tables for a terminal."""
    return "\n".join(_plain(one) for one in matrix.tables)


def cell_text(cell: Cell) -> str:
    """Return what a cell says, e.g. `fail: 10 of 10 started`. What is not known never reads like a number."""
    if cell.outcome is None:
        return "not run"
    told = str(cell.outcome)
    if cell.control:
        told += " (control, as expected)" if cell.as_expected else " (control)"
    if not cell.rollouts or cell.outcome in {Outcome.ERROR, Outcome.UNSUPPORTED}:
        return told
    if cell.started is None:
        return f"{told}: starts not known"
    least = "at least " if cell.at_least else ""
    return f"{told}: {least}{cell.started} of {cell.rollouts} started"


def _render(matrix: Matrix, sentence: int) -> str:
    shown = [_table(one, sentence) for one in matrix.tables]
    return environment().get_template("matrix.md.j2").render(tables=shown).strip() + "\n"


def _table(one: Table, sentence: int) -> dict[str, Any]:
    return {
        "title": one.title,
        "question": one.question,
        "description": one.description,
        "lead": _lead(one),
        "table": _grid(one),
        "notes": _notes(one),
        "details": _details(one, sentence) if sentence else "",
        "reproduce": "\n".join(one.reproduce) or "No drill took place.",
        "versions": _versions(one.facts),
    }


def _lead(one: Table) -> str:
    facts = one.facts
    varied = f"Rows are values of {code_cell(one.rows.name)}"
    if one.columns is not None:
        varied += f", columns of {code_cell(one.columns.name)}"
    nodes = ""
    if facts.nodes:
        simulated = all(text.startswith("simulated") for text in facts.nodes)
        nodes = f" Nodes: {esc('; '.join(facts.nodes))}. {SIMULATED if simulated else REAL}"
    return f"{varied}. {_COUNTS}{nodes}"


def _grid(one: Table) -> str:
    name = code_cell(one.rows.name)
    if one.columns is None:
        rows = [(esc(row), _link(one.cell(row))) for row in one.rows.values]
        return table((name, "outcome"), rows)
    columns = one.columns
    headers = [f"{name} ↓ {code_cell(columns.name)} →", *(esc(value) for value in columns.values)]
    lines = [
        [esc(row), *(_link(one.cell(row, column)) for column in columns.values)]
        for row in one.rows.values
    ]
    return table(headers, lines)


def _link(cell: Cell) -> str:
    if cell.outcome is None:
        return esc(cell_text(cell))
    text = f"{MARKS[cell.outcome]} {esc(cell_text(cell))}"
    return f"[{text}]({quote(cell.report, safe='/=')})" if cell.report else text


def _notes(one: Table) -> list[str]:
    notes = [f"{_name(cell)}: {esc(cell.sentence)}." for cell in one.cells if cell.outcome is None]
    repeated = [cell for cell in one.cells if cell.earlier]
    if repeated:
        names = "; ".join(
            f"{_name(cell)} ({plural(cell.earlier, 'earlier report')})" for cell in repeated
        )
        notes.append(f"Run again, the latest counts: {names}.")
    if len(one.facts.digests) > 1:
        notes.append("**The drills are of different versions of the scenario.**")
    return notes


def _name(cell: Cell) -> str:
    return " → ".join(esc(value) for value in cell.values.values())


def _details(one: Table, sentence: int) -> str:
    names = [one.rows.name, *([one.columns.name] if one.columns else [])]
    headers = [*map(code_cell, names), "outcome", "checks not passed", "seconds", "verdict"]
    lines = [
        [
            *(esc(cell.values[name]) for name in names),
            _link(cell),
            ", ".join(code_cell(check) for check in cell.not_passed) or "-",
            "-" if cell.seconds is None else f"{cell.seconds:.0f}",
            esc(short(cell.sentence, sentence)),
        ]
        for cell in one.cells
        if cell.outcome is not None
    ]
    return table(headers, lines) if lines else ""


def _versions(facts: Facts) -> str:
    lines = [
        ("rollout-drill", facts.harness),
        ("subjects", facts.subjects),
        ("Kubernetes", facts.kubernetes),
        ("clusters", facts.clusters),
        ("nodes", facts.nodes),
        ("seed", facts.seeds),
        ("scenario's digest", facts.digests),
        ("runs", facts.runs),
        ("when", (_window(facts),)),
        ("recordings", (f"{span(facts.seconds)} together",)),
    ]
    return table(
        ("what", "version"), [(name, esc(", ".join(texts)) or "-") for name, texts in lines]
    )


def _window(facts: Facts) -> str:
    try:
        begin, end = dt.datetime.fromisoformat(facts.began), dt.datetime.fromisoformat(facts.ended)
    except ValueError:
        return "-"
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"


def _plain(one: Table) -> str:
    if one.columns is None:
        grid = [[row, cell_text(one.cell(row))] for row in one.rows.values]
        headers = [one.rows.name, "outcome"]
    else:
        columns = one.columns
        grid = [
            [row, *(cell_text(one.cell(row, column)) for column in columns.values)]
            for row in one.rows.values
        ]
        headers = [f"{one.rows.name} ↓ {columns.name} →", *columns.values]
    return f"{one.title}\n\n{_tabulated(headers, grid)}\n"


def _tabulated(headers: Sequence[str], grid: Sequence[Sequence[str]]) -> str:
    text: str = tabulate(grid, headers=headers, tablefmt="simple", disable_numparse=True)
    return text
