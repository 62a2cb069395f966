"""The table of phases and placement, folded and shortened where it is long."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.model.clock import moment, span
from harness.report.markdown_places import places
from harness.report.text import esc, table

if TYPE_CHECKING:
    from harness.model.report import DrillReport, PhaseRow
    from harness.report.limits import Limits

_HEADERS = ("time", "since change", "phase", "weight")
"""Those behind them tell where pods are."""


class Rows(NamedTuple):
    """The table: what is shown, and what is folded."""

    main: str
    folded: str
    summary: str


def rows(report: DrillReport, limits: Limits) -> Rows:
    """Return the table. A long one shows the rows that matter most and folds the whole."""
    everything = report.rows
    if len(everything) <= limits.main_rows:
        return Rows(_table(report, everything, limits), "", "")
    chosen = _chosen(everything, limits.main_rows)
    main = _table(report, chosen, limits)
    kept = everything[-limits.rows :] if limits.rows else ()
    if not kept:
        note = f"{len(everything) - len(chosen)} of {len(everything)} rows are left out; report.json has them all."
        return Rows(f"{main}\n\n{note}", "", "")
    dropped = len(everything) - len(kept)
    folded = _table(report, kept, limits)
    if dropped:
        folded = (
            f"The first {dropped} rows are left out here; report.json has them all.\n\n{folded}"
        )
    note = "Shown are the changes of phase and the moments in which a pod had no node."
    return Rows(f"{note}\n\n{main}", folded, f"All rows ({len(kept)} of {len(everything)})")


def _chosen(everything: tuple[PhaseRow, ...], most: int) -> list[PhaseRow]:
    """Return the rows for a short table: first every change of phase, then the first moments in which a pod was blocked."""
    phases: list[int] = []
    blocked: list[int] = []
    before: PhaseRow | None = None
    for index, row in enumerate(everything):
        if before is None or row.phase != before.phase:
            phases.append(index)
        elif _blocked(row) - _blocked(before):
            blocked.append(index)
        before = row
    # Of more phases than fit, the last ones tell how it ended.
    picked = phases[-most:]
    picked += blocked[: most - len(picked)]
    return [everything[index] for index in sorted(picked)]


def _blocked(row: PhaseRow) -> set[str]:
    return {pod.name for pod in row.pods if not pod.node}


def _table(
    report: DrillReport, shown: tuple[PhaseRow, ...] | list[PhaseRow], limits: Limits
) -> str:
    found = places(report, shown, limits)
    # The weight is what the rollout object says; the route is what requests meet.
    routed = any(row.route for row in shown)
    headers = (*_HEADERS, *(("route",) if routed else ()), *found.headers)
    cells = [
        (*_cells(row), *((esc(row.route) or "-",) if routed else ()), *where)
        for row, where in zip(shown, found.cells, strict=True)
    ]
    return table(headers, cells)


def _cells(row: PhaseRow) -> tuple[str, ...]:
    return (
        moment(row.t),
        "-" if row.since_change is None else span(row.since_change),
        esc(row.phase) or "-",
        "-" if row.weight is None else str(row.weight),
    )
