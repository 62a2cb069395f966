"""A scenario as loaded from its folder, from which the drills are resolved."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.scenario import structure, targets, validate
from harness.scenario.document import render_document
from harness.scenario.locate import dotted
from harness.scenario.manifests import TEMPLATE_SUFFIX, DrillContext, collect
from harness.scenario.problem import Problem, ScenarioError, fold, suggest
from harness.scenario.reader import Document, read_text, read_yaml
from harness.scenario.resolve import resolve
from harness.scenario.template import included, inside
from harness.scenario.validate_nodes import PER_ELIGIBLE, REPLICAS
from harness.scenario.validate_outside import placeholders
from harness.scenario.variants import Combination, expand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.resolved import Resolved
    from harness.scenario.manifests import Manifest

SCENARIO_FILE: Final = "scenario.yaml"
"""Name of the file in a scenario's folder."""
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scenario without errors, for its values as they stand in the file."""

    name: str
    file: Path
    """The scenario file; for an adopted folder the folder itself."""
    folder: Path
    """Where its manifests are."""
    document: Document
    drills: tuple[Resolved, ...]
    """All drills that it stands for, in the order of the file."""
    adopted: bool = False
    notes: tuple[str, ...] = field(default=())
    """What was taken differently from how it was found; sentences for the user."""

    @property
    def question(self) -> str:
        """The question as rendered for the first drill."""
        return self.drills[0].question

    @property
    def variants(self) -> tuple[str, ...]:
        """Labels of all drills, e.g. `with-key,replicas=1`."""
        return tuple(drill.variant for drill in self.drills)

    def resolve(
        self,
        variant: str | None = None,
        sets: Mapping[str, Any] | None = None,
        across: Mapping[str, Sequence[Any]] | None = None,
        eligible: int | None = None,
    ) -> list[Resolved]:
        """Return the drills of all variants or of one, with values changed by `sets`, and one for each combination of `across`.

        `variant` is the name of a variant or the label of one drill. A text in `sets` is read as a YAML value. `eligible` is the number
        of nodes on a cluster that is not ours, from which `nodes.replicasPerEligible` makes replicas. Raises
        ScenarioError for an unknown variant or value, a value of another type, or a scenario that the values make invalid; what
        they make of other variants than the one asked for is no matter.
        """
        drills = list(self.drills)
        # With a value that is set, the matrix may have fewer cells; whether there is such a variant is asked further down.
        names = {_name(drill.variant) for drill in drills}
        named = variant is not None and _name(variant) in names
        if sets or across or eligible:
            drills, problems = resolve_all(
                self.document,
                self.file,
                self.folder,
                sets=sets,
                across=across,
                adopted=self.adopted,
                only=variant if named else None,
                eligible=eligible,
            )
            if problems:
                raise ScenarioError(problems)
        if variant is None:
            return drills
        chosen = [drill for drill in drills if _is(drill.variant, variant)]
        if not chosen:
            known = tuple(dict.fromkeys(drill.variant for drill in drills))
            message = f"there is no variant {variant!r}{suggest(variant, known)}"
            where = self.document.positions.of_key(("spec", "variants"))
            line = where.line if where else None
            problem = Problem(shown(self.file), line, None, "spec.variants", message, known)
            raise ScenarioError([problem])
        return chosen


def _is(label: str, variant: str) -> bool:
    """Whether the label of a drill is that of a variant, or the very one asked for."""
    return variant in {label, _name(label)}


def _name(label: str) -> str:
    """Return the name of the variant that a drill's label begins with."""
    return label.split(",", 1)[0]


def load(path: Path | str) -> Loaded:
    """Load a scenario from its file or folder; raises ScenarioError with everything that is wrong with it."""
    file, folder = locate(Path(path))
    document = read(file)
    drills, problems = resolve_all(document, file, folder)
    if problems:
        raise ScenarioError(problems)
    return Loaded(drills[0].name, file, folder, document, tuple(drills))


def locate(path: Path) -> tuple[Path, Path]:
    """Return the scenario file and the folder that `path` means; raises ScenarioError when there is none."""
    if path.is_dir():
        file = path / SCENARIO_FILE
        if not file.exists():
            message = f"holds no {SCENARIO_FILE}"
            raise ScenarioError([Problem(shown(path), None, None, "", message)])
        return file, path
    return path, path.parent


def read(file: Path) -> Document:
    """Return the one document of a scenario file; raises ScenarioError."""
    name = shown(file)
    documents = read_yaml(read_text(file, name), name)
    if len(documents) != 1:
        message = "is empty" if not documents else "holds several documents; a scenario is one"
        line = documents[1].line if documents else None
        raise ScenarioError([Problem(name, line, None, "", message)])
    return documents[0]


def shown(path: Path) -> str:
    """Return a path as people want to read it: relative when it is below the current directory."""
    text = os.path.relpath(path) if path.is_absolute() else str(path)
    return str(path) if text.startswith("..") else text


def resolve_all(
    document: Document,
    file: Path,
    folder: Path,
    *,
    sets: Mapping[str, Any] | None = None,
    across: Mapping[str, Sequence[Any]] | None = None,
    adopted: bool = False,
    only: str | None = None,
    eligible: int | None = None,
) -> tuple[list[Resolved], list[Problem]]:
    """Return all drills of a scenario, or those of one variant, and every problem; with a problem the drills are incomplete."""
    name = shown(file)
    derived = _derived(document.data, eligible)
    combinations, problems = expand(document, name, sets, across, only and _name(only), derived)
    if only is not None:
        chosen = [combination for combination in combinations if _is(combination.label, only)]
        combinations = chosen or combinations
    digest = digest_of(file, folder, document, adopted=adopted)
    drills: list[Resolved] = []
    found: dict[Problem, list[Combination]] = {}
    for combination in combinations:
        drill, mine = _resolve_one(
            document, file, folder, combination, digest=digest, adopted=adopted
        )
        for problem in mine:
            found.setdefault(problem, []).append(combination)
        if drill is not None:
            follows = derived and derived.items() <= combination.values.items()
            nodes = dataclasses.replace(drill.nodes, count=eligible, min=None)
            drills.append(dataclasses.replace(drill, nodes=nodes) if follows else drill)
    problems += [_only_in(problem, mine, combinations) for problem, mine in found.items()]
    return drills, list(fold(problems))


def _derived(data: Any, eligible: int | None) -> dict[str, int]:
    """Return the values that follow from the number of nodes that a cluster has; none where the scenario does not ask for it."""
    spec = data.get("spec") if isinstance(data, dict) else None
    nodes = spec.get("nodes") if isinstance(spec, dict) else None
    each = nodes.get(PER_ELIGIBLE) if isinstance(nodes, dict) else None
    return {REPLICAS: each * eligible} if eligible and isinstance(each, int) else {}


def _only_in(problem: Problem, mine: list[Combination], every: list[Combination]) -> Problem:
    """Return a problem that says in which drills it is, unless it is in all of them."""
    if len(mine) == len(every):
        return problem
    labels = ", ".join(dict.fromkeys(combination.label for combination in mine))
    return dataclasses.replace(problem, message=f"{problem.message} [only in {labels}]")


def _resolve_one(
    document: Document,
    file: Path,
    folder: Path,
    combination: Combination,
    *,
    digest: str,
    adopted: bool,
) -> tuple[Resolved | None, list[Problem]]:
    name = shown(file)
    data, problems, broken = render_document(document, name, combination.values)
    scenario, shape = structure.check(_without_left_out(data), document.positions, name)
    paths = {dotted(path) for path in broken}
    problems += [problem for problem in shape if problem.field not in paths]
    problems += validate.check(data, document.positions, name, combination.values, broken)
    manifests, wrong = _manifests(data, document, file, folder, combination, adopted=adopted)
    problems += wrong or targets.check(data, manifests, document.positions, name)
    if scenario is None or problems:
        return None, problems
    return resolve(scenario, combination, digest, adopted=adopted), []


def _without_left_out(data: Any) -> Any:
    """Return a document in which steps and checks that this variant leaves out are empty: their values need not make sense here."""
    spec = data.get("spec") if isinstance(data, dict) else None
    if not isinstance(spec, dict):
        return data
    kept = {
        part: [_emptied(row, key) for row in spec[part]]
        for part, key in (("steps", "name"), ("checks", "id"))
        if isinstance(spec.get(part), list)
    }
    return {**data, "spec": {**spec, **kept}}


def _emptied(row: Any, key: str) -> Any:
    if not isinstance(row, dict) or row.get("when") is not False:
        return row
    return {key: row.get(key, "left-out"), "when": False}


def _manifests(
    data: object,
    document: Document,
    file: Path,
    folder: Path,
    combination: Combination,
    *,
    adopted: bool,
) -> tuple[list[Manifest], list[Problem]]:
    """Return the objects of all manifests, and what is wrong with those."""
    problems: list[Problem] = []
    present: list[str] = []
    for i, name in enumerate(manifests_of(data)):
        path = inside(folder, name)
        if path is not None and path.is_file():
            present.append(name)
            continue
        where = document.positions.of(("spec", "manifests", i))
        line, column = (where.line, where.column) if where else (None, None)
        why = "is no file beside the scenario" if path else "lies outside of the scenario's folder"
        at = f"spec.manifests[{i}]"
        problems.append(Problem(shown(file), line, column, at, f"{name!r} {why}"))
    prefix = f"{shown(folder)}/" if str(folder) != "." else ""
    context = DrillContext(outside=placeholders(data))
    found, more = collect(
        folder, present, combination.values, context, adopted=adopted, shown=prefix
    )
    return found, [*problems, *more]


def manifests_of(data: object) -> list[str]:
    """Return the names of the manifests of a document of any shape."""
    spec = data.get("spec") if isinstance(data, dict) else None
    names = spec.get("manifests") if isinstance(spec, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def digest_of(file: Path, folder: Path, document: Document, *, adopted: bool = False) -> str:
    """Return the first 12 hex digits of the SHA-256 over the scenario file, its manifests, and what those include."""
    names = set(manifests_of(document.data))
    if not adopted:
        for name in list(names):
            if name.endswith(TEMPLATE_SUFFIX):
                names |= included(folder, name)
    files = [("", file)] if file.is_file() else []
    for name in sorted(names):
        path = inside(folder, name)
        if path is not None and path.is_file():
            files.append((name, path))
    total = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()[:_DIGITS]
