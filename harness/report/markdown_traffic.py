"""What the Markdown report says of the requests that were sent while the drill was under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harness.model.clock import moment, span
from harness.model.traffic import told_kinds
from harness.report.text import code, code_cell, esc, short, table

if TYPE_CHECKING:
    from harness.model.report import DrillReport
    from harness.model.report_traffic import Answered, TrafficReport, TrafficRow
    from harness.report.limits import Limits

_HEADERS = ("phase", "from", "requests", "failed", "who answered", "median", "p99")
_FAILURES = ("began", "failed by", "after", "answered by")


class Section(NamedTuple):
    """The section about traffic."""

    lead: str
    rows: str
    failures: str
    """A table of failed requests; empty where there are none, or no room."""
    summary: str


def traffic(report: DrillReport, limits: Limits) -> Section | None:
    """Return the section; None where the scenario has no traffic."""
    found = report.traffic
    if found is None:
        return None
    if not found.sent:
        return Section("No request was sent, so nothing can be said about traffic.", "", "", "")
    shown = found.rows[-limits.items :]
    rows = table(_HEADERS, [_cells(row, limits) for row in shown])
    if len(shown) < len(found.rows):
        rows += f"\n\nThe first {len(found.rows) - len(shown)} phases are left out here; report.json has them all."
    failures = found.failures[: limits.items]
    told = ""
    if failures:
        told = table(
            _FAILURES,
            [
                (
                    moment(one.at),
                    f"{one.kind} {one.status}" if one.status else one.kind,
                    _ms(one.ms),
                    code_cell(one.pod) if one.pod else "-",
                )
                for one in failures
            ],
        )
    summary = f"Failed requests ({len(failures)} of {found.failed})"
    return Section(_lead(found), rows, told, summary)


def _lead(found: TrafficReport) -> str:
    failed = "none failed" if not found.failed else f"{found.failed} failed"
    first, last = found.rows[0].since, found.rows[-1].until
    waited = (
        f" Before that, {span(found.waited)} went by without an answer, which do not count."
        if found.waited > 1
        else ""
    )
    return (
        f"A pod in the drill's namespace asked {code(found.url)} {found.rate:g} times a second from {moment(first)} to {moment(last)}: "
        f"{found.sent} requests, {failed}.{waited} A request belongs to the phase in which it began. The pod's clock was set to that of the drill by "
        f"{found.lines} lines of its log, the soonest of which differ by {1000 * found.within:.0f} ms; a delay that all of them have would not be noticed."
    )


def _cells(row: TrafficRow, limits: Limits) -> tuple[str, ...]:
    failed = "0"
    if row.failed and row.first_failure is not None and row.last_failure is not None:
        first, last = moment(row.first_failure), moment(row.last_failure)
        when = first if first == last else f"{first} to {last}"
        failed = f"{row.failed} ({told_kinds(row.kinds)}; {when})"
    who = ", ".join(_share(one) for one in row.answered)
    return (
        esc(row.phase) or "-",
        moment(row.since),
        str(row.sent),
        esc(failed),
        esc(short(who, limits.evidence)) or "nobody",
        _ms(row.median),
        _ms(row.p99),
    )


def _share(one: Answered) -> str:
    name = f"{one.role} {one.hash}".strip() or "somebody unknown"
    return f"{name}: {one.share:g} %"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"
