"""From values to a Spread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from harness.bench.model import Spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def spread(values: Iterable[float]) -> Spread | None:
    """Return median, 95th percentile and largest of `values`; None without any."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(len(ordered), rank(ordered, 0.5), rank(ordered, 0.95), ordered[-1])


def rank(ordered: Sequence[float], part: float) -> float:
    """Return the smallest of the sorted values that is not below `part` of them (nearest rank): always one that was measured."""
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)]
