"""Lint: everything that is wrong with a scenario, and what is likely a mistake (warnings)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.checks.expression import Expression, Unknown
from harness.checks.vocabulary import sample_world
from harness.model.scenario import WaitStep
from harness.scenario.loaded import SCENARIO_FILE, locate, manifests_of, read, resolve_all, shown
from harness.scenario.locate import Path as At
from harness.scenario.locate import dotted
from harness.scenario.manifests import TEMPLATE_SUFFIX
from harness.scenario.problem import Problem, ScenarioError, fold
from harness.scenario.template import included, inside, is_template, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.resolved import Resolved
    from harness.scenario.reader import Document

_VALUE: Final = re.compile(r"""\bvalues(?:\.(\w+)|\[\s*["'](\w+)["']\s*\])""")


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
        self._waits()
        self._unused_values()
        self._unused_manifests()
        self._examples()
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

    def _waits(self) -> None:
        for i, step in enumerate(self._drills[0].steps):
            if isinstance(step.action, WaitStep):
                message = (
                    "makes every run as slow as the slowest; until waits only as long as needed"
                )
                self._warn(("spec", "steps", i, "wait"), message)

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
        steps = self._drills[0].steps
        applied = {name for step in steps for name in getattr(step.action, "manifests", ())}
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

    def _examples(self) -> None:
        """Evaluate every expression in a world made of examples, to find what types alone do not show."""
        for drill in self._drills:
            world = sample_world(dict(drill.values))
            places: list[tuple[At, str]] = [
                (("spec", "steps", i, "until"), step.until)
                for i, step in enumerate(drill.steps)
                if step.until is not None
            ]
            places += [
                (("spec", "checks", i, check.kind), check.expression)
                for i, check in enumerate(drill.checks)
            ]
            for path, text in places:
                result = Expression.compile(text).evaluate(world)
                if isinstance(result, Unknown):
                    self._warn(path, f"cannot be decided in an example world: {result.reason}")

    def _controls(self) -> None:
        """A scenario whose checks are never expected to fail has not shown that they can."""
        if not any(drill.control for drill in self._drills):
            message = "no variant expects a check to fail, so nothing shows that the checks can"
            self._warn(("spec", "variants"), message)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
