"""Which phase of one subject goes with which of the other: the longest common order of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Aligned = list[tuple[int | None, int | None]]
"""Positions in both sequences; None where one has no counterpart."""


def align(left: Sequence[str], right: Sequence[str]) -> Aligned:
    """Return the two sequences side by side, with as many equal names beside each other as possible.

    Among equally good answers always the same one is chosen, whichever sequence comes first.
    """
    if tuple(right) < tuple(left):
        return [(mine, other) for other, mine in _align(right, left)]
    return _align(left, right)


def _align(left: Sequence[str], right: Sequence[str]) -> Aligned:
    most = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            both = most[i + 1][j + 1] + 1 if left[i] == right[j] else 0
            most[i][j] = max(both, most[i + 1][j], most[i][j + 1])
    found: Aligned = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif most[i + 1][j] >= most[i][j + 1]:
            found.append((i, None))
            i += 1
        else:
            found.append((None, j))
            j += 1
    found += [(rest, None) for rest in range(i, len(left))]
    found += [(None, rest) for rest in range(j, len(right))]
    return found
