"""A comparison, as data. Markdown, JSON and the terminal's summary are all derived from it.

Times named `t` are seconds after a drill's time zero; `since_change` counts from the change and is negative before it. The first
subject is the reference, and every other one is compared with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.model.outcome import ExitCode, Outcome, combine
from harness.model.report import (  # noqa: TC001 - the schema is made from the types at run time
    EnvironmentFacts,
    ScenarioFacts,
)

FORMAT: Final = "drill-comparison/1"


@dataclass(frozen=True, slots=True)
class Visit:
    """A phase of a rollout, from entering to leaving it."""

    phase: str
    t: float
    since_change: float | None
    """When it was entered; None where nothing was changed."""
    weights: tuple[int, ...]
    """The weights that the status showed meanwhile, each once in a row."""
    iterations: tuple[int, ...]
    failed_checks: tuple[int, ...]
    placements: Mapping[str, str]
    """Role -> where its pods were, e.g. `2 ready on 2 nodes`; a role that never came to rest is missing."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the two subjects of a pair did not have in common."""

    path: str
    """E.g. `phases.web.Progressing.iterations`, `objects.Service/web.spec.type`."""
    reference: str | None
    """As a text; None: there was no such thing."""
    other: str | None
    ids: tuple[str, ...] = ()
    """Entries of the table that explain it; none: unexplained."""

    @property
    def documented(self) -> bool:
        """Whether an entry of the table explains it."""
        return bool(self.ids)


@dataclass(frozen=True, slots=True)
class Used:
    """An entry of the table that explains something here."""

    id: str
    why: str
    count: int
    """How many differences it explains."""


@dataclass(frozen=True, slots=True)
class Stale:
    """An entry of the table that applies here and explains nothing."""

    id: str
    path: str
    """The path, as it stands in the table, at which there is no difference."""
    where: str
    """File and line of the entry."""


@dataclass(frozen=True, slots=True)
class Row:
    """A phase of both subjects of a pair, or of one where the other had no such phase."""

    rollout: str
    phase: str
    reference: Visit | None
    other: Visit | None


@dataclass(frozen=True, slots=True)
class Pair:
    """The reference and one other subject, on one scenario."""

    reference: str
    other: str
    outcome: Outcome
    """`fail`: unexplained differences, or stale entries. `unknown` or worse: there was nothing to compare, or not all of it."""
    sentence: str
    differences: tuple[Difference, ...] = ()
    """Unexplained ones first. None where one of the two lacks what the scenario requires: it did nothing."""
    used: tuple[Used, ...] = ()
    stale: tuple[Stale, ...] = ()
    compared: Mapping[str, int] = field(default_factory=dict)
    """How many things of each sort were compared, e.g. `{phases: 6, placements: 11}`."""
    rows: tuple[Row, ...] = ()

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        """The differences that no entry explains."""
        return tuple(d for d in self.differences if not d.documented)


@dataclass(frozen=True, slots=True)
class Side:
    """One subject's drill."""

    subject: str
    """The subject's name, with a number behind it where the same one is compared with itself."""
    run_id: str
    drill_id: str
    started_at: str
    environment: EnvironmentFacts
    outcome: Outcome
    """Of the drill by itself."""
    as_expected: bool
    """Whether that is what the scenario expects, as of a control."""
    exit_code: ExitCode
    sentence: str
    reproduce: str


@dataclass(frozen=True, slots=True)
class DrillComparison:
    """One scenario and variant, as every subject took it."""

    scenario: ScenarioFacts
    sides: tuple[Side, ...]
    """The reference first."""
    pairs: tuple[Pair, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst of the pairs."""
        return min((pair.outcome for pair in self.pairs), key=list(Outcome).index)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is said about several subjects."""

    subjects: tuple[str, ...]
    drills: tuple[DrillComparison, ...]
    reproduce: str
    problems: tuple[str, ...] = ()
    """Drills that never began, one sentence each."""
    format: str = FORMAT

    @property
    def exit_code(self) -> ExitCode:
        """The one exit code: a drill that failed in the same way on every side is no difference, so its own verdict does not count.

        What is left behind and an interruption do.
        """
        codes = [_CODES[drill.outcome] for drill in self.drills]
        sides = [side for drill in self.drills for side in drill.sides]
        codes += [side.exit_code for side in sides if side.exit_code in _OWN]
        codes += [ExitCode.ERROR] * bool(self.problems)
        return combine(codes)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Every pair of every drill."""
        return tuple(pair for drill in self.drills for pair in drill.pairs)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain JSON types (schema: `harness/compare/compare-v1.json`)."""
        return {**_plain(self), "exit_code": int(self.exit_code)}


_CODES: Final = {
    Outcome.ERROR: ExitCode.ERROR,
    Outcome.FAIL: ExitCode.FAILED,
    Outcome.UNKNOWN: ExitCode.UNDECIDED,
    Outcome.UNSUPPORTED: ExitCode.UNDECIDED,
    Outcome.PASS: ExitCode.OK,
}
_OWN: Final = frozenset({ExitCode.INTERRUPTED, ExitCode.ERROR, ExitCode.LEFT_BEHIND})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Outcome | ExitCode):
        return value.value
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
