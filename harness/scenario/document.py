"""A scenario's document, with its templates rendered for one set of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.scenario.locate import Path, dotted
from harness.scenario.problem import Problem
from harness.scenario.template import TemplateFault, is_template, render_scalar
from harness.scenario.validate_outside import placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.scenario.reader import Document

_LITERAL: Final = (("spec", "values"), ("spec", "matrix"))
"""Values are what templates are made from; they are none themselves."""


def render_document(
    document: Document, file: str, values: Mapping[str, Any]
) -> tuple[Any, list[Problem], set[Path]]:
    """Return the rendered data, what went wrong, and the paths at which it did (those hold the text as it was)."""
    context = {**values, "values": dict(values), **placeholders(document.data)}
    problems: list[Problem] = []
    broken: set[Path] = set()

    def walk(value: Any, path: Path) -> Any:
        if path in _LITERAL or (path[:2] == ("spec", "variants") and path[3:] == ("values",)):
            return value
        if isinstance(value, dict):
            return {key: walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*path, i)) for i, item in enumerate(value)]
        if not isinstance(value, str) or not is_template(value):
            return value
        try:
            return render_scalar(value, context)
        except TemplateFault as fault:
            where = document.positions.of(path)
            line = where.line + (fault.line or 1) - 1 if where else None
            column = where.column if where else None
            problems.append(Problem(file, line, column, dotted(path), fault.message, fault.allowed))
            broken.add(path)
            return value

    return walk(document.data, ()), problems, broken
