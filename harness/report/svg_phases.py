"""The phases in the picture of a drill: from when to when each was, and where its name goes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.report.svg_canvas import WIDTH, Scale, fitted, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.report import PhaseRow

_ROWS: Final = 5
_WIDEST: Final = 160
"""Of a phase's name, in pixels."""
_PADDING: Final = 8

Spot = tuple[float, float]
"""From where to where something goes, in pixels from the left."""


class Band(NamedTuple):
    """A phase, from one moment to another."""

    since: float
    until: float
    phase: str


class Name(NamedTuple):
    """A phase's name: its band begins at `x`, the name at `begin`; row 0 is within the band, the others are above it."""

    row: int
    x: float
    begin: float
    text: str


def bands(rows: Sequence[PhaseRow], most: int) -> tuple[list[Band], int]:
    """Return the last so many phases, and how many are left out. The last row, which has no length, is none of them."""
    found: list[Band] = []
    for row, after in itertools.pairwise(rows):
        if found and found[-1].phase == row.phase:
            found[-1] = found[-1]._replace(until=after.t)
        else:
            found.append(Band(row.t, after.t, row.phase))
    named = [band for band in found if band.phase]
    return named[-most:], max(len(named) - most, 0)


def place(found: Sequence[Band], scale: Scale) -> tuple[list[Name], int]:
    """Return where the phases' names go, and how many find no room.

    It goes from right to left: names run to the right, so one that has to make way for a later one stands above it, and no leader
    crosses a name.
    """
    taken: list[list[Spot]] = [[] for _ in range(_ROWS)]
    placed = []
    for band in reversed(found):
        x, end = scale.x(band.since), scale.x(band.until)
        text = fitted(band.phase, _WIDEST)
        width = width_of(text, bold=True) + _PADDING
        begin = min(x, WIDTH - width)
        spot, leader = (begin, begin + width), (x - 1, x + 2)
        row = _free(spot, leader, taken, 0 if begin == x and spot[1] <= end else 1)
        if row is not None:
            taken[row].append(spot)
            for lower in taken[:row]:
                lower.append(leader)
            placed.append(Name(row, x, begin, text))
    return placed, len(found) - len(placed)


def _free(spot: Spot, leader: Spot, taken: list[list[Spot]], lowest: int) -> int | None:
    for row in range(lowest, len(taken)):
        if not overlaps(spot, taken[row]):
            crossed = any(overlaps(leader, lower) for lower in taken[:row])
            return None if crossed else row
    return None


def overlaps(spot: Spot, taken: Sequence[Spot]) -> bool:
    """Whether something would cover what is there already."""
    return any(spot[0] < end and begin < spot[1] for begin, end in taken)
