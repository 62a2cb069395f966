"""What became of every combination of values that were varied: tables of drills, from their reports. Pure.

A drill's label says which values were varied for it (`any,from=bundled,to=flagger-1.44.0`). The first one makes the rows of a table,
the second one its columns, and each combination of any others a table of its own.
"""

from __future__ import annotations

import itertools
import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.model.names import label_cell, label_part
from harness.model.outcome import Outcome
from harness.report.matrix_model import Cell, Dimension, Facts, Matrix, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.model.report import DrillReport, EnvironmentFacts

_UNDECIDED: Final = frozenset({Outcome.ERROR, Outcome.UNKNOWN, Outcome.UNSUPPORTED})
_LEFT: Final = "nothing-left"
"""The one check that says nothing about what was observed."""
_TABLE: Final = 2
"""Dimensions of a table."""
_ACROSS: Final = "--across"
_VARIANT: Final = "--variant"


@dataclass(frozen=True, slots=True)
class Told:
    """A drill of a matrix that took place."""

    report: DrillReport
    path: str = ""
    """Of its report for people, relative to where the matrix will be; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A drill of a matrix that did not take place."""

    scenario: str
    label: str
    """The variant with its cell, e.g. `any,from=bundled`."""
    values: Mapping[str, Any]
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a drill belongs."""

    scenario: str
    variant: str
    cell: Mapping[str, str]
    """All values that were varied for it, as people write them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The dimensions of its table: one or two."""
        return tuple(self.cell)[:_TABLE]

    @property
    def key(self) -> tuple[str, ...]:
        """The cell in its table."""
        return tuple(self.cell[name] for name in self.names)

    @property
    def fixed(self) -> dict[str, str]:
        """What further values were varied, each with its value here."""
        return {name: value for name, value in self.cell.items() if name not in self.names}

    @property
    def table(self) -> tuple[object, ...]:
        """What drills of one table have in common."""
        return self.scenario, self.variant, self.names, _canonical(self.fixed)


@dataclass(slots=True)
class _Group:
    """The drills of one table."""

    place: _Place
    """Of any of them."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Values that are not varied at all."""
    told: dict[tuple[str, ...], list[Told]] = field(default_factory=dict)
    absent: dict[tuple[str, ...], Absent] = field(default_factory=dict)


class _Orders:
    """In which order the values of each dimension came first."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], dict[str, None]] = {}

    def see(self, place: _Place) -> None:
        for name, value in place.cell.items():
            self._seen.setdefault((place.scenario, place.variant, name), {})[value] = None

    def dimensions(self, group: _Group) -> list[Dimension]:
        place, there = group.place, [*group.told, *group.absent]
        found = []
        for i, name in enumerate(place.names):
            here = {key[i] for key in there}
            every = self._seen[place.scenario, place.variant, name]
            found.append(Dimension(name, tuple(value for value in every if value in here)))
        return found


def matrix(drills: Sequence[Told | Absent]) -> Matrix | None:
    """Return the tables of all drills for which values were varied; None when there is no such drill.

    Values come in the order in which the drills first have them. Of several reports of one cell the latest counts. Drills with other
    values beside those that are varied are not mixed: they get a table of their own.
    """
    orders = _Orders()
    groups: dict[tuple[object, ...], _Group] = {}
    for drill in drills:
        place = _place(drill)
        if not place.cell:
            continue
        orders.see(place)
        if isinstance(drill, Told):
            values = drill.report.scenario.values
            others = {name: value for name, value in values.items() if name not in place.cell}
            key = (*place.table, _canonical(others))
            groups.setdefault(key, _Group(place, others)).told.setdefault(place.key, []).append(
                drill
            )
    for drill in drills:
        place = _place(drill)
        if not place.cell or isinstance(drill, Told):
            continue
        # Its other values are not those of a recording, from which parts may have been taken out: it goes with any of its kind.
        alike = [group for group in groups.values() if group.place.table == place.table]
        group = alike[0] if alike else groups.setdefault(place.table, _Group(place))
        group.absent[place.key] = drill
    if not groups:
        return None
    every = list(groups.values())
    return Matrix(tuple(_table(group, every, orders.dimensions(group)) for group in every))


def _place(drill: Told | Absent) -> _Place:
    if isinstance(drill, Told):
        facts = drill.report.scenario
        scenario, label, values = facts.name, facts.variant, facts.values
    else:
        scenario, label, values = drill.scenario, drill.label, drill.values
    cell = {name: _shown(values.get(name), part) for name, part in label_cell(label).items()}
    return _Place(scenario, label.split(",", 1)[0], cell)


def _shown(value: Any, part: str) -> str:
    """Return a value as people write it; what was replaced in the recording is told by the drill's label."""
    if label_part(value) != part:
        return part
    return value if isinstance(value, str) and value else _canonical(value)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _table(group: _Group, every: Sequence[_Group], dimensions: Sequence[Dimension]) -> Table:
    place = group.place
    rows, columns = dimensions[0], dimensions[1] if len(dimensions) > 1 else None
    keys = list(itertools.product(*(dimension.values for dimension in dimensions)))
    latest = [_latest(told).report for key in keys if (told := group.told.get(key))]
    return Table(
        scenario=place.scenario,
        variant=place.variant,
        question=next((report.scenario.question for report in latest), ""),
        description=next((report.scenario.description for report in latest), ""),
        fixed={**place.fixed, **_unlike(group, every)},
        rows=rows,
        columns=columns,
        cells=tuple(_cell(group, key) for key in keys),
        facts=_facts(latest),
        reproduce=_reproduce(place.variant, latest),
    )


def _latest(told: Sequence[Told]) -> Told:
    return max(told, key=lambda one: one.report.started_at)


def _unlike(group: _Group, every: Sequence[_Group]) -> dict[str, str]:
    """Return the values by which a group differs from others of the same scenario and variant."""
    place = group.place
    alike = [
        other
        for other in every
        if (other.place.scenario, other.place.variant) == (place.scenario, place.variant)
    ]
    return {
        name: value if isinstance(value, str) else _canonical(value)
        for name, value in group.others.items()
        if any(name in other.others and other.others[name] != value for other in alike)
    }


# ---- one cell


def _cell(group: _Group, key: tuple[str, ...]) -> Cell:
    values = dict(zip(group.place.names, key, strict=True))
    told = group.told.get(key)
    if not told:
        absent = group.absent.get(key)
        if absent is None:
            return Cell(values, sentence="it is not among these drills")
        return Cell(values, absent.label, sentence=absent.reason)
    last = _latest(told)
    report, verdict = last.report, last.report.verdict
    started, at_least = _started(report)
    return Cell(
        values=values,
        label=report.scenario.variant,
        outcome=verdict.outcome,
        as_expected=verdict.as_expected,
        control=verdict.control,
        rollouts=len(report.rollouts),
        started=started,
        at_least=at_least,
        sentence=verdict.sentence,
        not_passed=tuple(f.id for f in report.findings if f.outcome is not Outcome.PASS),
        seconds=report.seconds,
        started_at=report.started_at,
        report=last.path,
        earlier=len(told) - 1,
    )


def _started(report: DrillReport) -> tuple[int | None, bool]:
    """Return how many rollouts started an analysis before the change, and whether there may have been more.

    It is the figure of the report's table of rollouts. None: not known. That none started is only known of a drill that came to its
    upgrade and in which every check could be decided; that all did cannot be outdone.
    """
    rows, env = report.rollouts, report.environment
    upgrades = bool(env.subjects or env.control_planes)
    if not rows or (upgrades and report.upgrade_at is None):
        return None, False
    count = sum(1 for row in rows if row.before.starts)
    if count == len(rows):
        return count, False
    undecided = report.truncated or any(
        finding.outcome in _UNDECIDED for finding in report.findings if finding.id != _LEFT
    )
    if report.verdict.outcome in _UNDECIDED or undecided:
        return (count, True) if count else (None, False)
    return count, False


# ---- below the table


def _facts(reports: Sequence[DrillReport]) -> Facts:
    environments = [report.environment for report in reports]
    return Facts(
        harness=_distinct(env.harness for env in environments),
        subjects=_distinct(
            name for env in environments for name in env.subjects or (env.subject_text,)
        ),
        kubernetes=_distinct(env.kubernetes_text for env in environments),
        nodes=_distinct(_nodes(env) for env in environments),
        clusters=_distinct(env.cluster_kind for env in environments),
        seeds=_distinct(str(env.seed) for env in environments if env.seed is not None),
        digests=_distinct(report.scenario.digest for report in reports),
        runs=_distinct(report.run_id for report in reports),
        began=min((report.started_at for report in reports), default=""),
        ended=max((report.ended_at for report in reports), default=""),
        seconds=sum(report.seconds for report in reports),
    )


def _nodes(env: EnvironmentFacts) -> str:
    kind = f"simulated ({env.simulated})" if env.simulated else "real"
    return f"{kind}, {len(env.nodes)} for each drill"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _reproduce(variant: str, reports: Sequence[DrillReport]) -> tuple[str, ...]:
    """Return one command for the whole table, if the drills' own commands differ in nothing but their cells; else all of those."""
    commands = _distinct(report.reproduce for report in reports)
    try:
        split = [shlex.split(command) for command in commands]
    except ValueError:
        return commands
    lists: dict[str, dict[str, None]] = {}
    for parts in split:
        for option, value in itertools.pairwise(parts):
            if option == _ACROSS:
                key, _, given = value.partition("=")
                lists.setdefault(key, {})[given] = None
    joined = {shlex.join(_joined(parts, variant, lists)) for parts in split}
    return tuple(joined) if len(joined) == 1 else commands


def _joined(
    parts: Sequence[str], variant: str, lists: Mapping[str, Iterable[str]]
) -> Iterator[str]:
    """Yield the parts of a drill's command with the variant without its cell, and with all values in the place of its own."""
    before = ""
    for part in parts:
        if before == _VARIANT:
            yield variant
        elif before == _ACROSS:
            key = part.partition("=")[0]
            yield f"{key}={','.join(lists[key])}"
        else:
            yield part
        before = part if before not in {_VARIANT, _ACROSS} else ""
