"""Who is it? Finds the objects that alone make a statement untrue, and follows them for as long as they do.

The lists of the world are shrunk to single elements and the statement is evaluated again: an element that still violates it
on its own is a witness. Where no element does alone (two conditions at once, a count), the lists are thinned out as far as the
violation allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks.pods import pod_state
from harness.model.clock import moment, relative
from harness.model.report import Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.checks.state import World
    from harness.checks.statement import Statement

_NOUNS: Final = {
    "pods": "pod",
    "nodes": "node",
    "services": "service",
    "rollouts": "rollout",
    "autoscalers": "autoscaler",
    "configs": "config",
    "calls": "call",
    "gates": "gate",
}
ROLLOUT: Final = "rollout "
"""Beginning of the name of a witness that is a rollout."""
MAX_WITNESSES: Final = 20
"""So many are followed for one check; the evidence says when there are more."""
_MAX_THINNED: Final = 200
"""Thinning out evaluates once per element; a larger world is not worth it."""

_TOLD: Final = frozenset({"name", "phase", "labels", "message"})
"""Fields of a rollout that are told anyway, or say nothing by themselves."""
_FEW: Final = 3
"""So many are named where only their number matters."""

Key = tuple[str, str]
"""List variable and name of an element."""


@dataclass(slots=True)
class Finder:
    """Finds who violates a statement, moment after moment; what did not change is not evaluated again."""

    statement: Statement
    _alone: dict[Key, tuple[dict[str, Any], World, bool]] = field(default_factory=dict)
    """What is known of elements: what they and the single values were like, and whether they violate it on their own."""

    def find(self, world: World) -> list[Key]:
        """Return the elements to which a violation comes down; nothing if it does not depend on the lists."""
        statement = self.statement
        lists = [name for name in statement.lists if name in world]
        elements = [(name, item) for name in lists for item in world[name]]
        empty = {**world, **{name: [] for name in lists}}
        if not elements or _violates(statement, empty):
            return []
        rest = {name: world.get(name) for name in statement.uses if name not in lists}
        found = [
            _key(name, item)
            for name, item in elements
            if self._violates_alone(name, item, empty, rest)
        ]
        if not found and len(elements) <= _MAX_THINNED:
            found = [
                _key(name, item)
                for name, item in elements
                if _violates(statement, {**world, name: [item]})
            ]
        return found or _thinned(statement, world, elements)

    def _violates_alone(self, name: str, item: dict[str, Any], empty: World, rest: World) -> bool:
        key = _key(name, item)
        fields = self.statement.uses[name]
        seen = item if fields is None else {field: item.get(field) for field in fields}
        if fields is None and not self.statement.clocked:
            seen = {**item, "age": None}
        known = self._alone.get(key)
        if known is None or known[0] != seen or known[1] != rest:
            known = seen, rest, _violates(self.statement, {**empty, name: [item]})
            self._alone[key] = known
        return known[2]


def _thinned(
    statement: Statement, world: World, elements: list[tuple[str, dict[str, Any]]]
) -> list[Key]:
    if len(elements) > _MAX_THINNED:
        return []
    kept = list(elements)
    for candidate in elements:
        fewer = [entry for entry in kept if entry is not candidate]
        thin = {**world, **{name: [] for name in statement.lists}}
        for name, item in fewer:
            thin[name] = [*thin[name], item]
        if _violates(statement, thin):
            kept = fewer
    return [_key(name, item) for name, item in kept]


def _violates(statement: Statement, world: World) -> bool:
    return statement.bad(world) is True


def _key(name: str, item: dict[str, Any]) -> Key:
    return name, str(item.get("name", ""))


@dataclass(slots=True)
class _Followed:
    object: str
    state: str
    since: float
    message: str
    until: float | None = None
    placed: bool = False
    """Of a pod: whether it had a node when its message was said last. Before that the scheduler speaks."""


@dataclass(slots=True)
class Follower:
    """The witnesses of one violation, from when it began until it ended or observation did."""

    statement: Statement
    change_at: float | None = None
    _finder: Finder = field(init=False)
    _followed: dict[Key, _Followed] = field(default_factory=dict)
    extra: set[Key] = field(default_factory=set)
    """Witnesses beyond the limit."""
    total: int = 0
    """Rollouts that there were."""

    def __post_init__(self) -> None:
        self._finder = Finder(self.statement)

    def look(self, t: float, world: World) -> None:
        """Note who violates the statement now."""
        self.total = max(self.total, len(world.get("rollouts", ())))
        keys = self._finder.find(world)
        if keys:
            named = {
                _key(name, item): item
                for name in self.statement.lists
                for item in world.get(name, ())
            }
            now = {key: named[key] for key in keys}
        else:
            text = ", ".join(self.statement.scalars(world)) or self.statement.check.expression
            now = {("", "values"): {"name": text, "message": _traffic_of(self.statement, world)}}
        for key, item in self._followed.items():
            if key not in now and item.until is None:
                item.until = t
        for key, element in now.items():
            self._follow(t, key, element, world)

    def _follow(self, t: float, key: Key, element: dict[str, Any], world: World) -> None:
        known = self._followed.get(key)
        if known is None:
            if len(self._followed) >= MAX_WITNESSES:
                self.extra.add(key)
                return
            self._followed[key] = _Followed(*self._describe(key, element, world, t))
            return
        # It is the same violation when it comes back; what counts is when it began and what was said last.
        known.until = None
        if key[0] != "rollouts":
            message = str(element.get("message", ""))
            if message and key[0] == "pods":
                known.placed = element["scheduled"]
            known.message = message or known.message

    def _describe(
        self, key: Key, element: dict[str, Any], world: World, t: float
    ) -> tuple[str, str, float, str]:
        variable, name = key
        message = str(element.get("message", ""))
        if variable == "pods":
            state = element["phase"] if not element["scheduled"] else pod_state(element)
            return f"pod {name}", "gated" if element["gated"] else state, t, message
        if variable == "rollouts":
            return f"{ROLLOUT}{name}", self._rollout(element), t, ""
        if variable == "workloads":
            state = "cannot create pods" if element["createFailed"] else _counts(element)
            return f"{element['kind']} {name}", state, t, message
        if variable == "calls":
            return f"call {name}", f"answered {element['status'] or 'nothing'}", t, message
        if variable == "gates":
            told = f"{element['answer']}, called {element['calls']} times"
            return f"gate {name}", told, t, ""
        if variable == "answers":
            told = f"{element['name']} answered {element['requests']} requests"
            return told, "", t, ""
        if variable:
            return f"{_NOUNS[variable]} {name}", "", t, message
        return element["name"], "", t, message or _pods_of(self.statement, world)

    def _rollout(self, entry: dict[str, Any]) -> str:
        """Return what a rollout was like: its phase, and the values that the statement looks at."""
        used = sorted((self.statement.uses["rollouts"] or frozenset()) - _TOLD)
        told = [f"{key} {entry[key]}" for key in used if key in entry]
        return ", ".join([entry["phase"] or "without a phase", *told])

    def end(self, t: float | None) -> None:
        """End the violation: at `t`, or with the observation (None)."""
        for item in self._followed.values():
            if item.until is None:
                item.until = t

    def witnesses(self) -> Iterator[Witness]:
        """Yield who was seen, in the order in which they were seen first."""
        for key, item in self._followed.items():
            since_change = None
            if self.change_at is not None and item.since >= self.change_at:
                since_change = item.since - self.change_at
            yield Witness(
                item.object,
                item.state,
                item.since,
                since_change,
                item.until,
                item.message,
                self._text(key, item),
            )

    def _text(self, key: Key, item: _Followed) -> str:
        told = relative(item.since, self.change_at)
        subject = f"{item.object} {item.state}".strip()
        text = f"{subject} since {moment(item.since)}"
        if told:
            text += f" ({told})"
        text += ", still so at the end" if item.until is None else f", until {moment(item.until)}"
        if item.message:
            speaker = {"pods": "scheduler", "workloads": "controller"}.get(key[0], "")
            if key[0] == "pods" and (item.placed or item.state not in {"Pending", "gated"}):
                speaker = "reason"
            text += f"; {speaker}: {item.message}" if speaker else f"; {item.message}"
        return text


def _counts(workload: dict[str, Any]) -> str:
    return f"with {workload['ready']} of {workload.get('desired', '?')} pods ready"


def _traffic_of(statement: Statement, world: World) -> str:
    """Return what is to be said of the requests that a statement looks at."""
    told: str = world.get("traffic", {}).get("message", "") if "traffic" in statement.uses else ""
    return told


def _pods_of(statement: Statement, world: World) -> str:
    """Return the pods of the workloads that a statement about single values looks at."""
    roles = [role for role in ("primary", "target") if role in statement.uses]
    pods: Iterable[dict[str, Any]] = world.get("pods", ())
    shown = [f"{pod['name']} ({pod_state(pod)})" for pod in pods if pod["role"] in roles]
    if not roles:
        return ""
    return f"its pods: {', '.join(shown)}" if shown else "it has no pods"


def alone(statement: Statement, world: World) -> list[str]:
    """Return the names of the rollouts for which a statement is not true, in order, if it is one about each of them."""
    entries = world.get("rollouts", ())
    if not entries or statement.evaluate({**world, "rollouts": []}) is not True:
        return []
    return sorted(
        str(entry["name"])
        for entry in entries
        if statement.evaluate({**world, "rollouts": [entry]}) is False
    )


def few(names: Sequence[str], total: int) -> str:
    """Return how many of all rollouts these are, and the names of the first ones."""
    shown = ", ".join(names[:_FEW])
    more = len(names) - _FEW
    return f"{len(names)} of {total} rollouts: {shown}" + (f" and {more} more" if more > 0 else "")
