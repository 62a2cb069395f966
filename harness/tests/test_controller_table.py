"""The decision table against changes of itself: whatever is flipped in it, a vector notices."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, Final

import pytest

from harness.controller.core.change import TABLE, Entry, Migration, Row, Tracking, evaluate
from harness.controller.core.snapshots import Fence, Snapshot
from harness.tests.golden_vectors import holds, ours

Table = tuple[Entry, ...]

VECTORS = ours("decisions")


# Everything that a row can tell apart, in all combinations.
_STORED: Final = ("", "u/0", "u/4", "u/4/2", "u/5/2", "w/4/2")
WORLD: Final = tuple(
    itertools.product(
        ("Succeeded", "Progressing"),
        ("", "1111111111", "v2:a", "v2:b"),
        ("", "v2:a", "v2:b"),
        _STORED,
        ("u/0", "u/4", "u/4/2", "u/6/2"),
        (False, True),
        Migration,
        (False, True),
    )
)


def _answer(case: tuple[Any, ...], table: Table) -> tuple[Any, ...] | None:
    phase, applied, promoted, fence, at, volatile, migration, equal = case
    try:
        said = evaluate(
            Tracking(phase, applied, promoted, fence),
            Snapshot("v2:a", Fence.parse(at), volatile),
            migration=migration,
            primary_equal=equal,
            table=table,
        )
    except StopIteration:
        return None
    return said.row, said.changed, said.error, said.persist


def _mutants() -> list[tuple[str, Table]]:
    found: list[tuple[str, Table]] = []
    for index, entry in enumerate(TABLE):
        before, after = TABLE[:index], TABLE[index + 1 :]
        name = f"{index + 1:02d}-{entry.row.value}"
        found += [
            (f"{name}-removed", before + after),
            (
                f"{name}-changed-inverted",
                (*before, replace(entry, changed=not entry.changed), *after),
            ),
            (
                f"{name}-persist-inverted",
                (*before, replace(entry, persist=not entry.persist), *after),
            ),
            (f"{name}-always", (*before, replace(entry, when=lambda _: True), *after)),
        ]
        if after:
            found.append((f"{name}-swapped", (*before, after[0], entry, *after[1:])))
    return found


def _noticed(table: Table) -> bool:
    for vector in VECTORS:
        try:
            if not holds(vector, table):
                return True
        except StopIteration:
            return True
    return False


EQUIVALENT: Final = {
    "01-first-sync-swapped": "nothing applied is no hash of ours",
    "04-no-fence-changed-swapped": "a hash is ours or another's",
    "06-migration-failed-swapped": "a check that failed found nothing",
    "08-migration-adopted-swapped": "another's hash is no hash of ours",
    "10-recreated-swapped": "an equal fence has an equal uid",
    "17-changed-always": "the last row always holds",
}
"""Flips that change no answer, and why: two guards that cannot both hold may stand in any order."""


@pytest.mark.parametrize(("name", "table"), _mutants(), ids=[name for name, _ in _mutants()])
def test_a_flipped_row_is_noticed(name: str, table: Table) -> None:
    assert _noticed(table) is (name not in EQUIVALENT)


@pytest.mark.parametrize("name", EQUIVALENT)
def test_what_is_said_to_mean_nothing_means_nothing(name: str) -> None:
    table = dict(_mutants())[name]
    assert all(_answer(case, table) == _answer(case, TABLE) for case in WORLD)


def test_every_row_is_in_the_table_and_in_a_vector() -> None:
    assert {entry.row for entry in TABLE} == set(Row)
    assert {vector["row"] for vector in VECTORS} == {row.value for row in Row}


def test_some_state_leads_to_every_row() -> None:
    answers = [_answer(case, TABLE) for case in WORLD]
    assert {answer[0] for answer in answers if answer} == set(Row)
    assert all(answers), "the table has an answer to everything"
