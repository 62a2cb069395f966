"""Does a document have the shape of a scenario? What pydantic finds, said the way this project says it."""

from __future__ import annotations

import re
import types
import typing
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from harness.model.actions import EVERY
from harness.model.duration import EXAMPLES
from harness.model.names import KUBERNETES_FORMS, SUBJECT_FORMS
from harness.model.scenario import ScenarioFile, VariantSpec
from harness.model.scenario_checks import RECORDABLE
from harness.model.scenario_steps import StepSpec
from harness.model.standins import GivenError
from harness.scenario.locate import Path, Positions, dotted
from harness.scenario.problem import Problem, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

_WANTED: Final = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_TARGETS: Final = ("workload", "rollout", "Kind/name", *EVERY[::-1])
_SHAPES: Final[dict[str, tuple[str, tuple[str, ...] | None]]] = {
    "name": ("must be lower case letters, digits and dashes", None),
    "id": ("must be lower case letters, digits and dashes", None),
    "manager": ("must be lower case letters, digits and dashes", None),
    "target": ("names no object", _TARGETS),
    "object": ("names no object", (*RECORDABLE, "Kind/name")),
    "subject": ("names no subject", SUBJECT_FORMS),
    "series": ("is no metric", ("name", 'name{label="value"}')),
    "kubernetes": ("is no version of Kubernetes", KUBERNETES_FORMS),
    "node": ("names no node", ("node-1", "node-2", "…")),
    "service": ("names no Service", ("web", "gateway.istio-system")),
    "host": ("is no name of a host", ("web.example",)),
    "path": ("is no path of a URL", ("/hostname", "/")),
}
_NAMES_OF: Final = {
    "metrics": "series",
    "metric": "series",
    "gates": "name",
    "alerts": "name",
    "labels": "node",
    "taints": "node",
}
"""Maps whose keys have a shape -> what that is in `_SHAPES`."""
_QUOTED: Final = re.compile(r"'([^']*)'")


def check(
    data: object, positions: Positions, file: str
) -> tuple[ScenarioFile | None, list[Problem]]:
    """Return the validated scenario, or None with everything that is wrong with its shape."""
    if not isinstance(data, dict):
        message = f"must be a mapping with apiVersion, kind, metadata and spec, not {said(data)}"
        where = positions.of(())
        return None, [Problem(file, where.line if where else None, None, "", message)]
    try:
        return ScenarioFile.model_validate(data), []
    except ValidationError as error:
        return None, [_problem(item, positions, file) for item in error.errors(include_url=False)]


def said(value: object) -> str:
    """Return what kind of value this is, in words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "a mapping"


def _problem(error: ErrorDetails, positions: Positions, file: str) -> Problem:
    path: Path = tuple(part for part in error["loc"] if part != "[key]")
    kind = error["type"]
    by_key = kind in {"extra_forbidden", "missing"}
    where = positions.of_key(path) if by_key else positions.of(path)
    message, allowed = _message(error, path)
    return Problem(
        file,
        where.line if where else None,
        where.column if where else None,
        dotted(path),
        message,
        allowed,
    )


def _message(error: ErrorDetails, path: Path) -> tuple[str, tuple[str, ...] | None]:
    kind = error["type"]
    context: Mapping[str, Any] = error.get("ctx", {})
    value = error["input"]
    name = str(path[-1]) if path else ""
    if kind == "missing":
        return "is missing", None
    if kind == "extra_forbidden":
        return _unknown(name, path)
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {said(value)}", None
    if kind == "literal_error":
        return f"cannot be {value!r}", tuple(_QUOTED.findall(str(context.get("expected", ""))))
    if kind == "string_pattern_mismatch":
        key = _NAMES_OF.get(str(path[-2]), name)
        message, allowed = _SHAPES.get(key, ("does not have the right shape", None))
        return f"{value!r} {message}", allowed
    if kind in {"string_too_short", "too_short"}:
        return "must not be empty", None
    if kind == "string_too_long":
        return f"is longer than {context.get('max_length')} characters", None
    if kind == "greater_than_equal":
        return f"must be at least {context.get('ge')}, not {value}", None
    if kind == "less_than_equal":
        return f"must be at most {context.get('le')}, not {value}", None
    return _own(error) if kind == "value_error" else (error["msg"], None)


def _own(error: ErrorDetails) -> tuple[str, tuple[str, ...]]:
    """Return what a validator of ours says: durations raise plain errors, others say themselves what is allowed."""
    given = error.get("ctx", {}).get("error")
    allowed = given.allowed if isinstance(given, GivenError) else (*EXAMPLES, "…")
    return str(given or error["msg"]), allowed


def _unknown(name: str, path: Path) -> tuple[str, tuple[str, ...]]:
    known = fields_at(path[:-1])
    hint = suggest(name, known)
    if not hint and _model_at(path[:-1]) is StepSpec:
        return "is neither a verb nor a field of a step", known
    if not hint and _model_at(path[:-1]) is VariantSpec:
        hint = "; a value belongs below values"
    return f"is not a known field{hint}", known


def fields_at(path: Path) -> tuple[str, ...]:
    """Return the names of the fields that the object at `path` may have."""
    model = _model_at(path)
    if model is None:
        return ()
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _model_at(path: Path) -> type[BaseModel] | None:
    here: Any = ScenarioFile
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = {field.alias or name: field for name, field in here.model_fields.items()}
            if part not in fields:
                return None
            here = _inner(fields[str(part)].annotation)
        else:
            here = _inner(here)
            arguments = typing.get_args(here)
            here = _inner(arguments[-1]) if arguments else None
    here = _inner(here)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def _inner(annotation: Any) -> Any:
    """Return the type without `| None`."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return next(part for part in typing.get_args(annotation) if part is not type(None))
    return annotation
