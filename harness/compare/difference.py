"""Two normal forms → what they do not have in common.

A path is `section.name…`: `phases.ROLLOUT.PHASE` for a phase that only one of them went through, `phases.ROLLOUT.PHASE.iterations` (or
`weights`, `failed_checks`) for what was counted in it, `placements.ROLLOUT.PHASE.ROLE`, `checks.ID`, `cluster.FIELD`,
`recorded.TITLE.STEP…`, `objects.KIND/NAME…`. The second visit of a phase is `PHASE#2`.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from harness.compare.align import align
from harness.compare.model import Difference, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.compare.model import Visit
    from harness.compare.normal import Normal

PASSED: Final = "passed through"
PRESENT: Final = "there"
_COUNTED: Final = ("weights", "iterations", "failed_checks")
_KEYS: Final = ("name", "type", "key")
"""Fields that tell the entries of a list apart, so that one more entry is one difference."""


class Differ:
    """Compares two normal forms, and counts what it compared."""

    def __init__(self, reference: Normal, other: Normal) -> None:
        self.differences: list[Difference] = []
        self.rows: list[Row] = []
        self.compared: Counter[str] = Counter()
        for rollout in sorted({*reference.visits, *other.visits}):
            left, right = reference.visits.get(rollout, ()), other.visits.get(rollout, ())
            self._rollout(rollout, left, right)
        for section in reference.facts:
            self._section(section, reference.facts[section], other.facts[section])

    def _rollout(self, rollout: str, left: tuple[Visit, ...], right: tuple[Visit, ...]) -> None:
        visited: Counter[str] = Counter()
        for i, j in align([v.phase for v in left], [v.phase for v in right]):
            mine = None if i is None else left[i]
            theirs = None if j is None else right[j]
            phase = (mine or theirs).phase  # type: ignore[union-attr] # one of them is there
            visited[phase] += 1
            title = phase if visited[phase] == 1 else f"{phase}#{visited[phase]}"
            self.rows.append(Row(rollout, title, mine, theirs))
            self._visit(rollout, title, mine, theirs)

    def _visit(self, rollout: str, title: str, mine: Visit | None, theirs: Visit | None) -> None:
        self.compared["phases"] += 1
        if mine is None or theirs is None:
            told = PASSED if mine else None, PASSED if theirs else None
            self.differences.append(Difference(f"phases.{rollout}.{title}", *told))
            return
        for name in _COUNTED:
            path = f"phases.{rollout}.{title}.{name}"
            self._texts("counts", path, _row(getattr(mine, name)), _row(getattr(theirs, name)))
        for role in sorted(mine.placements.keys() & theirs.placements.keys()):
            path = f"placements.{rollout}.{title}.{role}"
            self._texts("placements", path, mine.placements[role], theirs.placements[role])

    def _section(self, section: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
        for name in sorted({*left, *right}):
            path = f"{section}.{name}"
            self.compared[section] += 1
            if name in left and name in right:
                found = differing(path, left[name], right[name])
                self.differences += found
                continue
            told = PRESENT if name in left else None, PRESENT if name in right else None
            self.differences.append(Difference(path, *told))

    def _texts(self, what: str, path: str, left: str, right: str) -> None:
        self.compared[what] += 1
        if left != right:
            self.differences.append(Difference(path, left, right))


def _row(numbers: tuple[int, ...]) -> str:
    return ", ".join(str(number) for number in numbers)


def differing(path: str, left: Any, right: Any) -> Iterator[Difference]:
    """Yield the differences of two JSON values, each at the deepest path that still says it."""
    left, right = _keyed(left, right), _keyed(right, left)
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            below = join(path, key)
            if key in left and key in right:
                yield from differing(below, left[key], right[key])
            else:
                yield Difference(below, _text(left, key), _text(right, key))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (mine, theirs) in enumerate(zip(left, right, strict=True)):
            yield from differing(f"{path}[{index}]", mine, theirs)
    elif compact(left) != compact(right):
        yield Difference(path, compact(left), compact(right))


def _keyed(value: Any, counterpart: Any) -> Any:
    """Return a list whose entries have names as a mapping, if the list that it is compared with can be one, too."""
    for key in _KEYS:
        if _can_be_keyed(value, key) and _can_be_keyed(counterpart, key):
            return {f"[{entry[key]}]": entry for entry in value}
    return value


def _can_be_keyed(value: Any, key: str) -> bool:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return False
    names = [entry.get(key) for entry in value]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def join(path: str, key: str) -> str:
    """Return the path of a key below a path: `a.b`, `a["x.y/z"]`, `a[web]` for an entry of a list."""
    if key.startswith("["):
        return f"{path}{key}"
    plain = key.replace("-", "_").isidentifier()
    return f"{path}.{key}" if plain else f'{path}["{key}"]'


def _text(mapping: dict[str, Any], key: str) -> str | None:
    return compact(mapping[key]) if key in mapping else None


def compact(value: Any) -> str:
    """Return a JSON value as one line; texts as they are."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
