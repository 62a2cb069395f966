"""The table of documented differences (fixtures/differences.yaml): read, checked, and applied to what was found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.scenario.locate import Path as At
from harness.scenario.locate import Positions, dotted
from harness.scenario.problem import Problem, ScenarioError, suggest
from harness.scenario.reader import read_text, read_yaml
from harness.scenario.structure import said

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic_core import ErrorDetails

NOTHING: Final = "nothing"
"""What stands in `values` for something that is not there."""
_ID: Final = r"^[ABDGKOPU][1-9][0-9]*$"
_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[_Text], Field(min_length=1)]


class Entry(BaseModel):
    """A difference that is known, and why it is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[str, Field(pattern=_ID)]
    """The deviation that it comes from (A, B, D, G, O, P or U and a number), or K and a number for one of our own choices. Several
    entries may have the same."""
    subjects: Annotated[list[_Text], Field(min_length=2, max_length=2)]
    """Patterns of the two subjects' names, in any order."""
    scenarios: _Texts
    """Patterns of scenarios: `name` stands for all variants, `name[variant]` for one."""
    elsewhere: bool = False
    """Whether it also explains what it fits in any other scenario. There it need not."""
    paths: _Texts
    """Patterns of the differences' paths. Each must explain something wherever the entry applies."""
    values: dict[_Text, _Text] = {}
    """Subject's pattern -> pattern of what is there on its side; anything else is not what this entry is about."""
    why: _Text
    """One sentence for the reader of a report."""


class TableFile(BaseModel):
    """A file of entries."""

    model_config = ConfigDict(extra="forbid", strict=True)

    apiVersion: Literal["drill/v1"]  # noqa: N815 - the file's spelling
    kind: Literal["Differences"]
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry and where it stands."""

    entry: Entry
    where: str
    """`file:line`."""


Table = tuple[Placed, ...]


def load(path: Path, shown: str | None = None) -> Table:
    """Read a table. Raises ScenarioError with every problem: file, line, field and what is allowed.

    `shown` is how the file is called in errors and reports.
    """
    file = shown or str(path)
    documents = read_yaml(read_text(path, file), file)
    if len(documents) != 1:
        raise ScenarioError([Problem(file, None, None, "", "must hold exactly one document")])
    document = documents[0]
    try:
        table = TableFile.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(e, document.positions, file) for e in error.errors(include_url=False)]
        raise ScenarioError(problems) from None
    placed: list[Placed] = []
    problems = []
    for index, entry in enumerate(table.entries):
        at: At = ("entries", index)
        where = document.positions.of(at)
        placed.append(Placed(entry, f"{file}:{where.line if where else '?'}"))
        for name in entry.values:
            if name not in entry.subjects:
                here = (*at, "values", name)
                key = document.positions.of_key(here)
                message = f"is none of the entry's subjects{suggest(name, entry.subjects)}"
                line = key.line if key else None
                problems.append(
                    Problem(file, line, None, dotted(here), message, tuple(entry.subjects))
                )
    if problems:
        raise ScenarioError(problems)
    return tuple(placed)


_WANTED: Final = {
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_KNOWN: Final = {
    "entries": tuple(Entry.model_fields),
    "": tuple(TableFile.model_fields),
}


def _problem(error: ErrorDetails, positions: Positions, file: str) -> Problem:
    at: At = tuple(part for part in error["loc"] if part != "[key]")
    kind, value = error["type"], error["input"]
    where = positions.of_key(at) if kind in {"extra_forbidden", "missing"} else positions.of(at)
    allowed: tuple[str, ...] | None = None
    match kind:
        case "missing":
            message = "is missing"
        case "extra_forbidden":
            allowed = _KNOWN["entries" if len(at) > 1 else ""]
            message = f"is not a known field{suggest(str(at[-1]), allowed)}"
        case "literal_error":
            message = f"cannot be {value!r}"
            allowed = ("drill/v1",) if at[-1] == "apiVersion" else ("Differences",)
        case "string_pattern_mismatch":
            message = (
                f"{value!r} is no id; it is one of the letters A, B, D, G, K, O, P, U and a number"
            )
            allowed = ("D4", "P14", "K1", "…")
        case "too_short" | "too_long" if at[-1] == "subjects":
            message = "must name two subjects"
        case "string_too_short" | "too_short":
            message = "must not be empty"
        case _ if kind in _WANTED:
            message = f"must be {_WANTED[kind]}, not {said(value)}"
        case _:
            message = error["msg"]
    line, column = (where.line, where.column) if where else (None, None)
    return Problem(file, line, column, dotted(at), message, allowed)


def matches(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern, in which `*` stands for any characters and everything else for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def is_scenario(patterns: Iterable[str], scenario: str) -> bool:
    """Whether one of some patterns is about a scenario's id, e.g. `node-spread-blue-green[with-key]`."""
    return any(matches(p if "[" in p else f"{p}[*]", scenario) for p in patterns)
