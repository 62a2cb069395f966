"""The tables of a drill with several rollouts: a line for each group of them, and a row for each rollout."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.model.clock import moment
from harness.model.scenario_checks import ANALYSED
from harness.report.text import esc, plural, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.model.report import Counted, DrillReport, Revision, RolloutRow
    from harness.report.limits import Limits

_UNFOLDED: Final = 20
"""Most rows that are not folded."""
_PHASES: Final = 8
"""Most phases of a rollout that are written out."""
_MOST_GROUPS: Final = 60


class Rollouts(NamedTuple):
    """What the report says of several rollouts."""

    lead: str
    """From when to when is counted, and, where there is only one group, what became of it."""
    groups: str
    """A table with a row for each group; empty where there is only one."""
    table: str
    summary: str
    folded: bool


def rollouts(report: DrillReport, limits: Limits) -> Rollouts | None:
    """Return the tables; None for a drill of one rollout."""
    everything = report.rollouts
    if not everything:
        return None
    groups: dict[str, list[RolloutRow]] = {}
    for row in everything:
        groups.setdefault(row.group, []).append(row)
    several = len(groups) > 1
    shown = _chosen(report, limits.rollouts)
    summary = f"All {len(everything)} rollouts"
    note = ""
    if len(shown) < len(everything):
        summary = f"{len(shown)} of {len(everything)} rollouts"
        note = (
            "Those that differ most from the others of their group; report.json has them all.\n\n"
        )
    lead = _lead(report) if several else f"{_lead(report)} {_sentence(everything)}"
    return Rollouts(
        lead=lead,
        groups=_groups(groups) if several else "",
        table=note + _table(report, shown),
        summary=summary,
        folded=len(everything) > _UNFOLDED,
    )


def _lead(report: DrillReport) -> str:
    rows = report.rollouts
    begin = "Counts begin when the subject was last started"
    if report.upgrade_at is not None:
        begin = f"Counts begin with the upgrade at {moment(report.upgrade_at)}"
    until = "end"
    if report.change_at is not None and any(row.after is not None for row in rows):
        begin += f" and end with the change at {moment(report.change_at)}; what came after it stands behind `then`"
        until = "change"
    if not _compared(rows):
        return f"{begin}."
    return (
        f"{begin}. The target's ReplicaSet and revision are those before the upgrade and at the {until}: "
        "they come from the Deployment controller, whatever the subject makes of them."
    )


def _compared(rows: Sequence[RolloutRow]) -> bool:
    """Whether any target was looked at before a subject was replaced or stopped, so that there is something to compare with."""
    return any(row.target_before.hash for row in rows)


def _sentence(rows: Sequence[RolloutRow]) -> str:
    count = len(rows)
    changed = any(row.after is not None for row in rows)
    compared = _compared(rows)
    when = " before the change" if changed and not compared else ""
    told = [
        f"{sum(1 for row in rows if row.before.starts)} of {count} started an analysis{when}",
        f"{sum(1 for row in rows if row.before.primary_rolls)} rolled their primary",
        f"writes of the revision's record: {_range(rows, _tracking)} each",
        f"looks: {_range(rows, _looks)} each",
    ]
    if compared:
        told.append(f"{sum(1 for row in rows if row.target_unchanged)} targets unchanged")
    if changed:
        told.append(f"analyses after the change: {_range(rows, _after)} each")
    if most := at_once(rows):
        told.append(f"analyses at the same time: {most} at most")
    return f"**{'; '.join(told)}.** Ended: {_endings(rows)}."


def at_once(rows: Sequence[RolloutRow]) -> int:
    """Return how many rollouts were in an analysis at the same time, at most."""
    moves: list[tuple[float, int]] = []
    for row in rows:
        before = False
        for t, phase in row.phases:
            running = phase in ANALYSED
            moves += [(t, running - before)] if running != before else []
            before = running
    # Where one ends in the moment in which another begins, they were not there together.
    return max(itertools.accumulate(step for _, step in sorted(moves)), default=0)


def _groups(groups: dict[str, list[RolloutRow]]) -> str:
    headers = [
        *("group", "rollouts", "ended in", "started", "expected", "primaries rolled"),
        *("tracking writes", "looks", "targets unchanged"),
    ]
    lines = [_group(name, rows) for name, rows in list(groups.items())[:_MOST_GROUPS]]
    text = table(headers, lines)
    if len(groups) > _MOST_GROUPS:
        text += f"\n\n{len(groups) - _MOST_GROUPS} groups are left out; report.json has them all."
    return text


def _group(name: str, rows: list[RolloutRow]) -> tuple[str, ...]:
    expected = {row.expected for row in rows}
    wanted = next(iter(expected)) if len(expected) == 1 else None
    started = str(rows[0].before.starts) if len(rows) == 1 else _some(rows)
    mark = "" if wanted is None or all(row.before.starts == wanted for row in rows) else " ❌"
    return (
        esc(name) or "-",
        str(len(rows)),
        esc(_endings(rows)),
        f"{started}{mark}",
        "-" if wanted is None else str(wanted),
        str(sum(1 for row in rows if row.before.primary_rolls)),
        _range(rows, _tracking),
        _range(rows, _looks),
        f"{sum(1 for row in rows if row.target_unchanged)} of {len(rows)}",
    )


def _some(rows: list[RolloutRow]) -> str:
    return f"{sum(1 for row in rows if row.before.starts)} of {len(rows)}"


def _endings(rows: Sequence[RolloutRow]) -> str:
    counts = Counter(row.final or "no phase" for row in rows).most_common()
    if len(rows) == 1:
        return counts[0][0]
    return ", ".join(f"{count} {phase}" for phase, count in counts)


def _range(rows: Sequence[RolloutRow], value: Callable[[RolloutRow], int]) -> str:
    numbers = [value(row) for row in rows]
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def _tracking(row: RolloutRow) -> int:
    return row.before.tracking_writes


def _looks(row: RolloutRow) -> int:
    return row.looks


def _after(row: RolloutRow) -> int:
    return 0 if row.after is None else row.after.starts


def _chosen(report: DrillReport, most: int) -> list[RolloutRow]:
    """Return so many rows in their order: first those that are not as expected, then the rarest of their kind in their group."""
    everything = report.rollouts
    if len(everything) <= most:
        return list(everything)
    kinds = Counter(_kind(row) for row in everything)
    ranked = sorted(
        range(len(everything)),
        key=lambda i: (not _wrong(everything[i]), kinds[_kind(everything[i])], i),
    )
    return [everything[i] for i in sorted(ranked[:most])]


def _wrong(row: RolloutRow) -> bool:
    return row.expected is not None and row.before.starts != row.expected


def _kind(row: RolloutRow) -> tuple[object, ...]:
    return row.group, row.final, row.before, row.after, row.target_unchanged


def _table(report: DrillReport, rows: Sequence[RolloutRow]) -> str:
    expected = any(row.expected is not None for row in report.rollouts)
    headers = ["rollout", "phases", "starts", *(["expected"] if expected else [])]
    headers += ["primary rolls", "tracking writes", "looks"]
    headers += ["target before → after"] if _compared(report.rollouts) else []
    return table(headers, [_cells(row, report, expected=expected) for row in rows])


def _cells(row: RolloutRow, report: DrillReport, *, expected: bool) -> list[str]:
    name = esc(row.name if not row.group else f"{row.name} ({row.group})")
    wanted = ["-" if row.expected is None else str(row.expected)] if expected else []
    mark = " ❌" if _wrong(row) else ""
    return [
        name,
        esc(_phases(row, report.upgrade_at)) or "-",
        _counts(row, lambda counted: counted.starts) + mark,
        *wanted,
        _counts(row, lambda counted: counted.primary_rolls),
        _counts(row, lambda counted: counted.tracking_writes),
        str(row.looks),
        *([_moved(row.target_before, row.target_after)] if _compared(report.rollouts) else []),
    ]


def _counts(row: RolloutRow, of: Callable[[Counted], int]) -> str:
    return str(of(row.before)) if row.after is None else f"{of(row.before)} then {of(row.after)}"


def _phases(row: RolloutRow, since: float | None) -> str:
    """Return the phases from the upgrade on, the one at that moment first, each other one with its time."""
    begin = 0.0 if since is None else since
    earlier = [phase for t, phase in row.phases if t <= begin]
    waits = [(since, "in line") for since, _ in row.queued]
    later = sorted((t, phase) for t, phase in [*row.phases, *waits] if t > begin)
    told = [earlier[-1] or "none"] if earlier else []
    if not earlier and later and not later[0][1]:
        later[0] = later[0][0], "made"
    told += [f"{phase or 'gone'} {moment(t)}" for t, phase in later]
    if len(told) > _PHASES:
        cut = len(told) - _PHASES + 1
        told = [*told[:2], f"({plural(cut, 'phase')} more)", *told[2 + cut :]]
    return ", ".join(told)


def _moved(before: Revision, after: Revision) -> str:
    if not before.hash or not after.hash:
        return esc(f"{before.text or 'not known'} → {after.text or 'not known'}")
    if before == after:
        return esc(f"{before.text} unchanged")
    return esc(f"{before.text} → {after.text}")
