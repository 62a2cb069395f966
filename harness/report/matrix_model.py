"""Tables of drills for which values were varied, as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.model.outcome import ExitCode, Outcome, combine

FORMAT: Final = "drill-matrix/1"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A value that was varied."""

    name: str
    values: tuple[str, ...]
    """As people write them, in their order."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one combination of values."""

    values: Mapping[str, str]
    """Of the table's dimensions, by name."""
    label: str = ""
    """Of the drill, e.g. `any,from=bundled,to=flagger-1.44.0`; empty where nothing is known of one."""
    outcome: Outcome | None = None
    """None: there is no such drill."""
    as_expected: bool = False
    control: bool = False
    """Whether the drill expects a check to fail."""
    rollouts: int = 0
    """How many there were; 0 for a drill of one."""
    started: int | None = None
    """So many of them started an analysis between the upgrade, or the subject's last start, and the change; None: not known."""
    at_least: bool = False
    """Whether there may have been more, since not everything could be decided."""
    sentence: str = ""
    """The drill's verdict, or why there is no such drill."""
    not_passed: tuple[str, ...] = ()
    """Ids of its checks that did not pass."""
    seconds: float | None = None
    """Length of its recording."""
    started_at: str = ""
    """UTC, ISO 8601."""
    report: str = ""
    """Path of its report, relative to the matrix; empty where there is none."""
    earlier: int = 0
    """Other reports of the same drill, which are older and do not count."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Where and when the drills of a table ran. Each text is there once; several mean that the drills differ in it."""

    harness: tuple[str, ...]
    subjects: tuple[str, ...]
    """Of all drills, those that took over too."""
    kubernetes: tuple[str, ...]
    nodes: tuple[str, ...]
    clusters: tuple[str, ...]
    seeds: tuple[str, ...]
    digests: tuple[str, ...]
    """Of the scenario."""
    runs: tuple[str, ...]
    began: str
    """UTC, ISO 8601: the start of the first drill; empty when none took place."""
    ended: str
    seconds: float
    """The recordings' lengths together."""


@dataclass(frozen=True, slots=True)
class Table:
    """All drills of one variant, by the values that were varied."""

    scenario: str
    variant: str
    question: str
    description: str
    """Of the variant."""
    fixed: Mapping[str, str]
    """Values that are the same in this table and others in another one."""
    rows: Dimension
    columns: Dimension | None
    """None where only one value was varied."""
    cells: tuple[Cell, ...]
    """Row by row, every combination."""
    facts: Facts
    reproduce: tuple[str, ...]
    """One command, or, where the drills differ in more than their cells, one for each."""

    @property
    def title(self) -> str:
        """Scenario, variant, and what is the same in this table."""
        inner = ",".join([self.variant, *(f"{k}={v}" for k, v in self.fixed.items())])
        return f"{self.scenario}[{inner}]"

    def cell(self, row: str, column: str | None = None) -> Cell:
        """Return one cell; raises KeyError when there is none."""
        wanted = {self.rows.name: row}
        if self.columns is not None and column is not None:
            wanted[self.columns.name] = column
        found = next((cell for cell in self.cells if dict(cell.values) == wanted), None)
        if found is None:
            raise KeyError((row, column))
        return found


@dataclass(frozen=True, slots=True)
class Matrix:
    """All tables of one run, or of several."""

    tables: tuple[Table, ...]
    format: str = FORMAT

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for all cells; one whose drill was wanted and did not take place is an error."""
        return combine(
            _exit_code(cell) for table in self.tables for cell in table.cells if cell.label
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON types (schema: `harness/report/matrix-v1.json`)."""
        plain: dict[str, Any] = _plain(self)
        return plain


def _exit_code(cell: Cell) -> ExitCode:
    if cell.as_expected:
        return ExitCode.OK
    if cell.outcome in {Outcome.UNKNOWN, Outcome.UNSUPPORTED}:
        return ExitCode.UNDECIDED
    return ExitCode.ERROR if cell.outcome in {None, Outcome.ERROR} else ExitCode.FAILED


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Outcome):
        return value.value
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
