"""From what was seen in a stage to its figures. Pure: moments come in, spans come out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.bench.model import PhaseTime, Spread
from harness.bench.spread import spread

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.bench.board import Board


@dataclass(frozen=True, slots=True)
class Change:
    """A change that the API server acknowledged; the event loop's time."""

    sent: float
    acknowledged: float


def detection(board: Board, changes: Mapping[str, Change]) -> Spread | None:
    """Return how long it took from each acknowledged change to the analysis that it began.

    The watch may be faster than the answer to our own request: that counts as no time at all. Changes that began nothing are not in it.
    """
    found: list[float] = []
    for name, change in changes.items():
        starts = board.objects[name].starts if name in board.objects else []
        first = next((t for t in starts if t >= change.sent), None)
        if first is not None:
            found.append(max(first - change.acknowledged, 0.0))
    return spread(found)


def finish(board: Board, changes: Mapping[str, Change], wanted: str) -> Spread | None:
    """Return how long it took from each acknowledged change to the phase that was wanted."""
    found: list[float] = []
    for name, change in changes.items():
        seen = board.objects.get(name)
        moments = seen.phases if seen is not None else []
        first = next((t for t, phase in moments if t >= change.sent and phase == wanted), None)
        if first is not None:
            found.append(max(first - change.acknowledged, 0.0))
    return spread(found)


def phase_times(board: Board, begin: float, end: float) -> tuple[PhaseTime, ...]:
    """Return how long the objects were in each phase that they came into and left between two moments, in the order of coming."""
    spans: dict[str, list[float]] = defaultdict(list)
    first: dict[str, float] = {}
    for seen in board.objects.values():
        for (came, phase), (left, _) in zip(seen.phases, seen.phases[1:], strict=False):
            if begin <= came and left <= end:
                spans[phase].append(left - came)
                first[phase] = min(came, first.get(phase, came))
    rows = ((phase, spread(values)) for phase, values in spans.items())
    ordered = sorted(rows, key=lambda row: first[row[0]])
    return tuple(PhaseTime(phase or "none", of) for phase, of in ordered if of is not None)


def unasked(board: Board, begin: float, end: float, changed: Collection[str]) -> int:
    """Return how many analyses began between two moments beyond one for each changed object."""
    number = 0
    for name, seen in board.objects.items():
        starts = sum(begin <= t <= end for t in seen.starts)
        number += max(starts - (name in changed), 0)
    return number
