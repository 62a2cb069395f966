"""Reads YAML as plain JSON types, and remembers where everything stood.

The rules are YAML 1.2's core schema, so that `on` is a text, dates are texts and nothing becomes a type that JSON lacks. Only events
come from the library; the tree is built here, since a built tree of any library has lost duplicate keys or positions. Two rules
depend on the reader: in manifests a leading zero means octal (`0644` is a file mode there, as for kubectl), in scenario files it is
refused, since the two versions of YAML read it differently.
"""

from __future__ import annotations

import copy
import functools
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from harness.scenario.locate import Path as At
from harness.scenario.locate import Position, Positions, dotted
from harness.scenario.problem import Problem, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LIMIT_BYTES: Final = 1_000_000
_LIMIT_NODES: Final = 50_000
"""Aliases can make a small file huge; this many keys and values are enough for anybody."""
_LIMIT_DEPTH: Final = 60
_TAG: Final = "tag:yaml.org,2002:"

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INT: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_ZERO: Final = re.compile(r"[-+]?0[0-9]+")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document."""

    data: Any
    """Plain dicts, lists, strings, numbers, booleans and None."""
    positions: Positions
    line: int
    """Where it starts, from 1."""


def read_text(path: Path, shown: str | None = None) -> str:
    """Return the text of a file; raises ScenarioError when there is none, or when it is not text.

    `shown` is how the file is called in errors.
    """
    name = shown or str(path)
    try:
        if path.is_dir():
            _refuse(name, None, "is a folder, not a file")
        if path.stat().st_size > _LIMIT_BYTES:
            _refuse(name, None, f"is larger than {_LIMIT_BYTES:,} bytes")
        content = path.read_bytes()
    except FileNotFoundError:
        _refuse(name, None, "there is no such file")
    except OSError as error:
        _refuse(name, None, f"cannot be read: {error.strerror or error}")
    if b"\0" in content:
        _refuse(name, None, "is a binary file, not YAML")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        _refuse(name, line, "is not UTF-8; save the file in that encoding")


def _refuse(file: str, line: int | None, message: str) -> NoReturn:
    raise ScenarioError([Problem(file, line, None, "", message)]) from None


def read_yaml(text: str, file: str, *, octal: bool = False) -> list[Document]:
    """Return the documents of a YAML text, without empty ones; raises ScenarioError with every problem found.

    `octal`: read a leading zero as octal instead of refusing it. Variants of a scenario have most manifests in common, so a text that
    was read before is not read again; each caller gets a tree of its own.
    """
    known = _read(text, file, octal=octal)
    return [replace(document, data=copy.deepcopy(document.data)) for document in known]


@functools.lru_cache(maxsize=1024)
def _read(text: str, file: str, *, octal: bool) -> list[Document]:
    builder = _Builder(file, octal=octal)
    try:
        documents = list(builder.documents(text))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        message = f"holds a character that YAML does not allow (U+{code:04X})"
        raise ScenarioError([*builder.problems, Problem(file, line, None, "", message)]) from None
    except MarkedYAMLError as error:
        raise ScenarioError([*builder.problems, _syntax(file, text, error)]) from None
    except (YAMLError, RecursionError) as error:
        message = f"is not YAML: {_one_line(error) or 'it is nested too deeply'}"
        raise ScenarioError([*builder.problems, Problem(file, None, None, "", message)]) from None
    if builder.problems:
        raise ScenarioError(builder.problems)
    return documents


def read_scalar(text: str) -> Any:
    """Return what a text means as a YAML value, e.g. for `--set key=value`; raises ScenarioError."""
    documents = read_yaml(text, "value")
    return documents[0].data if documents else None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _syntax(file: str, text: str, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = " ".join(part for part in (error.context, error.problem) if part)
    message = " ".join(message.split())
    line = column = None
    if mark is not None:
        line, column = mark.line + 1, mark.column + 1
        lines = text.splitlines()
        here = lines[mark.line] if mark.line < len(lines) else ""
        if "\t" in here[: len(here) - len(here.lstrip())]:
            message = "is indented with a tab; YAML wants spaces"
            return Problem(file, line, column, "", message)
    return Problem(file, line, column, "", f"is not YAML: {message}")


class _Builder:
    """Builds plain trees from the events of the YAML library."""

    def __init__(self, file: str, *, octal: bool) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._octal = octal
        self._anchors: dict[str, Any] = {}
        self._open: set[str] = set()
        self._nodes = 0
        self._events: Iterator[Any] = iter(())
        self._positions = Positions()

    def documents(self, text: str) -> Iterator[Document]:
        self._events = iter(YAML(typ="safe", pure=True).parse(text))
        for event in self._events:
            if not isinstance(event, DocumentStartEvent):
                continue
            self._anchors, self._open, self._positions = {}, set(), Positions()
            first = next(self._events)
            data = self._node(first, ())
            empty = isinstance(first, ScalarEvent) and first.style is None and data is None
            if not empty:
                yield Document(data, self._positions, first.start_mark.line + 1)

    def _problem(self, event: Any, path: At, message: str) -> None:
        mark = event.start_mark
        self.problems.append(
            Problem(self._file, mark.line + 1, mark.column + 1, dotted(path), message)
        )

    def _node(self, event: Any, path: At) -> Any:
        self._nodes += 1
        if self._nodes > _LIMIT_NODES or len(path) > _LIMIT_DEPTH:
            what = "holds too much" if self._nodes > _LIMIT_NODES else "is nested too deeply"
            self._problem(event, (), what)
            raise ScenarioError(self.problems)
        mark = event.start_mark
        self._positions.values[path] = Position(mark.line + 1, mark.column + 1)
        if isinstance(event, AliasEvent):
            return self._alias(event, path)
        anchor = cast("str | None", event.anchor)
        if anchor is not None:
            self._open.add(anchor)
        if isinstance(event, ScalarEvent):
            data = self._scalar(event, path)
        elif isinstance(event, SequenceStartEvent):
            data = self._sequence(path)
        else:
            data = self._mapping(path)
        if anchor is not None:
            self._open.discard(anchor)
            self._anchors[anchor] = data
        return data

    def _alias(self, event: Any, path: At) -> Any:
        name = str(event.anchor)
        if name in self._open:
            self._problem(event, path, f"*{name} holds itself")
            return None
        if name not in self._anchors:
            self._problem(event, path, f"*{name} is used before &{name} is set")
            return None
        return self._copy(event, self._anchors[name])

    def _copy(self, event: Any, data: Any) -> Any:
        """Return a copy that shares nothing, and count its nodes."""
        self._nodes += 1
        if self._nodes > _LIMIT_NODES:
            self._problem(event, (), "holds too much")
            raise ScenarioError(self.problems)
        if isinstance(data, dict):
            return {key: self._copy(event, item) for key, item in data.items()}
        if isinstance(data, list):
            return [self._copy(event, item) for item in data]
        return data

    def _sequence(self, path: At) -> list[Any]:
        items: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: At) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event, path)
            mark = event.start_mark
            here = (*path, key)
            if _is_merge(event):
                self._merge(event, path, merged)
                continue
            if key in data:
                first = self._positions.keys[here].line
                self._problem(event, here, f"is given twice (first in line {first})")
            self._positions.keys[here] = Position(mark.line + 1, mark.column + 1)
            data[key] = self._node(next(self._events), here)
        return {**{key: item for key, item in merged.items() if key not in data}, **data}

    def _key(self, event: Any, path: At) -> str:
        if isinstance(event, ScalarEvent):
            return str(event.value)
        if isinstance(event, AliasEvent):
            value = self._anchors.get(str(event.anchor))
        else:
            value = self._node(event, path)
        if not isinstance(value, str):
            self._problem(
                event, path, "a key must be a text; a template needs quotes, as in '{{ value }}'"
            )
        return str(value)

    def _merge(self, event: Any, path: At, merged: dict[str, Any]) -> None:
        """Take in the mappings that `<<` names; earlier ones win."""
        value = self._node(next(self._events), (*path, "<<"))
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                self._problem(event, path, "<< needs a mapping")
                continue
            for key, inner in item.items():
                merged.setdefault(key, inner)

    def _scalar(self, event: Any, path: At) -> Any:
        text = str(event.value)
        tag = str(event.tag or "").removeprefix(_TAG)
        if tag in {"str", "!"} or (event.style is not None and not tag):
            return text
        if tag and tag not in {"null", "bool", "int", "float", "timestamp"}:
            self._problem(event, path, f"the tag {event.tag} is not supported")
            return text
        if _ZERO.fullmatch(text):
            return self._leading_zero(event, path, text)
        return self._plain(event, path, text)

    def _leading_zero(self, event: Any, path: At, text: str) -> Any:
        digits = text.lstrip("+-")
        if self._octal and set(digits) <= set("01234567"):
            return int(digits, 8) * (-1 if text.startswith("-") else 1)
        if self._octal:
            return text
        message = f"{text} has a leading zero, which versions of YAML read differently; quote it, or write 0o{digits.lstrip('0')}"
        self._problem(event, path, message)
        return text

    def _plain(self, event: Any, path: At, text: str) -> Any:
        if text in _NULL:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INT.fullmatch(text):
            return int(text)
        if _OCTAL.fullmatch(text):
            return int(text, 0)
        if _HEX.fullmatch(text):
            return int(text, 16)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
        if _SPECIAL.fullmatch(text) or _FLOAT.fullmatch(text):
            self._problem(event, path, f"{text} is a number that JSON lacks; quote it")
        return text


def _is_merge(event: Any) -> bool:
    """Return whether an event is the key `<<`, unquoted."""
    return isinstance(event, ScalarEvent) and event.value == "<<" and event.style is None


__all__ = ["Document", "read_scalar", "read_text", "read_yaml"]
