"""What is wrong with a scenario: one sentence each, all of them at once."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    file: str
    """Path as the user knows it."""
    line: int | None
    """From 1; None when the file as a whole is meant."""
    column: int | None
    """From 1."""
    field: str
    """Dotted, e.g. `spec.steps[0].until`; may be empty."""
    message: str
    allowed: tuple[str, ...] | None = None
    """What could stand there instead."""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        what = f"{self.field}: {self.message}" if self.field else self.message
        allowed = f" (allowed: {', '.join(self.allowed)})" if self.allowed else ""
        mark = "warning: " if self.severity == "warning" else ""
        return f"{where}: {mark}{what}{allowed}"


class ScenarioError(ValueError):
    """A scenario that cannot be used. Its text is one line for each problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = fold(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def fold(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems in the order of files and lines, each once."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda p: (p.file, p.line or 0, p.column or 0, p.field)))


def suggest(word: str, known: Sequence[str]) -> str:
    """Return `; did you mean …?` when a known word is close to `word`, else nothing."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
