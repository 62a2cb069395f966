"""Templates: Jinja2 in a sandbox, where a name that is not declared is an error.

A scalar of the scenario that is one expression, such as `'{{ replicas }}'`, keeps the type of its value; anything else gives text.
Manifests come back with the file and line that each line of the result came from, through includes too.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound, meta, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.ext import Extension
from jinja2.lexer import Token
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.scenario.problem import ScenarioError, suggest
from harness.scenario.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from jinja2 import Template
    from jinja2.lexer import TokenStream

_NAME: Final = re.compile(r"^'([^']+)' is undefined$")
_MARK: Final = re.compile("\x01(\\d+)\x02")
_LEADING_MARKS: Final = re.compile("(?:\x01\\d+\x02)+")
_LARGEST: Final = 100_000
"""Longest text or list that `*` may make."""
RESERVED_NAMES: Final = frozenset(
    {
        *("values", "drill", "loop", "self", "super", "caller", "varargs", "kwargs"),
        *("range", "dict", "lipsum", "cycler", "joiner", "namespace"),
        *("true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is"),
        *("if", "else", "elif", "for", "block", "macro", "call", "filter", "set", "include"),
        *("import", "as", "with", "without", "context", "extends"),
    }
)
"""Names that mean something else in templates, so no value may have them."""


class TemplateFault(Exception):  # noqa: N818 - an error of the template, not of this program
    """What is wrong with a template. `file` is empty for a scalar of the scenario."""

    def __init__(
        self,
        message: str,
        line: int | None = None,
        file: str = "",
        allowed: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.file = file
        self.allowed = allowed


class _Sandbox(ImmutableSandboxedEnvironment):
    """Refuses attributes that lead out, changes of values, and products that fill the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            msg = "the operator ** is not allowed"
            raise SecurityError(msg)
        for one, other in ((left, right), (right, left)):
            many = isinstance(one, str | list | tuple) and isinstance(other, int)
            if many and len(one) * other > _LARGEST:
                msg = f"a product of more than {_LARGEST:,} parts is not allowed"
                raise SecurityError(msg)
        return super().call_binop(context, operator, left, right)


def _environment(
    loader: BaseLoader | None = None, *, mark: Callable[[str, int], str] | None = None
) -> Environment:
    environment = _Sandbox(
        undefined=StrictUndefined,
        loader=loader,
        autoescape=False,  # the result is YAML, not HTML
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=0,
    )
    if mark is not None:
        environment.add_extension(_Marks)
        environment.extend(drill_mark=mark)
    return environment


class _Marks(Extension):
    """Puts a mark behind every line break of a template's text, so that lines of the result can be traced back."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        mark: Callable[[str, int], str] = self.environment.drill_mark  # type: ignore[attr-defined]
        name = stream.name or ""
        for token in stream:
            if token.type != "data":
                yield token
                continue
            parts = token.value.split("\n")
            marked = (mark(name, token.lineno + row) + part for row, part in enumerate(parts))
            yield Token(token.lineno, "data", "\n".join(marked))


_SCALARS: Final = _environment()


def is_template(text: str) -> bool:
    """Return whether a scalar of the scenario is rendered."""
    return "{{" in text or "{%" in text


def render_scalar(text: str, context: Mapping[str, Any]) -> Any:
    """Return a rendered scalar; one that is a single expression keeps the type of its value.

    Raises TemplateFault with a line that counts from 1 within the scalar.
    """
    try:
        if not _is_single(text):
            return _template(text).render(context)
    except TemplateSyntaxError as error:
        msg = f"is not a template: {error.message}"
        raise TemplateFault(msg, error.lineno) from None
    except Exception as error:  # noqa: BLE001 - a template can raise whatever its expressions do
        raise _fault(error, context, None) from None
    try:
        value = _expression(text)(**context)
        if isinstance(value, StrictUndefined):
            str(value)  # raises
    except Exception as error:  # noqa: BLE001 - a template can raise whatever its expressions do
        fault = _fault(error, context, None)
        raise TemplateFault(fault.message, 1, "", fault.allowed) from None
    return value


# The variants of a scenario have most of their scalars in common, and compiling costs more than rendering.


@functools.lru_cache(maxsize=4096)
def _is_single(text: str) -> bool:
    """Whether a scalar is one expression and nothing else. Raises TemplateSyntaxError."""
    body = _SCALARS.parse(text).body
    return (
        len(body) == 1
        and isinstance(body[0], nodes.Output)
        and len(body[0].nodes) == 1
        and not isinstance(body[0].nodes[0], nodes.TemplateData)
    )


@functools.lru_cache(maxsize=4096)
def _template(text: str) -> Template:
    return _SCALARS.from_string(text)


@functools.lru_cache(maxsize=4096)
def _expression(text: str) -> Callable[..., Any]:
    expression = text.strip().removeprefix("{{").removesuffix("}}").strip("-+ \n")
    return _SCALARS.compile_expression(expression, undefined_to_none=False)


def names(text: str) -> set[str]:
    """Return the names that a template uses without setting them; empty for a template with a syntax error."""
    try:
        return meta.find_undeclared_variables(_SCALARS.parse(text))
    except TemplateError:
        return set()


def _fault(error: Exception, context: Mapping[str, Any], folder: _Folder | None) -> TemplateFault:
    file, line = _where(error, folder)
    message = str(error) or type(error).__name__
    if isinstance(error, TemplateFault):
        return error
    if isinstance(error, TemplateNotFound):
        return TemplateFault(f"there is no file {error.name!r} to include", line, file)
    if isinstance(error, UndefinedError):
        match = _NAME.match(message)
        if match:
            known = tuple(sorted(key for key in context if key not in {"values", "drill"}))
            hint = suggest(match.group(1), known)
            return TemplateFault(
                f"value {match.group(1)!r} is not declared{hint}", line, file, known
            )
        return TemplateFault(message.replace("'dict object'", "this value"), line, file)
    if isinstance(error, SecurityError):
        return TemplateFault(f"is not allowed in a template: {message}", line, file)
    if isinstance(error, TemplateSyntaxError):
        name = error.name or file
        return TemplateFault(f"is not a template: {error.message}", error.lineno, name)
    if isinstance(error, RecursionError):
        return TemplateFault("includes itself", None, file)
    return TemplateFault(f"cannot be rendered: {message}", line, file)


def _where(error: Exception, folder: _Folder | None) -> tuple[str, int | None]:
    """Return the innermost template and line of an error; Jinja2 puts templates into tracebacks as if they were code."""
    found: tuple[str, int | None] = ("", None)
    known = folder.loaded if folder is not None else {}
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in known:
            found = (known[name], trace.tb_lineno)
        elif name == "<template>":
            found = ("", trace.tb_lineno)
        trace = trace.tb_next
    return found


class _Folder(BaseLoader):
    """Loads templates from one folder and from nowhere else, symbolic links included."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loaded: dict[str, str] = {}

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        del environment
        path = inside(self.folder, template)
        if path is None:
            msg = f"{template!r} lies outside of the scenario's folder"
            raise SecurityError(msg)
        if not path.is_file():
            raise TemplateNotFound(template)
        self.loaded[str(path)] = template
        try:
            return read_text(path, template), str(path), lambda: True
        except ScenarioError as error:
            raise TemplateFault(
                error.problems[0].message, error.problems[0].line, template
            ) from None


def inside(folder: Path, name: str) -> Path | None:
    """Return the path of a file in `folder`, or None when it would lie outside, by `..` or by a symbolic link."""
    root = folder.resolve()
    path = (root / name).resolve()
    return path if path.is_relative_to(root) else None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered manifest, and where each of its lines came from."""

    text: str
    origins: tuple[tuple[str, int], ...]
    """File and line for each line of the text; empty when lines could not be traced."""

    def origin(self, line: int, file: str) -> tuple[str, int]:
        """Return file and line that a line of the text came from."""
        return self.origins[line - 1] if 0 < line <= len(self.origins) else (file, line)


def render_file(folder: Path, name: str, context: Mapping[str, Any]) -> Rendered:
    """Render a template of a scenario's folder; raises TemplateFault."""
    loader = _Folder(folder)
    _refuse_cycles(loader, name)
    marks: list[tuple[str, int]] = []

    def mark(file: str, line: int) -> str:
        marks.append((file, line))
        return f"\x01{len(marks) - 1}\x02"

    try:
        text = _environment(loader).get_template(name).render(context)
    except Exception as error:  # noqa: BLE001 - a template can raise whatever its expressions do
        fault = _fault(error, context, loader)
        raise TemplateFault(fault.message, fault.line, fault.file or name, fault.allowed) from None
    try:
        marked = _environment(loader, mark=mark).get_template(name).render(context)
    except Exception:  # noqa: BLE001 - marks can upset a template that measures its own text
        return Rendered(text, ())
    return Rendered(text, _trace(text, marked, marks, name))


def _trace(
    text: str, marked: str, marks: list[tuple[str, int]], name: str
) -> tuple[tuple[str, int], ...]:
    if _MARK.sub("", marked) != text:
        return ()
    origins: list[tuple[str, int]] = []
    last = (name, 1)
    for row in marked.split("\n"):
        # Of the marks before the first character the last one counts: that is the text which the character is from. A line
        # without any came out of an expression.
        leading = _LEADING_MARKS.match(row)
        found = _MARK.findall(leading.group()) if leading else []
        origins.append(marks[int(found[-1])] if found else last)
        everything = _MARK.findall(row)
        if everything:
            last = marks[int(everything[-1])]
    return tuple(origins)


def included(folder: Path, name: str) -> set[str]:
    """Return the names of all files that a template includes, directly or not, as far as they are fixed and exist."""
    loader = _Folder(folder)
    seen: set[str] = set()
    pending = [name]
    while pending:
        for other, _ in _references(loader, pending.pop()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return seen


def _references(loader: _Folder, name: str) -> list[tuple[str, int]]:
    """Return the templates that one names, with lines; nothing for one that cannot be read."""
    environment = _environment(loader)
    try:
        tree = environment.parse(loader.get_source(environment, name)[0])
    except (TemplateError, TemplateFault):
        return []
    found: list[tuple[str, int]] = []
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        name_node = getattr(node, "template", None)
        if isinstance(name_node, nodes.Const) and isinstance(name_node.value, str):
            found.append((name_node.value, node.lineno))
    return found


def _refuse_cycles(loader: _Folder, start: str) -> None:
    def visit(name: str, trail: tuple[str, ...]) -> None:
        for other, line in _references(loader, name):
            if other in trail:
                way = " -> ".join([*trail[trail.index(other) :], other])
                msg = f"includes itself: {way}"
                raise TemplateFault(msg, line, name)
            visit(other, (*trail, other))

    visit(start, (start,))
