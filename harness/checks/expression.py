"""CEL expressions: compiled once, evaluated for each observation, checked against the vocabulary before anything runs.

A world in which a field is absent, or in which types do not fit, gives `Unknown` with the reason: not knowing is neither true nor
false. What CEL itself decides without the missing part (`true || x`) is decided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cel

from harness.checks.fields import Finding, inspect
from harness.checks.syntax import Node, NotRead, parse
from harness.checks.usage import Usage
from harness.checks.vocabulary import CLOCKED, VARIABLES, sample_world

if TYPE_CHECKING:
    from collections.abc import Mapping

_POSITION: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.+)")
_UNDEFINED: Final = re.compile(r"Undefined variable or function: '([^']*)'")
_LIMIT: Final = 4000
_MANY: Final = 20
"""From so many elements on, looking for equal ones costs less than evaluating them all."""


class ExpressionError(ValueError):
    """An expression that is not CEL.

    `line` and `column` count from 1 within the expression; None when the library does not say.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Unknown:
    """The expression cannot be decided in this world."""

    reason: str

    def __bool__(self) -> bool:
        """Refuse to be taken for false."""
        msg = "an unknown result is neither true nor false; ask with isinstance(…, Unknown)"
        raise TypeError(msg)


class Expression:
    """A compiled expression. Make one with `Expression.compile`."""

    __slots__ = ("_program", "_sets", "_tree", "_uses", "text")

    def __init__(self, text: str, program: cel.Program, tree: Node | None) -> None:
        self.text = text
        self._program = program
        self._tree = tree
        usage = self._narrow(program, tree)
        self._uses = {
            name: None if fields is None else frozenset(fields)
            for name, fields in usage.fields.items()
        }
        self._sets = usage.sets()

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    @classmethod
    def compile(cls, text: str) -> Expression:
        """Compile `text`; raises ExpressionError with the column, where the library tells it."""
        if not text.strip():
            msg = "is empty, not an expression"
            raise ExpressionError(msg)
        if len(text) > _LIMIT:
            msg = f"is longer than {_LIMIT} characters"
            raise ExpressionError(msg)
        try:
            program = cel.compile(text)
        except ValueError as error:
            raise _syntax_error(str(error)) from None
        try:
            tree = parse(text)
        except NotRead:
            tree = None
        return cls(text, program, tree)

    @property
    def uses(self) -> dict[str, frozenset[str] | None]:
        """The variables that it uses, with their fields; None: a variable as a whole."""
        return self._uses

    @property
    def read(self) -> bool:
        """Whether it could be read in full; otherwise it may use more than `uses` says."""
        return self._tree is not None

    @property
    def clocked(self) -> bool:
        """Whether its value may change with the clock alone."""
        pods = self._uses.get("pods", frozenset())
        return bool(CLOCKED & self._uses.keys()) or pods is None or "age" in pods

    def evaluate(self, world: Mapping[str, Any]) -> bool | Unknown:
        """Return whether the expression holds in `world`, or why that cannot be said."""
        try:
            result = self._program.execute(self._part(world))
        except KeyError as error:
            return Unknown(f"{error.args[0] if error.args else 'a field'} is not known")
        except RuntimeError as error:
            undefined = _UNDEFINED.search(str(error))
            return Unknown(f"{undefined.group(1)} is not known" if undefined else _first(error))
        except (TypeError, ValueError, ArithmeticError, LookupError, OverflowError) as error:
            return Unknown(_first(error))
        if isinstance(result, bool):
            return result
        return Unknown(f"the result is {type(result).__name__}, not true or false")

    def findings(self, values: Mapping[str, Any] | None = None) -> list[Finding]:
        """Return what the static check finds: unknown fields, types that do not fit, a result that is not boolean.

        With `values`, the fields of `values` are checked too. What the static check cannot read is tried on a sample world.
        """
        if self._tree is not None:
            return inspect(self._tree, values)[0]
        result = self.evaluate(sample_world(dict(values or {})))
        return [Finding(0, result.reason)] if isinstance(result, Unknown) else []

    @staticmethod
    def _narrow(program: cel.Program, tree: Node | None) -> Usage:
        """Return which part of the world is needed.

        Handing over the world costs far more than evaluating (each value is converted), so only the fields that are used go in.
        """
        if tree is not None:
            return inspect(tree)[1]
        usage = Usage()
        for name in program.variables():
            usage.whole(name)
        return usage

    def _part(self, world: Mapping[str, Any]) -> dict[str, Any]:
        part: dict[str, Any] = {}
        for name, fields in self._uses.items():
            if name not in world:
                continue
            value = world[name]
            if fields is None or name not in VARIABLES:
                part[name] = value
            elif isinstance(value, list):
                rows = [{key: row[key] for key in fields if key in row} for row in value]
                part[name] = _distinct(rows) if name in self._sets else rows
            else:
                part[name] = {key: value[key] for key in fields if key in value}
        return part


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each of the rows once: of hundreds of rollouts most are alike."""
    if len(rows) < _MANY:
        return rows
    return list({repr(list(row.values())): row for row in rows}.values())


def _syntax_error(text: str) -> ExpressionError:
    match = _POSITION.search(text)
    if match is None:
        return ExpressionError(f"is not CEL: {text.splitlines()[0]}")
    # Of a cascade of errors the first one that is about syntax is the cause.
    for candidate in _POSITION.finditer(text):
        if candidate.group(3).startswith("Syntax error"):
            match = candidate
            break
    line, column, message = match.groups()
    message = message.removeprefix("Syntax error: ").strip()
    message = re.sub(r" expecting \{.*", "", message).replace("'<EOF>'", "end of the expression")
    return ExpressionError(f"is not CEL: {message} (column {int(column)})", int(line), int(column))


def _first(error: BaseException) -> str:
    """Return the first sentence of the library's message."""
    return str(error).split(". ", 1)[0].splitlines()[0] if str(error) else type(error).__name__
