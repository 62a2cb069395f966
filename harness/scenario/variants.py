"""Variants and matrix: which drills a scenario stands for, and the values of each."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.model.names import label_part
from harness.model.resolved import DEFAULT_VARIANT
from harness.scenario.locate import Path, dotted
from harness.scenario.problem import Problem, ScenarioError, suggest
from harness.scenario.reader import read_scalar
from harness.scenario.structure import said
from harness.scenario.template import RESERVED_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.scenario.reader import Document

_VALUE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VARIANT_NAME: Final = re.compile(r"[a-z0-9]([-._a-z0-9]*[a-z0-9])?")
_LARGEST: Final = 200
"""Drills that one scenario may stand for; more is a mistake in the matrix."""
SETS: Final = "--set"
"""What errors name as the file for values given on the command line."""
ACROSS: Final = "--across"
"""The same for lists of values, of which every combination is a drill."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One drill of a scenario: a variant and one cell of the matrix."""

    variant: str
    """Name of the variant in the file."""
    label: str
    """The same with the cell, e.g. `with-key,replicas=1`."""
    values: Mapping[str, Any]


class _Expansion:
    def __init__(self, document: Document, file: str, only: str | None) -> None:
        self._only = only
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
            if self._only in found and name != self._only:
                continue
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
        for name, given in sets.items():
            if not self._declared(SETS, name):
                continue
            try:
                value = read_scalar(given) if isinstance(given, str) else given
            except ScenarioError:
                self._refuse(SETS, name, f"{given!r} is not YAML")
                continue
            if self._suits(SETS, name, value, given):
                result[name] = value
        return result

    def across(
        self, lists: Mapping[str, Sequence[Any]], sets: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        result: dict[str, list[Any]] = {}
        for name, choices in lists.items():
            if not self._declared(ACROSS, name):
                continue
            if name in sets:
                self._refuse(ACROSS, name, f"has one value by {SETS}; leave out one of the two")
                continue
            good = [value for value in choices if self._suits(ACROSS, name, value, value)]
            labels = [label_part(value) for value in good]
            twice = next((label for label in labels if labels.count(label) > 1), None)
            if twice is not None:
                message = f"{twice} is there twice, so that two drills would have one name"
                self._refuse(ACROSS, name, message)
            if good:
                result[name] = good
        return result

    def check_varied(
        self, lists: Mapping[str, Sequence[Any]], variants: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """What was asked for on the command line must not be overruled in silence, as a variant overrules the matrix of its file."""
        for name in lists:
            fixing = [variant for variant, own in variants.items() if name in own]
            if fixing:
                found = _mapping(self.spec.get("variants"))
                free = tuple(
                    variant
                    for variant, body in found.items()
                    if name not in _mapping(_mapping(body).get("values"))
                )
                message = f"variant {fixing[0]} has a value of its own for it; choose others with --variant"
                self._refuse(ACROSS, name, message, free)

    def _declared(self, option: str, name: str) -> bool:
        known = tuple(self.values)
        if name not in self.values:
            message = f"the scenario declares no such value{suggest(name, known)}"
            self._refuse(option, name, message, known)
        return name in self.values

    def _suits(self, option: str, name: str, value: Any, given: Any) -> bool:
        message = misfit(self.values[name], value)
        if message:
            if isinstance(self.values[name], str):
                message += f"; for a text write {name}='\"{given}\"'"
            self._refuse(option, name, message)
        return not message

    def _refuse(
        self, option: str, name: str, message: str, allowed: tuple[str, ...] | None = None
    ) -> None:
        self.problems.append(Problem(option, None, None, name, message, allowed))


def expand(  # noqa: PLR0917 - what it depends on
    document: Document,
    file: str,
    sets: Mapping[str, Any] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
    only: str | None = None,
    derived: Mapping[str, Any] | None = None,
) -> tuple[list[Combination], list[Problem]]:
    """Return the drills that a scenario stands for, in the order of the file, and what is wrong with their values.

    `sets` wins over a variant, and a variant over the matrix: a value that either of them fixes is not varied. A text in `sets` is
    read as a YAML value. `across` is a matrix given by the user, whose lists come before those of the file and replace them; a
    variant that fixes such a value is a mistake. `only` is the name of the one variant that is wanted, if there is such a one.
    `derived` are values that the cluster has instead of the file's; whoever states one otherwise wins.
    There is always at least one combination, so that everything else can be checked too.
    """
    expansion = _Expansion(document, file, only)
    expansion.check_names()
    fixed = expansion.overrides(sets or {})
    given = expansion.across(across or {}, fixed)
    matrix = {**given, **{k: v for k, v in expansion.matrix().items() if k not in given}}
    variants = expansion.variants()
    expansion.check_varied(given, variants)
    combinations: list[Combination] = []
    for name, own in variants.items():
        varied = {key: choices for key, choices in matrix.items() if key not in {**own, **fixed}}
        cells = itertools.islice(itertools.product(*varied.values()), _LARGEST + 1)
        for cell in cells:
            chosen = dict(zip(varied, cell, strict=True))
            label = ",".join(
                [name, *(f"{key}={label_part(value)}" for key, value in chosen.items())]
            )
            values = {**expansion.values, **(derived or {}), **chosen, **own, **fixed}
            combinations.append(Combination(name, label, values))
    if len(combinations) > _LARGEST:
        message = f"gives more than {_LARGEST} drills"
        where = document.positions.of_key(("spec", "matrix"))
        problem = Problem(file, where.line if where else None, None, "spec.matrix", message)
        if given:
            problem = Problem(ACROSS, None, None, ", ".join(given), message)
        expansion.problems.append(problem)
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


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
