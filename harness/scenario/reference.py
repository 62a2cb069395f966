"""The tables of the reference page, made from the types and the vocabulary, so that the page cannot fall behind."""

from __future__ import annotations

import json
import re
import types
import typing
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from harness.checks.fields import FUNCTIONS
from harness.checks.vocabulary import OBJECTS, VARIABLES
from harness.model.features import FEATURES
from harness.model.scenario import ScenarioFile
from harness.model.scenario_checks import BUILT_IN_CHECKS, VERDICT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

_BLOCK: Final = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
_OWNERS: Final = {
    "rollout": "rollout",
    "rollout_entry": "each of rollouts",
    "analyses": "analyses",
    "subject": "subject",
    "workload_role": "primary and target",
    "apex": "apex",
    "revision": "each of revisions",
    "moment": "each of at",
    "pod": "each of pods",
    "workload": "each of workloads",
    "service": "each of services",
    "node": "each of nodes",
    "condition": "each of rollout.conditions",
    "route": "route",
    "autoscaler": "each of autoscalers",
    "config": "each of configs",
    "call": "each of calls",
    "gate": "each of gates",
    "queries": "queries",
    "traffic": "traffic",
    "answer": "each of answers",
}
"""Kind of object -> the variables that are one, or hold them."""


def fill(page: str, scenarios: Mapping[str, str]) -> str:
    """Return the reference page with every generated block made anew; `scenarios` are the questions of the shipped ones by name."""
    blocks = {
        "scenarios": _scenarios(scenarios),
        "fields": _fields(),
        "words": _words(),
        "features": _features(),
        "builtin": _built_in(),
        "functions": ", ".join(f"`{name}`" for name in FUNCTIONS) + "\n",
    }
    return _BLOCK.sub(lambda m: f"{m[1]}\n{blocks[m[2]]}\n{m[3]}", page)


def _scenarios(scenarios: Mapping[str, str]) -> str:
    rows = ["| Scenario | Question |", "|---|---|"]
    rows += [f"| [{name}]({name}/scenario.yaml) | {text} |" for name, text in scenarios.items()]
    return "\n".join(rows) + "\n"


def fields(
    model: type[BaseModel] = ScenarioFile, prefix: str = ""
) -> Iterator[tuple[str, str, FieldInfo]]:
    """Yield every field of the format with its dotted path and type, in order, parents first."""
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        kind, inner, suffix = _kind(info)
        yield path, kind, info
        if inner is not None:
            yield from fields(inner, f"{path}{suffix}.")


def _kind(info: FieldInfo) -> tuple[str, type[BaseModel] | None, str]:
    """Return the type of a field in words, the model within, and how elements are written in a path."""
    annotation = _inner(info.annotation)
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in arguments), None, ""
    if origin is list:
        element = _inner(arguments[0])
        return f"list of {_plain(element)}", _model(element), "[]"
    if origin is dict:
        element = _inner(arguments[1])
        return f"map of name to {_plain(element)}", _model(element), ".NAME"
    return _plain(annotation), _model(annotation), ""


def _model(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


def _plain(annotation: Any) -> str:
    names = {str: "text", int: "whole number", float: "duration", bool: "true or false"}
    if annotation in names:
        return names[annotation]
    if typing.get_origin(annotation) is list:
        return "list"
    return "object" if _model(annotation) else "any value"


def _inner(annotation: Any) -> Any:
    """Return the type without `| None` and without what is annotated to it."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def _default(info: FieldInfo) -> str:
    default = info.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return "required"
    if default is None or isinstance(default, BaseModel) or default in ("", [], {}):
        return ""
    if isinstance(default, float):
        return f"`{default:g}s`"
    return f"`{json.dumps(default)}`"


def _fields() -> str:
    rows = ["| Field | Type | Default | Meaning | Example |", "|---|---|---|---|---|"]
    for path, kind, info in fields():
        example = json.dumps((info.examples or [""])[0], ensure_ascii=False).replace("|", "\\|")
        meaning = (info.description or "").replace("|", "\\|")
        rows.append(f"| `{path}` | {kind} | {_default(info)} | {meaning} | `{example}` |")
    return "\n".join(rows) + "\n"


def _words() -> str:
    rows = ["| Name | Type | Meaning |", "|---|---|---|"]
    for name, word in VARIABLES.items():
        label = name
        if word.type in OBJECTS:
            rows.append(f"| `{label}` | object | {word.doc} |")
        elif word.type.startswith("list(") and word.type[5:-1] in OBJECTS:
            rows.append(f"| `{label}` | list | {word.doc} |")
        else:
            rows.append(f"| `{label}` | {word.type} | {word.doc} |")
    for kind, every in OBJECTS.items():
        words, head = every, f"Fields of {_OWNERS[kind]}:"
        if kind == "rollout_entry":
            words = {name: word for name, word in every.items() if name not in OBJECTS["rollout"]}
            head = f"Fields of {_OWNERS[kind]}: those of rollout, and"
        rows += ["", head, ""]
        rows += ["| Field | Type | Meaning |", "|---|---|---|"]
        for name, word in words.items():
            choices = [f"`{choice}`" for choice in word.choices if choice]
            doc = f"{word.doc} One of {', '.join(choices)}." if choices else word.doc
            rows.append(f"| `{name}` | {word.type} | {doc} |")
    return "\n".join(rows) + "\n"


def _features() -> str:
    rows = ["| Feature | Of | Meaning |", "|---|---|---|"]
    rows += [f"| `{name}` | {feature.of} | {feature.doc} |" for name, feature in FEATURES.items()]
    return "\n".join(rows) + "\n"


def _built_in() -> str:
    rows = ["| Id | Passes when |", "|---|---|"]
    rows += [f"| `{name}` | {doc} |" for name, doc in BUILT_IN_CHECKS.items()]
    rows.append(
        f"| `{VERDICT}` | Only in `doneWhen`: the drill has a verdict that can be posted, neither error nor unknown. |"
    )
    return "\n".join(rows) + "\n"
