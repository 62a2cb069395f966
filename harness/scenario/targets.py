"""Which rollouts of a scenario a step's `where` chooses, and what is wrong with one that chooses none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model.actions import EVERY
from harness.scenario.locate import Path, dotted
from harness.scenario.manifests import ROLLOUT_KINDS
from harness.scenario.problem import Problem, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from harness.scenario.locate import Positions
    from harness.scenario.manifests import Manifest


def rollouts(objects: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rollout objects among manifests, each once: a later manifest may hold a later state of the same."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for obj in objects:
        if obj.get("kind") in ROLLOUT_KINDS:
            found.setdefault((str(obj["kind"]), str(obj["metadata"]["name"])), obj)
    return list(found.values())


def chosen(
    objects: Iterable[Mapping[str, Any]], where: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return the rollout objects that have all labels of `where`; an empty one chooses all."""
    return [
        obj
        for obj in rollouts(objects)
        if all(_labels(obj).get(key) == value for key, value in where.items())
    ]


def check(
    data: object, manifests: Iterable[Manifest], positions: Positions, file: str
) -> Iterator[Problem]:
    """Yield what is wrong with the targets of a document's steps: those that choose nothing would do nothing, silently."""
    found = rollouts(manifest.object for manifest in manifests)
    for path, action in _actions(data):
        if not found:
            message = "there is no rollout object in the manifests"
            yield _problem(positions, file, (*path, "target"), message, ())
            continue
        where = action.get("where")
        for key, value in _where(where).items():
            at = (*path, "where", key)
            values = sorted({_labels(obj)[key] for obj in found if key in _labels(obj)})
            if not values:
                known = tuple(sorted({name for obj in found for name in _labels(obj)}))
                message = f"no rollout object has the label {key!r}{suggest(key, known)}"
                yield _problem(positions, file, at, message, known)
            elif isinstance(value, str) and value not in values:
                message = f"no rollout object has {value!r} as {key!r}{suggest(value, values)}"
                yield _problem(positions, file, at, message, tuple(values))
        labels = {key: str(value) for key, value in _where(where).items()}
        if len(labels) > 1 and not chosen(found, labels):
            message = "no rollout object has all of these labels"
            yield _problem(positions, file, (*path, "where"), message, ())


def _actions(data: object) -> Iterator[tuple[Path, dict[str, Any]]]:
    spec = data.get("spec") if isinstance(data, dict) else None
    steps = spec.get("steps") if isinstance(spec, dict) else None
    for i, step in enumerate(steps if isinstance(steps, list) else []):
        if not isinstance(step, dict) or step.get("when") is False:
            continue
        for verb in ("patch", "delete", "scale"):
            action = step.get(verb)
            if isinstance(action, dict) and action.get("target") in EVERY:
                yield ("spec", "steps", i, verb), action


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    labels = obj["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}


def _where(where: object) -> Mapping[str, Any]:
    return where if isinstance(where, dict) else {}


def _problem(
    positions: Positions, file: str, path: Path, message: str, allowed: tuple[str, ...]
) -> Problem:
    where = positions.of(path)
    line, column = (where.line, where.column) if where else (None, None)
    return Problem(file, line, column, dotted(path), message, allowed or None)
