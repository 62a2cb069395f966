"""The static check of an expression: does it use only fields that exist, in ways their types allow, and is it boolean?

It also tells which fields are used at all, so that evaluation need not hand over the whole world each time.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.checks.syntax import Call, Constant, ListOf, MapOf, Name, Node, Select
from harness.checks.usage import Usage
from harness.checks.vocabulary import OBJECTS, VARIABLES

if TYPE_CHECKING:
    from harness.checks.word import Word


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in an expression that cannot be right."""

    offset: int
    """Characters from the start of the expression."""
    message: str
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Typed:
    type: str
    origin: str = ""
    """The variable whose objects these are, while nothing has read them as a whole."""
    word: Word | None = None


_VALUES: Final = "values"
_BOOL: Final = _Typed("bool")
_DYN: Final = _Typed("dyn")
_QUANTIFIERS: Final = frozenset({"all", "exists"})
_MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_RESULTS: Final = {
    "size": "int",
    "contains": "bool",
    "startsWith": "bool",
    "endsWith": "bool",
    "matches": "bool",
    "int": "int",
    "uint": "uint",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
    "dyn": "dyn",
    "type": "dyn",
    "duration": "duration",
    "timestamp": "timestamp",
}
FUNCTIONS: Final = tuple(sorted({*_RESULTS, *_MACROS, "has"}))
"""Functions and macros of CEL that expressions may use."""
_STRING_METHODS: Final = frozenset({"contains", "startsWith", "endsWith", "matches"})
_NUMBERS: Final = frozenset({"int", "double", "uint"})
_ORDERED: Final = frozenset({*_NUMBERS, "string", "bool", "duration", "timestamp", "bytes"})
_MACRO_ARGS: Final = 2
_MAP_WITH_FILTER: Final = 3


def inspect(tree: Node, values: Mapping[str, Any] | None = None) -> tuple[list[Finding], Usage]:
    """Return what is wrong with an expression, and what it uses.

    With `values`, the fields of `values` are checked too.
    """
    inspector = _Inspector(values)
    result = inspector.value(tree, {})
    if result.type not in {"bool", "dyn"}:
        message = f"is {_article(result.type)}, not true or false; compare it with something"
        inspector.findings.append(Finding(0, message))
    return inspector.findings, inspector.usage


def suggest(word: str, known: tuple[str, ...]) -> str:
    """Return ` (did you mean …?)` when a known word is close, else nothing."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _article(type_name: str) -> str:
    return f"an {type_name}" if type_name[0] in "aeio" else f"a {type_name}"


def _element(type_name: str) -> str:
    if type_name.startswith("list("):
        return type_name[5:-1]
    return "string" if type_name.startswith("map(") else "dyn"


def _type_of(value: object) -> str:
    """Return the CEL type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "list(dyn)"
    return "map(dyn)" if isinstance(value, Mapping) else "dyn"


def _comparable(left: str, right: str) -> bool:
    if "dyn" in {left, right} or "null" in {left, right} or left == right:
        return True
    if left in _NUMBERS and right in _NUMBERS:
        return True
    for kind in ("list(", "map("):
        if left.startswith(kind) and right.startswith(kind):
            return True
    return (left in OBJECTS and right.startswith("map(")) or (
        right in OBJECTS and left.startswith("map(")
    )


class _Inspector:
    """One walk over a syntax tree."""

    def __init__(self, values: Mapping[str, Any] | None) -> None:
        self.findings: list[Finding] = []
        self.usage = Usage()
        self._values = values

    def _find(self, offset: int, message: str, allowed: tuple[str, ...] = ()) -> _Typed:
        self.findings.append(Finding(offset, message, allowed))
        return _DYN

    def value(self, node: Node, scope: Mapping[str, _Typed]) -> _Typed:
        """Return the type of a node whose value as a whole is used."""
        typed = self._visit(node, scope)
        if typed.origin:
            self.usage.whole(typed.origin)
        return typed

    def _visit(self, node: Node, scope: Mapping[str, _Typed]) -> _Typed:
        match node:
            case Constant():
                return _Typed(node.kind)
            case Name():
                return self._name(node, scope)
            case Select():
                return self._select(node, scope)
            case ListOf():
                types = {self.value(item, scope).type for item in node.items}
                return _Typed(f"list({types.pop() if len(types) == 1 else 'dyn'})")
            case MapOf():
                for key, item in node.entries:
                    self.value(key, scope)
                    self.value(item, scope)
                return _Typed("map(dyn)")
            case Call():
                return self._call(node, scope)

    def _name(self, node: Name, scope: Mapping[str, _Typed]) -> _Typed:
        if node.name in scope:
            return scope[node.name]
        word = VARIABLES.get(node.name)
        if word is None:
            if node.name in _RESULTS:  # the name of a type, as in type(x) == int
                return _DYN
            known = (*VARIABLES, *scope)
            return self._find(
                node.offset, f"there is no {node.name!r}{suggest(node.name, known)}", known
            )
        if word.type in OBJECTS or word.type.startswith("list("):
            self.usage.touch(node.name)
            self.usage.counted.add(node.name)
            return _Typed(word.type, node.name)
        self.usage.whole(node.name)
        return _Typed(word.type, "", word)

    def _select(self, node: Select, scope: Mapping[str, _Typed]) -> _Typed:
        named = node.operand.name if isinstance(node.operand, Name) else ""
        if named == _VALUES and named not in scope:
            self.usage.add(_VALUES, node.field)
            return self._declared_value(node)
        operand = self._visit(node.operand, scope)
        fields = OBJECTS.get(operand.type)
        if fields is not None:
            if operand.origin:
                self.usage.add(operand.origin, node.field)
            word = fields.get(node.field)
            if word is None:
                known = tuple(fields)
                subject = _spell(node.operand) or _article(operand.type)
                return self._find(
                    node.offset,
                    f"{subject} has no field {node.field!r}{suggest(node.field, known)}",
                    known,
                )
            return _Typed(word.type, "", word)
        if operand.type.startswith("map("):
            return _Typed(operand.type[4:-1])
        if operand.type.startswith("list("):
            subject = _spell(node.operand) or "this"
            hint = f"write {subject}.exists(x, x.{node.field} …) or {subject}.all(…)"
            return self._find(
                node.offset, f"{subject} is a list and has no field {node.field!r}; {hint}"
            )
        if operand.type != "dyn":
            subject = _spell(node.operand) or "this"
            return self._find(
                node.offset, f"{subject} is {_article(operand.type)} and has no fields"
            )
        return _DYN

    def _declared_value(self, node: Select) -> _Typed:
        if self._values is None:
            return _DYN
        if node.field not in self._values:
            known = tuple(self._values)
            return self._find(
                node.offset, f"there is no value {node.field!r}{suggest(node.field, known)}", known
            )
        return _Typed(_type_of(self._values[node.field]))

    def _call(self, node: Call, scope: Mapping[str, _Typed]) -> _Typed:
        if node.target is not None and node.name in _MACROS:
            return self._macro(node, node.target, scope)
        if node.name == "has" and len(node.args) == 1 and node.target is None:
            self._visit(node.args[0], scope)
            return _BOOL
        if node.name[0].isalpha() and node.name != "in":
            return self._function(node, scope)
        return self._operator(node, scope)

    def _macro(self, node: Call, target: Node, scope: Mapping[str, _Typed]) -> _Typed:
        counted = set(self.usage.counted)
        items = self._visit(target, scope)
        if node.name in _QUANTIFIERS and isinstance(target, Name):
            self.usage.counted = counted
        with_filter = node.name == "map" and len(node.args) == _MAP_WITH_FILTER
        first = node.args[0] if node.args else None
        if not isinstance(first, Name) or (len(node.args) != _MACRO_ARGS and not with_filter):
            return self._find(node.offset, f"{node.name}() takes a name and an expression")
        if items.type != "dyn" and not items.type.startswith(("list(", "map(")):
            subject = _spell(target) or "this"
            self._find(
                node.offset, f"{subject} is {_article(items.type)}, {node.name}() needs a list"
            )
        inner = {**scope, first.name: _Typed(_element(items.type), items.origin)}
        for body in node.args[1:] if node.name != "map" or with_filter else ():
            if body is node.args[-1] and with_filter:
                break
            found = self.value(body, inner)
            if found.type not in {"bool", "dyn"}:
                self._find(
                    node.offset, f"{node.name}() needs true or false, not {_article(found.type)}"
                )
        if node.name == "filter":
            return items
        if node.name == "map":
            return _Typed(f"list({self.value(node.args[-1], inner).type})")
        return _BOOL

    def _function(self, node: Call, scope: Mapping[str, _Typed]) -> _Typed:
        everything = (*((node.target,) if node.target else ()), *node.args)
        if node.name == "size" and len(everything) == 1:
            self._visit(everything[0], scope)  # the number of elements needs none of their fields
            return _Typed("int")
        types = [self.value(item, scope) for item in everything]
        result = _RESULTS.get(node.name)
        if result is None:
            return self._find(
                node.offset,
                f"there is no function {node.name!r}{suggest(node.name, FUNCTIONS)}",
                FUNCTIONS,
            )
        if node.name in _STRING_METHODS:
            for typed in types:
                if typed.type not in {"string", "dyn"}:
                    self._find(
                        node.offset,
                        f"{node.name}() works on strings, not on {_article(typed.type)}",
                    )
        return _Typed(result)

    def _operator(self, node: Call, scope: Mapping[str, _Typed]) -> _Typed:
        types = [self.value(item, scope) for item in node.args]
        kinds = [typed.type for typed in types]
        match node.name:
            case "&&" | "||" | "!":
                for kind in kinds:
                    if kind not in {"bool", "dyn"}:
                        self._find(
                            node.offset, f"{node.name} needs true or false, not {_article(kind)}"
                        )
                return _BOOL
            case "==" | "!=":
                self._equality(node, types)
                return _BOOL
            case "<" | "<=" | ">" | ">=":
                if not _comparable(*kinds) or not all(k in {*_ORDERED, "dyn"} for k in kinds):
                    self._find(
                        node.offset,
                        f"{node.name} cannot compare {_article(kinds[0])} with {_article(kinds[1])}",
                    )
                return _BOOL
            case "in":
                self._membership(node, types)
                return _BOOL
            case "?:":
                return types[1] if kinds[1] == kinds[2] else _DYN
            case "[]":
                return self._index(node, types)
            case _:
                return self._arithmetic(node, kinds)

    def _equality(self, node: Call, types: list[_Typed]) -> None:
        left, right = types
        if not _comparable(left.type, right.type):
            self._find(
                node.offset,
                f"compares {_article(left.type)} with {_article(right.type)}, which are never equal",
            )
        for typed, other in ((left, node.args[1]), (right, node.args[0])):
            self._choice(typed, other)

    def _choice(self, typed: _Typed, other: Node) -> None:
        if typed.word is None or not typed.word.choices or not isinstance(other, Constant):
            return
        if other.kind == "string" and other.value not in typed.word.choices:
            known = tuple(choice for choice in typed.word.choices if choice)
            self._find(
                other.offset, f"is never {other.value!r}{suggest(other.value, known)}", known
            )

    def _membership(self, node: Call, types: list[_Typed]) -> None:
        item, container = types
        if container.type != "dyn" and not container.type.startswith(("list(", "map(")):
            self._find(node.offset, f"in needs a list or a map, not {_article(container.type)}")
        elif not _comparable(item.type, _element(container.type)):
            self._find(
                node.offset,
                f"looks for {_article(item.type)} among {_article(_element(container.type))}s",
            )
        if isinstance(node.args[1], ListOf):
            for choice in node.args[1].items:
                self._choice(item, choice)

    def _index(self, node: Call, types: list[_Typed]) -> _Typed:
        kind = types[0].type
        if kind.startswith("list("):
            return _Typed(kind[5:-1])
        if kind.startswith("map("):
            return _Typed(kind[4:-1])
        index = node.args[1]
        if kind in OBJECTS:
            known = tuple(OBJECTS[kind])
            if isinstance(index, Constant) and index.kind == "string" and index.value not in known:
                return self._find(index.offset, f"there is no field {index.value!r}", known)
            return _DYN
        return (
            _DYN
            if kind == "dyn"
            else self._find(node.offset, f"[] needs a list, not {_article(kind)}")
        )

    def _arithmetic(self, node: Call, kinds: list[str]) -> _Typed:
        known = [kind for kind in kinds if kind != "dyn"]
        if len(known) < len(kinds):
            return _DYN
        if len(set(kinds)) > 1:
            hint = "; convert one with double(…)" if set(kinds) <= _NUMBERS else ""
            pair = " and ".join(_article(kind) for kind in kinds)
            return self._find(node.offset, f"{node.name} cannot combine {pair}{hint}")
        return _Typed(kinds[0])


def _spell(node: Node) -> str:
    """Return how a chain of names is written, e.g. `rollout.phase`; empty for anything else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select):
        inner = _spell(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""
