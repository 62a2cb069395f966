"""Lint: everything that is wrong with a scenario, and what is likely a mistake (warnings)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.checks.expression import Expression, Unknown
from harness.checks.vocabulary import sample_world
from harness.model.scenario import UpgradeStep, WaitStep
from harness.scenario.loaded import SCENARIO_FILE, locate, manifests_of, read, resolve_all, shown
from harness.scenario.locate import Path as At
from harness.scenario.locate import dotted
from harness.scenario.manifests import TEMPLATE_SUFFIX, render
from harness.scenario.problem import Problem, ScenarioError, fold
from harness.scenario.targets import rollouts
from harness.scenario.template import included, inside, is_template, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.resolved import Check, Resolved, Step
    from harness.scenario.reader import Document

_VALUE: Final = re.compile(r"""\bvalues(?:\.(\w+)|\[\s*["'](\w+)["']\s*\])""")
_ALL: Final = re.compile(r"\brollouts\s*\.\s*all\s*\(")
_SIZE: Final = re.compile(r"\bsize\s*\(\s*rollouts\s*\)|\brollouts\s*\.\s*size\s*\(")
_UPGRADE: Final = "kubernetes-upgrade"


def lint(path: Path | str) -> list[Problem]:
    """Return every problem of a scenario, errors first in each file; an empty list means that there is nothing to say.

    Warnings are only looked for when there are no errors.
    """
    try:
        file, folder = locate(Path(path))
        document = read(file)
    except ScenarioError as error:
        return list(error.problems)
    drills, problems = resolve_all(document, file, folder)
    if problems:
        return problems
    linter = _Linter(document, file, folder, drills)
    linter.run()
    return list(fold(linter.problems))


class _Linter:
    def __init__(
        self, document: Document, file: Path, folder: Path, drills: list[Resolved]
    ) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._file = file
        self._folder = folder
        self._drills = drills

    def run(self) -> None:
        self._name_of_folder()
        self._never_done()
        self._waits()
        self._unused_values()
        self._unused_manifests()
        self._examples()
        self._empty_talk()
        self._unasked()
        self._controls()

    def _warn(self, path: At, message: str) -> None:
        where = self._document.positions.of_key(path)
        line, column = (where.line, where.column) if where else (None, None)
        problem = Problem(
            shown(self._file), line, column, dotted(path), message, severity="warning"
        )
        self.problems.append(problem)

    def _name_of_folder(self) -> None:
        name, folder = self._drills[0].name, self._folder.resolve().name
        if self._file.name == SCENARIO_FILE and name != folder:
            self._warn(("metadata", "name"), f"differs from the name of its folder, {folder!r}")

    def _steps(self) -> Iterator[tuple[At, Step]]:
        """Yield the steps of all drills, each with its place in the file: a drill leaves out those that are not for it."""
        rows = self._document.data["spec"]["steps"]
        for drill in self._drills:
            rest = enumerate(rows)
            for step in drill.steps:
                i = next(i for i, row in rest if _may_be(row["name"], step.name))
                yield ("spec", "steps", i), step

    def _never_done(self) -> None:
        """A step or a check that no variant has was never looked at."""
        spec = self._document.data["spec"]
        done = {path for path, _ in self._steps()}
        done |= {path for drill in self._drills for path, _ in self._checks(drill)}
        for part in ("steps", "checks"):
            for i in range(len(spec[part])):
                if ("spec", part, i) not in done:
                    self._warn(("spec", part, i, "when"), "is true in no variant")

    def _checks(self, drill: Resolved) -> Iterator[tuple[At, Check]]:
        """Yield the checks of a drill, each with its place in the file: a drill leaves out those that are not for it."""
        rest = enumerate(self._document.data["spec"]["checks"])
        for check in drill.checks:
            i = next(i for i, row in rest if _may_be(row["id"], check.id))
            yield ("spec", "checks", i), check

    def _waits(self) -> None:
        """A wait in which nothing must happen, as a check says, is meant; any other one waits for something."""
        meant = {name for drill in self._drills for name in _quiet(drill)}
        for path, step in self._steps():
            if isinstance(step.action, WaitStep) and step.name not in meant:
                message = (
                    "makes every run as slow as the slowest; until waits only as long as needed"
                )
                self._warn((*path, "wait"), message)

    def _unused_values(self) -> None:
        texts = list(_strings(self._document.data))
        files = manifests_of(self._document.data)
        for name in files:
            for other in (name, *included(self._folder, name)):
                path = inside(self._folder, other)
                if path is not None and path.is_file():
                    texts.append(path.read_text(encoding="utf-8"))
        used: set[str] = set()
        for text in texts:
            if is_template(text):
                used |= names(text)
            used |= {first or second for first, second in _VALUE.findall(text)}
        for name in self._drills[0].values:
            if name not in used:
                self._warn(("spec", "values", name), "is not used anywhere")

    def _unused_manifests(self) -> None:
        applied = {
            name for _, step in self._steps() for name in getattr(step.action, "manifests", ())
        }
        for i, name in enumerate(self._drills[0].manifests):
            if name not in applied:
                self._warn(("spec", "manifests", i), f"{name!r} is applied by no step")
            path = inside(self._folder, name)
            plain = not name.endswith(TEMPLATE_SUFFIX) and path is not None
            if plain and path is not None and "{{" in path.read_text(encoding="utf-8"):
                message = (
                    f"{name!r} looks like a template, but only names that end in .j2 are rendered"
                )
                self._warn(("spec", "manifests", i), message)

    def _expressions(self) -> Iterator[tuple[At, str, Resolved]]:
        """Yield every expression with its place."""
        steps = iter(self._steps())
        for drill in self._drills:
            for _ in drill.steps:
                path, step = next(steps)
                if step.until is not None:
                    yield (*path, "until"), step.until, drill
            for path, check in self._checks(drill):
                yield (*path, check.kind), check.expression, drill

    def _examples(self) -> None:
        """Evaluate every expression in a world made of examples, to find what types alone do not show."""
        worlds = {drill.id: self._world(drill) for drill in self._drills}
        for path, text, drill in self._expressions():
            result = Expression.compile(text).evaluate(worlds[drill.id])
            if isinstance(result, Unknown):
                self._warn(path, f"cannot be decided in an example world: {result.reason}")

    def _world(self, drill: Resolved) -> dict[str, Any]:
        """Return an example of a world, with the labels that the scenario's own rollouts have."""
        world = sample_world(dict(drill.values), [step.name for step in drill.steps])
        sample = world["rollouts"][0]
        found = rollouts(manifest.object for manifest in render(drill, self._folder))
        labels = [obj["metadata"].get("labels") or {} for obj in found]
        world["rollouts"] = [{**sample, "labels": row} for row in labels] or [sample]
        return world

    def _empty_talk(self) -> None:
        """Before the first one is seen, anything is true of all rollouts, and a step would be over before it began."""
        for path, text, _ in self._expressions():
            if path[-1] == "until" and _ALL.search(text) and not _SIZE.search(text):
                message = "is true as long as there is no rollout; say how many there are too, e.g. size(rollouts) == 3 && …"
                self._warn(path, message)

    def _unasked(self) -> None:
        """A scenario that upgrades Kubernetes needs a cluster that can."""
        upgrades = [
            path
            for path, step in self._steps()
            if isinstance(step.action, UpgradeStep) and step.action.kubernetes is not None
        ]
        if upgrades and any(_UPGRADE not in drill.requires for drill in self._drills):
            self._warn((*upgrades[0], "upgrade"), f"not every cluster can; require {_UPGRADE!r}")

    def _controls(self) -> None:
        """A scenario whose checks are never expected to fail has not shown that they can."""
        if not any(drill.control for drill in self._drills):
            message = "no variant expects a check to fail, so nothing shows that the checks can"
            self._warn(("spec", "variants"), message)


def _quiet(drill: Resolved) -> Iterator[str]:
    """Yield the steps within the windows of checks that say what must not happen until some step."""
    order = [step.name for step in drill.steps]
    for check in drill.checks:
        if check.kind == "eventually" or check.until not in order:
            continue
        first = order.index(check.from_) + 1 if check.from_ in order else 0
        yield from order[first : order.index(check.until) + 1]


def _may_be(written: Any, name: str) -> bool:
    """Whether a step's name as written, which may be a template, can have become `name`."""
    return written == name or (isinstance(written, str) and is_template(written))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
