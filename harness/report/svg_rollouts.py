"""The part of the picture for a drill with several rollouts: a lane for each, its phases in colour; of alike ones only some."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.model.clock import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.report import RolloutRow

MOST_LANES: Final = 60
"""So many rollouts are drawn."""
_KINDS: Final = {
    "": "none",
    "Initializing": "begin",
    "Initialized": "good",
    "Succeeded": "good",
    "Waiting": "run",
    "Progressing": "run",
    "WaitingPromotion": "run",
    "Promoting": "promote",
    "Finalising": "promote",
    "Failed": "bad",
    "Frozen": "frozen",
}
LEGEND: Final = {
    "begin": "Initializing",
    "good": "Initialized, Succeeded",
    "queued": "in line",
    "run": "Waiting, Progressing",
    "promote": "Promoting, Finalising",
    "bad": "Failed",
    "frozen": "Frozen",
    "rest": "other phases",
}
"""Colours, as classes of the style sheet, and the phases that have them."""
_COLOURS: Final = {
    "begin": ("#9da7b3", "#6e7781"),
    "good": ("#2da44e", "#3fb950"),
    "queued": ("#d9c04a", "#b39b2e"),
    "run": ("#c2620a", "#f2a33c"),
    "promote": ("#0a62c9", "#5aa9ff"),
    "bad": ("#d1242f", "#ff6b63"),
    "frozen": ("#1687a7", "#56c7e6"),
    "rest": ("#7a3fc4", "#c297ff"),
}


def css() -> str:
    """Return the rules that only pictures of several rollouts need."""
    light, dark = (
        "".join(f".p-{name}{{stroke:{pair[i]}}}\n" for name, pair in _COLOURS.items())
        for i in (0, 1)
    )
    return f".lane{{stroke-width:7}}\n{light}@media (prefers-color-scheme:dark){{{dark}}}\n"


class Stretch(NamedTuple):
    """A phase of a rollout, from one moment to another."""

    since: float
    until: float
    kind: str


def chosen(rows: Sequence[RolloutRow], most: int = MOST_LANES) -> tuple[list[RolloutRow], int]:
    """Return so many rollouts, grouped, and how many are left out.

    Every group and every way of going through the phases is there before a second one of its kind.
    """
    ranks: list[tuple[int, int, int]] = []
    seen: Counter[tuple[object, ...]] = Counter()
    for index, row in enumerate(rows):
        kind = row.group, tuple(phase for _, phase in row.phases), row.before.starts
        ranks.append((seen[kind], -_trouble(row), index))
        seen[kind] += 1
    kept = sorted(index for *_, index in sorted(ranks)[:most])
    groups = {row.group: number for number, row in reversed(list(enumerate(rows)))}
    shown = sorted((rows[index] for index in kept), key=lambda row: groups[row.group])
    return shown, len(rows) - len(shown)


def _trouble(row: RolloutRow) -> int:
    return int(row.expected is not None and row.before.starts != row.expected)


def stretches(row: RolloutRow, over: float) -> list[Stretch]:
    """Return the phases of a rollout as stretches of colour; `over` is when observation ended."""
    found: list[Stretch] = []
    ends = [*(t for t, _ in row.phases[1:]), over]
    phases = [
        Stretch(since, until, _KINDS.get(phase, "rest"))
        for (since, phase), until in zip(row.phases, ends, strict=False)
    ]
    for since, until, kind in _with_waits(row, phases):
        if kind == "none":
            continue
        if found and found[-1].kind == kind and found[-1].until == since:
            found[-1] = found[-1]._replace(until=until)
        else:
            found.append(Stretch(since, until, kind))
    return found


def _with_waits(row: RolloutRow, phases: list[Stretch]) -> list[Stretch]:
    """Return the phases with those parts of them put in their place in which it waited for its turn."""
    cuts = sorted({moment for wait in row.queued for moment in wait if moment is not None})
    found: list[Stretch] = []
    for phase in phases:
        inner = [t for t in cuts if phase.since < t < phase.until]
        for since, until in itertools.pairwise([phase.since, *inner, phase.until]):
            waits = any(a <= since and (b is None or until <= b) for a, b in row.queued)
            found.append(Stretch(since, until, "queued" if waits else phase.kind))
    return found


def hint(row: RolloutRow) -> str:
    """Return what is said of a rollout when it is pointed at."""
    phases = sorted([*row.phases, *((since, "in line") for since, _ in row.queued)])
    told = ", ".join(f"{phase or 'no phase'} from {moment(t)}" for t, phase in phases[:12])
    group = f" ({row.group})" if row.group else ""
    return f"{row.name}{group}: {told}"


def label(row: RolloutRow) -> str:
    """Return the name of a rollout's lane."""
    return row.group or row.name
