"""A reader of CEL's grammar, for what the evaluating library does not give: which fields an expression uses, and where.

It only ever reads expressions that the library has compiled, so it need not explain syntax errors: what it does not know (message
construction, optionals) makes it give up with `NotRead`, and the caller then goes without.
Source of the grammar: the CEL language definition, section Syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["int", "double", "string", "bytes", "bool", "null"]


class NotRead(Exception):  # noqa: N818 - not an error of anybody, only a limit
    """The expression uses syntax that this reader does not know."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. `value` is kept for strings only."""

    kind: Kind
    value: str
    offset: int


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`; `offset` is the field's."""

    operand: Node
    field: str
    offset: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a macro, a method (`target` given) or an operator (`name` is its symbol; `[]`, `?:` and `-x` among them)."""

    name: str
    args: tuple[Node, ...]
    offset: int
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal."""

    items: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map literal."""

    entries: tuple[tuple[Node, Node], ...]
    offset: int


Node = Constant | Name | Select | Call | ListOf | MapOf

_TOKEN: Final = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*)
  | (?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
      |\"(?:\\.|[^\\"\n])*\"|'(?:\\.|[^\\'\n])*'))
  | (?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|\d+[uU]?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_LEVELS: Final = (
    ("||",),
    ("&&",),
    ("==", "!=", "<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_DEPTH: Final = 100
"""Nesting beyond this is not read; it keeps the recursion far from Python's limit."""


def parse(text: str) -> Node:
    """Return the syntax tree of an expression that is known to be well-formed; raises NotRead."""
    reader = _Reader(_tokens(text))
    node = reader.expression()
    if reader.kind != "end":
        raise NotRead
    return node


def _tokens(text: str) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup is None:
            raise NotRead
        if match.lastgroup != "skip":
            found.append((match.lastgroup, match.group(), offset))
        offset = match.end()
    found.append(("end", "", len(text)))
    return found


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def kind(self) -> str:
        return self._tokens[self._at][0]

    @property
    def text(self) -> str:
        return self._tokens[self._at][1]

    @property
    def offset(self) -> int:
        return self._tokens[self._at][2]

    def _next(self) -> tuple[str, str, int]:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, *symbols: str) -> bool:
        if self.kind in {"op", "name"} and self.text in symbols:
            self._at += 1
            return True
        return False

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            raise NotRead

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            raise NotRead
        offset = self.offset
        node = self._binary(0)
        if self._accept("?"):
            yes = self._binary(0)
            self._expect(":")
            node = Call("?:", (node, yes, self.expression()), offset)
        self._depth -= 1
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while self.kind in {"op", "name"} and self.text in _LEVELS[level]:
            _, symbol, offset = self._next()
            node = Call(symbol, (node, self._binary(level + 1)), offset)
        return node

    def _unary(self) -> Node:
        signs: list[tuple[str, int]] = []
        while self.kind == "op" and self.text in {"!", "-"}:
            _, symbol, offset = self._next()
            signs.append((symbol, offset))
        node = self._member()
        for symbol, offset in reversed(signs):
            node = Call("!" if symbol == "!" else "-x", (node,), offset)
        return node

    def _member(self) -> Node:
        node = self._primary()
        while True:
            offset = self.offset
            if self._accept("."):
                kind, name, offset = self._next()
                if kind != "name":
                    raise NotRead
                if self._accept("("):
                    node = Call(name, self._items(")"), offset, node)
                else:
                    node = Select(node, name, offset)
            elif self._accept("["):
                index = self.expression()
                self._expect("]")
                node = Call("[]", (node, index), offset)
            else:
                return node

    def _primary(self) -> Node:
        kind, text, offset = self._next()
        if kind == "string":
            return _string(text, offset)
        if kind == "number":
            whole = text[:2].lower() == "0x" or text.rstrip("uU").isdigit()
            return Constant("int" if whole and text[-1] not in "uU" else "double", "", offset)
        if kind == "name":
            if text in {"true", "false"}:
                return Constant("bool", "", offset)
            if text == "null":
                return Constant("null", "", offset)
            if self._accept("("):
                return Call(text, self._items(")"), offset)
            return Name(text, offset)
        if text == "(":
            node = self.expression()
            self._expect(")")
            return node
        if text == "[":
            return ListOf(self._items("]"), offset)
        if text == "{":
            return MapOf(self._entries(), offset)
        raise NotRead

    def _items(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._accept(closing):
            items.append(self.expression())
            if not self._accept(","):
                self._expect(closing)
                break
        return tuple(items)

    def _entries(self) -> tuple[tuple[Node, Node], ...]:
        entries: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if not self._accept(","):
                self._expect("}")
                break
        return tuple(entries)


def _string(text: str, offset: int) -> Constant:
    prefix = re.match(r"[rRbB]*", text)
    letters = prefix.group().lower() if prefix else ""
    body = text[len(letters) :]
    quotes = 3 if body[:3] in {'"""', "'''"} else 1
    body = body[quotes:-quotes]
    if "r" not in letters:
        body = _ESCAPE.sub(r"\1", body)
    return Constant("bytes" if "b" in letters else "string", body, offset)
