"""The table of phases and placement, folded and shortened where it is long."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.model.clock import moment, span
from harness.report.text import esc, table

if TYPE_CHECKING:
    from harness.model.report import DrillReport, PhaseRow
    from harness.report.limits import Limits

_HEADERS = ("time", "since change", "phase", "weight", "pods")
_PODS = 4
"""Position of the last column."""


class Rows(NamedTuple):
    """The table: what is shown, and what is folded."""

    main: str
    folded: str
    summary: str


def rows(report: DrillReport, limits: Limits) -> Rows:
    """Return the table. A long one shows the rows that matter most and folds the whole."""
    everything = report.rows
    if len(everything) <= limits.main_rows:
        return Rows(_table(everything, limits), "", "")
    chosen = _chosen(everything, limits.main_rows)
    main = _table(chosen, limits)
    kept = everything[-limits.rows :] if limits.rows else ()
    if not kept:
        note = f"{len(everything) - len(chosen)} of {len(everything)} rows are left out; report.json has them all."
        return Rows(f"{main}\n\n{note}", "", "")
    dropped = len(everything) - len(kept)
    folded = _table(kept, limits)
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


def _table(shown: tuple[PhaseRow, ...] | list[PhaseRow], limits: Limits) -> str:
    cells = [_cells(row, limits) for row in shown]
    if not any(row.route for row in shown):
        return table(_HEADERS, cells)
    # The weight is what the rollout object says; the route is what requests meet.
    routes = [esc(row.route) or "-" for row in shown]
    headers = (*_HEADERS[:_PODS], "route", *_HEADERS[_PODS:])
    wide = [(*c[:_PODS], route, *c[_PODS:]) for c, route in zip(cells, routes, strict=True)]
    return table(headers, wide)


def _cells(row: PhaseRow, limits: Limits) -> tuple[str, ...]:
    pods = [esc(pod.text) for pod in row.pods[: limits.pods]]
    if len(row.pods) > limits.pods:
        pods.append(f"… and {len(row.pods) - limits.pods} more")
    return (
        moment(row.t),
        "-" if row.since_change is None else span(row.since_change),
        esc(row.phase) or "-",
        "-" if row.weight is None else str(row.weight),
        "<br>".join(pods) or "none",
    )
