"""The rules about what stands outside the cluster: gates, alerts, metrics, and other field managers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness.checks.expression import Expression, ExpressionError
from harness.model.standins import PLACEHOLDERS, PROMETHEUS, RECEIVER
from harness.scenario.template import is_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.scenario.locate import Path
    from harness.scenario.validate import Rules

_ONE_OBJECT: Final = re.compile(r"[A-Z][A-Za-z0-9]*/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_OF: Final = {
    **dict.fromkeys(("calls", "gates"), ("receiver", "that could be called")),
    "queries": ("metrics", "that could be asked for"),
    **dict.fromkeys(("traffic", "answers"), ("traffic", "that could be judged")),
}
"""Words of expressions that only mean something where there is a receiver, or metrics -> the field, and what is done with it."""
_DECLARED_AS: Final = {RECEIVER: "receiver", PROMETHEUS: "metrics"}
"""Name in templates -> the field that declares it."""


def placeholders(data: object) -> dict[str, str]:
    """Return the names that templates get for the stand-ins that a document of any shape declares, with their placeholders."""
    spec = _mapping(_mapping(data).get("spec"))
    return {
        name: text
        for name, text in PLACEHOLDERS.items()
        if spec.get(_DECLARED_AS[name]) is not None
    }


def _names_are_free(rules: Rules) -> None:
    for name in placeholders({"spec": rules.spec}):
        if name in _mapping(rules.spec.get("values")):
            message = f"{name!r} is the address of spec.{_DECLARED_AS[name]} in templates; choose another name"
            rules.report(("spec", "values", name), message, key=True)


def _gates_are_told_apart(rules: Rules) -> None:
    receiver = rules.spec.get("receiver")
    if not isinstance(receiver, dict):
        return
    gates, alerts = _mapping(receiver.get("gates")), _mapping(receiver.get("alerts"))
    if not gates and not alerts:
        message = "declares neither gates nor alerts, so that it answers nothing"
        rules.report(("spec", "receiver"), message, ("gates", "alerts"), key=True)
    for name in alerts:
        if name in gates:
            message = f"{name!r} is a gate already; a step could not tell the two apart"
            rules.report(("spec", "receiver", "alerts", name), message, key=True)


def _steps_change_what_is_declared(rules: Rules) -> None:
    receiver = _mapping(rules.spec.get("receiver"))
    gates = tuple({**_mapping(receiver.get("gates")), **_mapping(receiver.get("alerts"))})
    series = tuple(_mapping(rules.spec.get("metrics")))
    for path, row in rules.steps:
        gate = row.get("gate")
        if isinstance(gate, dict):
            at = (*path, "gate", "name")
            rules.refer(at, gate.get("name"), gates, "gate of spec.receiver")
        for name in _mapping(row.get("metric")):
            rules.refer((*path, "metric", name), name, series, "metric of spec.metrics")


def _other_managers_apply_something(rules: Rules) -> None:
    files = rules.spec.get("manifests")
    known = (
        tuple(name for name in files if isinstance(name, str)) if isinstance(files, list) else ()
    )
    for path, given in _applied(rules):
        manifests, target, prune = (given.get(key) for key in ("manifests", "target", "prune"))
        if not manifests and not target and not prune:
            ways = ("manifests", "target", "prune")
            rules.report(path, "applies nothing and prunes nothing", ways, key=True)
        if manifests and target:
            message = "applies manifests or one target, not both"
            rules.report((*path, "target"), message, key=True)
        if target in {"rollouts", "workloads"}:
            message = f"must be one object, and {target!r} are several"
            rules.report((*path, "target"), message, ("workload", "rollout", "Kind/name"))
        if given.get("merge") is not None and not target:
            rules.report((*path, "merge"), "changes what is applied to target", key=True)
        for i, name in enumerate(manifests if isinstance(manifests, list) else []):
            rules.refer((*path, "manifests", i), name, known, "manifest of this scenario")
        for i, name in enumerate(prune if isinstance(prune, list) else []):
            if isinstance(name, str) and not _ONE_OBJECT.fullmatch(name):
                rules.report((*path, "prune", i), f"{name!r} names no object", ("Kind/name",))


def _applied(rules: Rules) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path, row in rules.steps:
        given = row.get("applyAs")
        if isinstance(given, dict):
            yield (*path, "applyAs"), given


def _words_have_something_to_tell_of(rules: Rules) -> None:
    absent = {word: of for word, of in _OF.items() if rules.spec.get(of[0]) is None}
    texts = [((*path, "until"), row.get("until")) for path, row in rules.steps]
    texts += [
        ((*path, kind), row.get(kind))
        for path, row in rules.checks
        for kind in ("eventually", "always", "never")
    ]
    for path, text in texts:
        for word, (field, what) in absent.items():
            if isinstance(text, str) and _uses(text, word):
                message = f"looks at {word}, but there is no spec.{field} {what}"
                rules.report(path, message)


def _uses(text: str, word: str) -> bool:
    if word not in text or is_template(text):
        return False
    try:
        return word in Expression.compile(text).uses
    except ExpressionError:
        return False  # reported elsewhere


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


RULES: Final[tuple[Callable[[Rules], None], ...]] = (
    _names_are_free,
    _gates_are_told_apart,
    _steps_change_what_is_declared,
    _other_managers_apply_something,
    _words_have_something_to_tell_of,
)
"""Every rule; each looks at the whole document and reports all that breaks it."""
