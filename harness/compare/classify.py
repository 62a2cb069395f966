"""Differences and the table → which are documented, which are not, and which entries of the table are out of date."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.compare.model import Stale, Used
from harness.compare.table import NOTHING, is_scenario, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.compare.model import Difference
    from harness.compare.table import Entry, Placed


@dataclass(frozen=True, slots=True)
class Classified:
    """What the table says about the differences of a pair."""

    differences: tuple[Difference, ...]
    """Unexplained ones first, then in the order in which they were found."""
    used: tuple[Used, ...]
    stale: tuple[Stale, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """What the two subjects of a pair may be called in the table."""

    reference: frozenset[str]
    other: frozenset[str]


def names_of(subject: str, version: str) -> frozenset[str]:
    """Return what a subject may be called: as the user named it, and as `name@version`."""
    return frozenset({subject, f"{subject.partition('@')[0]}@{version.removeprefix('v')}"})


def classify(
    differences: Iterable[Difference], table: Iterable[Placed], scenario: str, names: Names
) -> Classified:
    """Look every difference up. It does not matter which subject is the reference."""
    # An entry that fits both ways round (two versions of one subject) is tried both ways.
    entries = [
        (placed, sides)
        for placed in table
        if placed.entry.elsewhere or is_scenario(placed.entry.scenarios, scenario)
        for sides in [_sides(placed.entry, names)]
        if sides
    ]
    told: list[Difference] = []
    explained: Counter[tuple[int, str]] = Counter()
    counts: Counter[str] = Counter()
    for difference in differences:
        ids: list[str] = []
        for number, (placed, sides) in enumerate(entries):
            hit = [p for p in placed.entry.paths if matches(p, difference.path)]
            if not hit or not any(_fits(placed.entry, side, difference) for side in sides):
                continue
            explained.update((number, path) for path in hit)
            ids += [placed.entry.id] * (placed.entry.id not in ids)
        counts.update(ids)
        told.append(dataclasses.replace(difference, ids=tuple(ids)))
    used: dict[str, Used] = {}
    stale: list[Stale] = []
    for number, (placed, _) in enumerate(entries):
        entry = placed.entry
        live = [path for path in entry.paths if explained[number, path]]
        if is_scenario(entry.scenarios, scenario):
            gone = [path for path in entry.paths if path not in live]
            stale += [Stale(entry.id, path, placed.where) for path in gone]
        if live:
            before = used.get(entry.id)
            whys = [] if before is None else [before.why]
            why = " ".join(dict.fromkeys([*whys, entry.why]))
            used[entry.id] = Used(entry.id, why, counts[entry.id])
    ordered = sorted(told, key=lambda difference: difference.documented)
    return Classified(tuple(ordered), tuple(used.values()), tuple(stale))


def _sides(entry: Entry, names: Names) -> list[Mapping[str, bool]]:
    """Return the ways in which an entry's subjects fit the pair: pattern -> whether it is the reference."""
    first, second = entry.subjects
    ways: list[Mapping[str, bool]] = []
    for one, two in ((first, second), (second, first)):
        if _called(one, names.reference) and _called(two, names.other):
            ways.append({one: True, two: False})
    return ways


def _called(pattern: str, names: frozenset[str]) -> bool:
    return any(matches(pattern, name) for name in names)


def _fits(entry: Entry, side: Mapping[str, bool], difference: Difference) -> bool:
    """Whether what is there on both sides is what the entry is about."""
    for subject, wanted in entry.values.items():
        there = difference.reference if side[subject] else difference.other
        if not matches(wanted, NOTHING if there is None else there):
            return False
    return True
