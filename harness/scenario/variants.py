"""Variants and matrix: which drills a scenario stands for, and the values of each."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.model.resolved import DEFAULT_VARIANT
from harness.scenario.locate import Path, dotted
from harness.scenario.problem import Problem, ScenarioError, suggest
from harness.scenario.reader import read_scalar
from harness.scenario.structure import said
from harness.scenario.template import RESERVED_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.scenario.reader import Document

_VALUE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VARIANT_NAME: Final = re.compile(r"[a-z0-9]([-._a-z0-9]*[a-z0-9])?")
_LARGEST: Final = 200
"""Drills that one scenario may stand for; more is a mistake in the matrix."""
SETS: Final = "--set"
"""What errors name as the file for values given on the command line."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One drill of a scenario: a variant and one cell of the matrix."""

    variant: str
    """Name of the variant in the file."""
    label: str
    """The same with the cell, e.g. `with-key,replicas=1`."""
    values: Mapping[str, Any]


class _Expansion:
    def __init__(self, document: Document, file: str) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._file = file
        spec = _mapping(document.data).get("spec")
        self.spec = _mapping(spec)
        self.values = _mapping(self.spec.get("values"))

    def _report(self, path: Path, message: str, allowed: tuple[str, ...] | None = None) -> None:
        where = self._document.positions.of_key(path)
        line, column = (where.line, where.column) if where else (None, None)
        self.problems.append(Problem(self._file, line, column, dotted(path), message, allowed))

    def check_names(self) -> None:
        for name in self.values:
            path = ("spec", "values", name)
            if not _VALUE_NAME.fullmatch(name):
                self._report(path, "must be letters, digits and underscores, a letter first")
            elif name in RESERVED_NAMES:
                self._report(
                    path, f"{name!r} means something else in templates; choose another name"
                )

    def _fits(self, path: Path, name: str, value: Any) -> bool:
        if name not in self.values:
            known = tuple(self.values)
            self._report(path, f"is not declared in spec.values{suggest(name, known)}", known)
            return False
        message = misfit(self.values[name], value)
        if message:
            self._report(path, message)
        return not message

    def variants(self) -> dict[str, dict[str, Any]]:
        """Return the values of each variant; what is wrong with one leaves it out."""
        found = self.spec.get("variants")
        if not isinstance(found, dict) or not found:
            return {DEFAULT_VARIANT: {}}
        result: dict[str, dict[str, Any]] = {}
        for name, body in found.items():
            at: Path = ("spec", "variants", name)
            if not _VARIANT_NAME.fullmatch(name):
                self._report(at, "must be lower case letters, digits and dashes")
            values = _mapping(_mapping(body).get("values"))
            result[name] = {
                key: value
                for key, value in values.items()
                if self._fits((*at, "values", key), key, value)
            }
        return result

    def matrix(self) -> dict[str, list[Any]]:
        found = _mapping(self.spec.get("matrix"))
        result: dict[str, list[Any]] = {}
        for name, choices in found.items():
            at: Path = ("spec", "matrix", name)
            if not isinstance(choices, list):
                continue  # its shape is reported elsewhere
            if not choices:
                self._report(at, "must not be empty")
                continue
            if name not in self.values:
                self._fits(at, name, None)
                continue
            good = [value for i, value in enumerate(choices) if self._fits((*at, i), name, value)]
            if good:
                result[name] = good
        return result

    def overrides(self, sets: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        known = tuple(self.values)
        for name, given in sets.items():
            if name not in self.values:
                message = f"the scenario declares no such value{suggest(name, known)}"
                self.problems.append(Problem(SETS, None, None, name, message, known))
                continue
            try:
                value = read_scalar(given) if isinstance(given, str) else given
            except ScenarioError:
                self.problems.append(Problem(SETS, None, None, name, f"{given!r} is not YAML"))
                continue
            message = misfit(self.values[name], value)
            if message:
                if isinstance(self.values[name], str):
                    message += f"; for a text write {name}='\"{given}\"'"
                self.problems.append(Problem(SETS, None, None, name, message))
                continue
            result[name] = value
        return result


def expand(
    document: Document, file: str, sets: Mapping[str, Any] | None = None
) -> tuple[list[Combination], list[Problem]]:
    """Return the drills that a scenario stands for, in the order of the file, and what is wrong with their values.

    `sets` wins over a variant, and a variant over the matrix: a value that either of them fixes is not varied. A text in `sets` is
    read as a YAML value. There is always at least one combination, so that everything else can be checked too.
    """
    expansion = _Expansion(document, file)
    expansion.check_names()
    fixed = expansion.overrides(sets or {})
    matrix = expansion.matrix()
    combinations: list[Combination] = []
    for name, own in expansion.variants().items():
        varied = {key: choices for key, choices in matrix.items() if key not in {**own, **fixed}}
        cells = itertools.islice(itertools.product(*varied.values()), _LARGEST + 1)
        for cell in cells:
            chosen = dict(zip(varied, cell, strict=True))
            label = ",".join([name, *(f"{key}={_short(value)}" for key, value in chosen.items())])
            values = {**expansion.values, **chosen, **own, **fixed}
            combinations.append(Combination(name, label, values))
    if len(combinations) > _LARGEST:
        message = f"gives more than {_LARGEST} drills"
        where = document.positions.of_key(("spec", "matrix"))
        expansion.problems.append(
            Problem(file, where.line if where else None, None, "spec.matrix", message)
        )
        combinations = combinations[:1]
    return combinations, expansion.problems


def misfit(declared: Any, value: Any) -> str:
    """Return why a value cannot take the place of a declared one, or nothing when it can.

    Only the type counts; a declared null takes anything, a number with a fraction a whole one too.
    """
    if declared is None or _kind(declared) == _kind(value):
        return ""
    if isinstance(declared, float) and _kind(value) == "whole number":
        return ""
    wanted = "a whole number" if _kind(declared) == "whole number" else said(declared)
    return f"must be {wanted}, as declared in spec.values, not {said(value)}"


def _kind(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "whole number"
    return said(value)


def _short(value: Any) -> str:
    """Return a value as it stands in an id, without what shells and pytest dislike."""
    text = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-") or "empty"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
