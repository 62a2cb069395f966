"""A check of a scenario, compiled: when is it violated, which part of the world does it look at?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.checks import outside, routes
from harness.checks.expression import Expression, ExpressionError, Unknown
from harness.checks.traffic import WORDS
from harness.checks.vocabulary import CLOCKED, VARIABLES
from harness.model.outcome import Outcome
from harness.model.traffic import TRAFFIC

if TYPE_CHECKING:
    from harness.checks.state import World
    from harness.model.resolved import Check

LISTS: Final = (
    *("rollouts", "pods", "workloads", "nodes", "services"),
    *("autoscalers", "configs", "calls", "gates", "answers"),
)
"""Variables whose elements can be told apart as witnesses."""
SCALARS: Final = (
    *("rollout", "canary", "primary", "target", "apex", "route", "subject"),
    *("analyses", "queries", "traffic"),
    "values",
)
"""Variables whose single fields are shown as evidence."""

_POD_KINDS: Final = frozenset({"Pod", "ReplicaSet"})
_WORKLOAD_KINDS: Final = frozenset({"Pod", "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet"})
_KINDS: Final[dict[str, frozenset[str]]] = {
    "pods": _POD_KINDS,
    "primary": _WORKLOAD_KINDS,
    "target": _WORKLOAD_KINDS,
    "workloads": _WORKLOAD_KINDS,
    "services": frozenset({"Service"}),
    "nodes": frozenset({"Node"}),
    "apex": _POD_KINDS | {"Service"},
    "at": _WORKLOAD_KINDS | {"Service", *routes.KINDS},
    "route": frozenset(routes.KINDS),
    "autoscalers": frozenset(outside.AUTOSCALERS),
    "configs": frozenset(outside.CONFIGS),
    "traffic": frozenset({TRAFFIC}),
    "answers": _POD_KINDS | {TRAFFIC},
}
_OF_PODS: Final = frozenset({"pods", "primary", "target", "workloads", "apex"})
_OF_WORKLOADS: Final = frozenset(
    f"{role}_{what}" for role in ("target", "primary") for what in ("hash", "revision", "rolls")
)
"""Fields of an entry of `rollouts` that come from its workloads."""
_OF_WITNESS: Final = frozenset({"name", "phase"})
"""Fields that a rollout among the witnesses is described by."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A compiled check."""

    check: Check
    expression: Expression | None
    """None if it is not CEL; then `problem` says why."""
    uses: dict[str, frozenset[str] | None]
    """Variables that it looks at, with their fields; None: the variable as a whole."""
    kinds: frozenset[str]
    """Kinds of objects whose watch matters to it."""
    clocked: bool = False
    """Whether its value may change with the clock alone."""
    problem: str = ""

    @classmethod
    def of(cls, check: Check, rollout_kind: str) -> Statement:
        """Compile a check. A timeline may carry an expression that this version cannot read; that is no reason to raise."""
        try:
            expression = Expression.compile(check.expression)
        except ExpressionError as error:
            return cls(check, None, {}, frozenset(), problem=str(error))
        uses = _uses(expression)
        kinds: set[str] = set()
        for name in uses:
            kinds |= _KINDS.get(name, frozenset())
        of_rollouts = {"rollout", "canary", "rollouts", "analyses", "services", "route", "at"}
        if (of_rollouts | _OF_PODS) & uses.keys():
            kinds.add(rollout_kind)
        if "rollouts" in uses and not _OF_WORKLOADS.isdisjoint(uses["rollouts"] or _OF_WORKLOADS):
            kinds |= _WORKLOAD_KINDS - _POD_KINDS | {"ReplicaSet"}
        return cls(check, expression, uses, frozenset(kinds), _clocked(uses))

    @property
    def text(self) -> str:
        """The statement as the report quotes it."""
        otherwise = "" if self.check.otherwise is Outcome.FAIL else ", otherwise unknown"
        return f"{self.check.kind}: {self.check.expression}{otherwise}"

    @property
    def needs_pods(self) -> bool:
        """Whether it says something about pods, which is empty talk where there never was one."""
        return bool(_OF_PODS & self.uses.keys())

    @property
    def needs_traffic(self) -> bool:
        """Whether it says something about requests, which is empty talk where none was sent."""
        return bool(WORDS & self.uses.keys())

    @property
    def described(self) -> dict[str, frozenset[str] | None]:
        """What it looks at, and what its witnesses are described by."""
        found: dict[str, frozenset[str] | None] = {**self.uses, **dict.fromkeys(self.lists)}
        rollouts = self.uses.get("rollouts")
        if rollouts is not None:
            found["rollouts"] = rollouts | _OF_WITNESS
        if {"primary", "target"} & self.uses.keys():
            found["pods"] = None
        traffic = self.uses.get("traffic")
        if traffic is not None:
            found["traffic"] = traffic | {"message"}
        return found

    @property
    def lists(self) -> tuple[str, ...]:
        """The list variables that it looks at."""
        return tuple(name for name in LISTS if name in self.uses)

    def evaluate(self, world: World) -> bool | Unknown:
        """Return what the expression says in a world."""
        if self.expression is None:
            return Unknown(self.problem)
        return self.expression.evaluate(world)

    def bad(self, world: World) -> bool | Unknown:
        """Return whether the world goes against the statement: what `never` forbids, or what `always` demands and is not so."""
        value = self.evaluate(world)
        if isinstance(value, Unknown) or self.check.kind == "never":
            return value
        return not value

    def scalars(self, world: World) -> list[str]:
        """Return the single values that the expression looks at, e.g. `primary.ready = 0`."""
        shown: list[str] = []
        for name in SCALARS:
            if name not in self.uses:
                continue
            value = world.get(name, {})
            fields = sorted(value) if self.uses[name] is None else sorted(self.uses[name] or ())
            shown += [
                f"{name}.{key} = {_short(value[key])}"
                for key in fields
                if key in value and _plain(value[key])
            ]
        return shown


def _clocked(uses: dict[str, frozenset[str] | None]) -> bool:
    if CLOCKED & uses.keys():
        return True
    fields = uses.get("pods", frozenset())
    return fields is None or "age" in fields


def _uses(expression: Expression) -> dict[str, frozenset[str] | None]:
    if expression.read:
        return expression.uses
    # The small parser reads less than CEL is; any mention of a variable then counts as a use of all of it.
    return {name: None for name in VARIABLES if re.search(rf"\b{name}\b", expression.text)}


def _plain(value: Any) -> bool:
    """Whether a value can be told in a few words: a single one, or the shares of a route."""
    if isinstance(value, dict):
        return bool(value) and all(isinstance(item, int) for item in value.values())
    return not isinstance(value, list)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
