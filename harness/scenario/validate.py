"""The rules of the scenario format that go beyond the shape of single fields: names that refer to each other, and expressions.

They work on the plain rendered document, not on validated types, so that they find what is wrong even where the shape of another part
is wrong too. What has the wrong shape is skipped here; `structure` reports it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness.checks.expression import Expression, ExpressionError
from harness.model.actions import EVERY
from harness.model.features import FEATURES
from harness.model.names import INSTALLED, SUBJECT_FORMS
from harness.model.scenario_checks import (
    BUILT_IN_CHECKS,
    END,
    KINDS,
    RESERVED_MOMENTS,
    SETTLED,
    VERDICT,
)
from harness.model.scenario_steps import VERBS
from harness.scenario import (
    validate_controller,
    validate_nodes,
    validate_outside,
    validate_traffic,
)
from harness.scenario.locate import Path, Positions, dotted
from harness.scenario.problem import Problem, suggest
from harness.scenario.template import is_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_NOT_DOING: Final = frozenset({"name", "change", "within", "when"})
"""Fields of a step that alone do nothing."""
_PATCHES: Final = ("template", "merge", "status")
_MOMENT: Final = re.compile(r"""(?<![\w.])at(?:\.(\w+)|\[\s*["']([^"']*)["']\s*\])""")
"""Where an expression looks at the moment of a step."""
_UPGRADES: Final = ("subject", "kubernetes")


class Rules:
    """One pass over one rendered document."""

    def __init__(
        self,
        data: object,
        positions: Positions,
        file: str,
        values: Mapping[str, Any],
        skip: set[Path],
    ) -> None:
        self.problems: list[Problem] = []
        self._positions = positions
        self._file = file
        self._values = values
        self._skip = skip
        self.spec = _mapping(_mapping(data).get("spec"))
        everything = list(self.rows("steps"))
        self.steps = [(path, row) for path, row in everything if row.get("when") is not False]
        """Those that this variant has."""
        self.left_out = {row.get("name") for _, row in everything if row.get("when") is False}
        decided = list(self.rows("checks"))
        self.checks = [(path, row) for path, row in decided if row.get("when") is not False]
        """Those that this variant has."""
        self.not_checked = [str(row.get("id")) for _, row in decided if row.get("when") is False]
        self.step_names = [row["name"] for _, row in self.steps if isinstance(row.get("name"), str)]
        self.check_ids = [row["id"] for _, row in self.checks if isinstance(row.get("id"), str)]

    def rows(self, key: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Return the mappings of a list below spec, each with its path."""
        rows = self.spec.get(key)
        for i, row in enumerate(rows if isinstance(rows, list) else []):
            if isinstance(row, dict):
                yield ("spec", key, i), row

    def report(
        self,
        path: Path,
        message: str,
        allowed: tuple[str, ...] | None = None,
        *,
        key: bool = False,
        down: int = 0,
    ) -> None:
        """Note a problem at `path`, at its key if asked; `down` is how many lines further down."""
        if path in self._skip:
            return
        where = self._positions.of_key(path) if key else self._positions.of(path)
        line, column = (where.line + down, where.column) if where else (None, None)
        self.problems.append(Problem(self._file, line, column, dotted(path), message, allowed))

    def refer(self, path: Path, name: object, known: tuple[str, ...], what: str) -> None:
        """Note a name that refers to nothing."""
        if not isinstance(name, str) or name in known:
            return
        if what == "step" and name in self.left_out:
            self.report(path, f"step {name!r} is left out, since its when is false", known)
            return
        self.report(path, f"{name!r} is no {what}{suggest(name, known)}", known)

    def expression(self, path: Path, text: object) -> None:
        """Note what is wrong with a CEL expression."""
        if not isinstance(text, str) or not text or is_template(text):
            return
        try:
            compiled = Expression.compile(text)
        except ExpressionError as error:
            self.report(path, str(error), down=(error.line or 1) - 1)
            return
        for finding in compiled.findings(self._values):
            down = text.count("\n", 0, finding.offset)
            self.report(path, finding.message, finding.allowed or None, down=down)
        for found in _MOMENT.finditer(text) if "at" in compiled.uses else ():
            self.refer(path, found[1] or found[2], tuple(self.step_names), "step")


def check(
    data: object, positions: Positions, file: str, values: Mapping[str, Any], skip: set[Path]
) -> list[Problem]:
    """Return everything that breaks a rule; problems at the paths in `skip` are known already."""
    rules = Rules(data, positions, file, values, skip)
    for rule in RULES:
        rule(rules)
    return rules.problems


def _names_are_unique(rules: Rules) -> None:
    for rows, key, what in ((rules.steps, "name", "step"), (rules.checks, "id", "check")):
        seen: set[str] = set()
        for path, row in rows:
            name = row.get(key)
            if isinstance(name, str) and name in seen:
                rules.report((*path, key), f"another {what} has the name {name!r}")
            if isinstance(name, str):
                seen.add(name)


def _names_are_free(rules: Rules) -> None:
    for path, row in rules.steps:
        if _text(row.get("name")) in RESERVED_MOMENTS:
            rules.report((*path, "name"), f"{row['name']!r} means a moment; choose another name")
    for path, row in rules.checks:
        if _text(row.get("id")) in {*BUILT_IN_CHECKS, VERDICT}:
            message = f"{row['id']!r} is the id of a built-in check; choose another one"
            rules.report((*path, "id"), message)


def _steps_do_one_thing(rules: Rules) -> None:
    for path, row in rules.steps:
        verbs = [key for key in row if key in VERBS and row[key] is not None]
        if len(verbs) > 1:
            message = f"a step does one thing, this one has {' and '.join(verbs)}"
            rules.report((*path, verbs[1]), message, key=True)
        if not verbs and row.get("until") is None and not set(row) - _NOT_DOING:
            rules.report(path, "has neither a verb nor until, so it does nothing", VERBS)
        if row.get("within") is not None and row.get("until") is None:
            message = "has nothing to limit; it belongs to until"
            rules.report((*path, "within"), message, key=True)


def _one_change(rules: Rules) -> None:
    changes = [(path, row) for path, row in rules.steps if row.get("change") is True]
    for path, _ in changes[1:]:
        rules.report((*path, "change"), "another step is the change already")
    for path, row in changes:
        if not any(key in VERBS for key in row):
            rules.report((*path, "change"), "this step changes nothing, it has no verb", VERBS)


def _patches_are_one_kind(rules: Rules) -> None:
    for path, row in rules.steps:
        patch = row.get("patch")
        if not isinstance(patch, dict):
            continue
        at = (*path, "patch")
        given = [key for key in _PATCHES if patch.get(key) is not None]
        if len(given) != 1:
            rules.report(at, "needs one of template, merge and status", _PATCHES, key=True)
        elif not patch[given[0]]:
            rules.report((*at, given[0]), "must not be empty", key=True)


def _upgrades_are_one_kind(rules: Rules) -> None:
    for path, row in rules.steps:
        upgrade = row.get("upgrade")
        if not isinstance(upgrade, dict):
            continue
        at = (*path, "upgrade")
        given = [key for key in _UPGRADES if upgrade.get(key) is not None]
        if not given:
            rules.report(
                at, "says neither to what subject nor to what version", _UPGRADES, key=True
            )
        elif len(given) > 1:
            message = "upgrades one thing, so give subject or kubernetes, not both"
            rules.report((*at, given[1]), message, _UPGRADES, key=True)
        if upgrade.get("subject") == INSTALLED:
            message = "'installed' is never started by a drill, so nothing can be upgraded to it"
            rules.report((*at, "subject"), message, SUBJECT_FORMS[:-1])


def _installed_is_left_alone(rules: Rules) -> None:
    if rules.spec.get("subject") != INSTALLED:
        return
    for path, row in rules.steps:
        for verb in ("stop", "start", "kill", "upgrade"):
            touches = row.get(verb) is not None
            if verb == "upgrade" and touches:
                touches = _mapping(row[verb]).get("subject") is not None
            if touches:
                message = (
                    "the subject 'installed' is only observed, never started, stopped or upgraded"
                )
                rules.report((*path, verb), message, key=True)


def _where_chooses_among_many(rules: Rules) -> None:
    for path, row in rules.steps:
        for verb in ("patch", "delete", "scale"):
            action = _mapping(row.get(verb))
            target = action.get("target")
            if action.get("where") is not None and isinstance(target, str) and target not in EVERY:
                message = f"chooses among several, and {target!r} is one"
                rules.report((*path, verb, "where"), message, EVERY, key=True)


def _steps_apply_manifests(rules: Rules) -> None:
    files = rules.spec.get("manifests")
    listed = files if isinstance(files, list) else []
    known = tuple(name for name in listed if isinstance(name, str))
    for path, row in rules.steps:
        names = row.get("apply")
        for i, name in enumerate(names if isinstance(names, list) else []):
            rules.refer((*path, "apply", i), name, known, "manifest of this scenario")
    for i, name in enumerate(known):
        if name in known[:i]:
            rules.report(("spec", "manifests", i), f"{name!r} is given twice")


def _untils_are_expressions(rules: Rules) -> None:
    for path, row in rules.steps:
        rules.expression((*path, "until"), row.get("until"))


def _checks_are_one_kind(rules: Rules) -> None:
    for path, row in rules.checks:
        given = [key for key in row if key in KINDS and row[key] is not None]
        if not given:
            rules.report(path, "says nothing; give one of these", KINDS)
        elif len(given) > 1:
            message = f"says one thing, this one has {' and '.join(given)}"
            rules.report((*path, given[1]), f"a check {message}", KINDS, key=True)
        for key in given:
            rules.expression((*path, key), row[key])


def _windows_are_moments(rules: Rules) -> None:
    steps = tuple(rules.step_names)
    order = {name: i for i, name in enumerate((*steps, END, SETTLED))}
    for path, row in rules.checks:
        begin, close = _text(row.get("from")), _text(row.get("until"))
        rules.refer((*path, "from"), begin, (*steps, END), "step")
        rules.refer((*path, "until"), close, (*steps, END, SETTLED), "step")
        if begin in order and close in order and order[close] <= order[begin]:
            rules.report((*path, "until"), f"{close!r} comes before from: {begin!r}")


def _records_are_moments(rules: Rules) -> None:
    known = (*rules.step_names, END)
    for path, row in rules.rows("record"):
        moments = row.get("at")
        for i, moment in enumerate(moments if isinstance(moments, list) else []):
            rules.refer((*path, "at", i), moment, known, "step")


def _done_by_checks(rules: Rules) -> None:
    # A line that needs a check which is left out is left out, too.
    known = (*rules.check_ids, *rules.not_checked, *BUILT_IN_CHECKS, VERDICT)
    for path, row in rules.rows("doneWhen"):
        ids = row.get("by")
        for i, name in enumerate(ids if isinstance(ids, list) else []):
            rules.refer((*path, "by", i), name, known, "check")


def _failures_are_checks(rules: Rules) -> None:
    # What one variant leaves out another one may expect to fail.
    known = (*rules.check_ids, *rules.not_checked, *BUILT_IN_CHECKS)
    places: list[tuple[Path, dict[str, Any]]] = [(("spec", "expect"), rules.spec)]
    places += [
        (("spec", "variants", name, "expect"), body)
        for name, body in _mapping(rules.spec.get("variants")).items()
        if isinstance(body, dict)
    ]
    for path, holder in places:
        names = _mapping(holder.get("expect")).get("fail")
        for i, name in enumerate(names if isinstance(names, list) else []):
            rules.refer((*path, "fail", i), name, known, "check")


def _features_are_known(rules: Rules) -> None:
    names = rules.spec.get("requires")
    for i, name in enumerate(names if isinstance(names, list) else []):
        rules.refer(("spec", "requires", i), name, tuple(FEATURES), "known feature")


RULES: Final[tuple[Callable[[Rules], None], ...]] = (
    _names_are_unique,
    _names_are_free,
    _steps_do_one_thing,
    _one_change,
    _patches_are_one_kind,
    _upgrades_are_one_kind,
    _installed_is_left_alone,
    _where_chooses_among_many,
    _steps_apply_manifests,
    _untils_are_expressions,
    _checks_are_one_kind,
    _windows_are_moments,
    _records_are_moments,
    _done_by_checks,
    _failures_are_checks,
    _features_are_known,
    *validate_nodes.RULES,
    *validate_controller.RULES,
    *validate_outside.RULES,
    *validate_traffic.RULES,
)
"""Every rule; each looks at the whole document and reports all that breaks it."""


def _text(value: object) -> str | None:
    """Return a text, and None for anything else, which is reported elsewhere."""
    return value if isinstance(value, str) else None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
