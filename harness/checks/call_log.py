"""What became of every gate and receiver of alerts, and what stood in for what: rows for the report."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.model.report import GateRow, StandInRow
from harness.model.timeline_outside import Call, GateChanged, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.resolved import Resolved
    from harness.model.timeline import Observation

_STRAY = "(no gate of the scenario)"


def gate_rows(observations: Iterable[Observation], scenario: Resolved) -> tuple[GateRow, ...]:
    """Return a row for each gate, then for each receiver of alerts, and one for all calls that went nowhere; empty without a receiver."""
    receiver = scenario.receiver
    if receiver is None:
        return ()
    calls: dict[str, list[Call]] = {}
    answers: dict[str, list[str]] = {}
    for seen in observations:
        if isinstance(seen, Call):
            calls.setdefault(seen.gate, []).append(seen)
        elif isinstance(seen, GateChanged):
            answers.setdefault(seen.gate, []).append(seen.detail)
    rows = [
        _row(name, sort, [given.text, *answers.get(name, ())], calls.get(name, []))
        for sort, gates in (("gate", receiver.gates), ("alert", receiver.alerts))
        for name, given in gates.items()
    ]
    if calls.get(""):
        rows.append(_row(_STRAY, "other", ["404"], calls[""]))
    return tuple(rows)


def _row(name: str, sort: str, answers: list[str], calls: list[Call]) -> GateRow:
    counted = Counter(str(call.status) if call.status else "given up" for call in calls)
    return GateRow(
        name=name,
        sort=sort,
        answers=tuple(answers),
        calls=len(calls),
        answered=dict(sorted(counted.items())),
        phases=tuple(dict.fromkeys(call.phase for call in calls if call.phase)),
        first=calls[0].t if calls else None,
        last=calls[-1].t if calls else None,
    )


def stand_in_rows(observations: Iterable[Observation]) -> tuple[StandInRow, ...]:
    """Return what stood in for what, in order."""
    return tuple(
        StandInRow(seen.part, seen.by, exact=seen.exact)
        for seen in observations
        if isinstance(seen, StandIn)
    )
