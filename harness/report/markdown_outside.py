"""What the Markdown report says of the world outside the cluster: the calls that came in, and what stood in for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.clock import moment
from harness.report.text import code_cell, esc, short, table

if TYPE_CHECKING:
    from harness.model.report import DrillReport, GateRow
    from harness.report.limits import Limits

_HEADERS = ("called", "what", "answers", "times", "it answered", "in phases", "first", "last")


def calls(report: DrillReport, limits: Limits) -> str:
    """Return the table of gates and receivers of alerts; empty where the scenario has none."""
    if not report.calls:
        return ""
    return table(_HEADERS, [_cells(row, limits) for row in report.calls[: limits.items]])


def _cells(row: GateRow, limits: Limits) -> tuple[str, ...]:
    answered = ", ".join(f"{status} ({count})" for status, count in row.answered.items())
    return (
        code_cell(row.name),
        row.sort,
        esc(short(" → ".join(row.answers), limits.evidence)),
        str(row.calls),
        esc(answered) or "-",
        esc(", ".join(row.phases)) or "-",
        "-" if row.first is None else moment(row.first),
        "-" if row.last is None else moment(row.last),
    )


def queries(report: DrillReport) -> str:
    """Return what the metrics server was asked, in sentences; empty where the scenario has no metrics."""
    row = report.queries
    if row is None:
        return ""
    if not row.total:
        return "Nobody asked it anything."
    answered = ", ".join(f"{status}: {count}" for status, count in row.answered.items())
    at = "" if row.peak_at is None else f" (up to {moment(row.peak_at)})"
    told = [
        f"{row.total} {'query' if row.total == 1 else 'queries'} came in; what they got: {answered}.",
        f"At most {row.peak} came in within one second{at}.",
    ]
    if row.counted is not None:
        told.append(
            f"By its own count the server answered {row.counted}, at most {row.counted_peak:.1f} in a second."
        )
    return esc(" ".join(told))


def stand_ins(report: DrillReport) -> list[tuple[str, str]]:
    """Return rows of the table of versions: `stand-in`, and who stood in for what."""
    return [
        (
            "stand-in",
            f"{row.part}: {row.by}" + ("" if row.exact else " (not the program that people run)"),
        )
        for row in report.stand_ins
    ]
