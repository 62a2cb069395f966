"""A frozen canary: what is known of it, and who may end that (spec freeze-and-adopt 3).

A freeze leaves pods, routes and scalers as they are after a failed analysis, because going back may be worse than staying broken. It
ends by another revision, by putting the promoted template back, or by an order; an order names the revision that it is meant for, so
that one that comes late, or that Git brings back, does nothing to the next freeze.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.controller.core import conditions as cond
from harness.controller.core.analysis import metrics
from harness.controller.core.decision import JSON, Write
from harness.controller.core.moments import duration
from harness.controller.core.readiness import wanted

if TYPE_CHECKING:
    from harness.controller.core.targets.base import Pair

PHASE: Final = "Frozen"
ORDER: Final = "rollout-drill/frozen"
"""Annotation of a Canary: `promote HASH` or `rollback HASH`, with `status.lastAppliedSpec` as HASH."""
UNTOLD: Final = "FreezeUntold"
"""Reason of condition RoutesKept: nobody has been told of the freeze yet."""
KEPT: Final = "Frozen"
REPLACED: Final = "Replaced"
"""The same: another revision is under analysis where the traffic was."""
GIVEN_UP: Final = "RollbackHook"
"""The same, with status False: a rollback hook asked for the end, which must survive until it is carried out."""
DEFAULT_WINDOW: Final = 60.0
"""Seconds that a metric looks back when its entry does not say (spec canary-api 5)."""
_PERCENT: Final = 100

Wanted = Literal["", "promote", "rollback"]


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to happen to a frozen canary."""

    wanted: Wanted = ""
    problem: str = ""
    """Why the annotation is no order for what is frozen now; empty when it is one, or there is none."""


def order(canary: JSON) -> Order:
    """Return the order that a Canary carries."""
    text = (canary["metadata"].get("annotations") or {}).get(ORDER)
    if text is None:
        return Order()
    applied = str((canary.get("status") or {}).get("lastAppliedSpec") or "")
    verbs: tuple[Wanted, ...] = ("promote", "rollback")
    for verb in verbs:
        if text == f"{verb} {applied}":
            return Order(verb)
    return Order(
        problem=f"Annotation {ORDER} is {text!r}, which is nothing that can be done with the frozen revision: allowed are"
        f" 'promote {applied}' and 'rollback {applied}'."
    )


def forget_order(canary: JSON) -> tuple[Write, ...]:
    """Return the write that removes an order; nothing when there is none."""
    meta = canary["metadata"]
    if ORDER not in (meta.get("annotations") or {}):
        return ()
    body: JSON = {"metadata": {"annotations": {ORDER: None}}}
    return (Write("patch", "canaries", meta["name"], body, meta["resourceVersion"]),)


def window(canary: JSON) -> float:
    """Return how far the metrics of an analysis look back, in seconds: until then they still see the pods of before."""
    return max(
        (duration(entry.get("interval")) or DEFAULT_WINDOW for entry in metrics.entries(canary)),
        default=0.0,
    )


def keep(held: list[JSON], reason: str, text: str, now: float) -> list[JSON]:
    """Return conditions that say that the traffic stays with the target."""
    return cond.put(held, cond.ROUTES_KEPT, "True", reason, text, now=now, renew=True)


def gap(pair: Pair) -> str:
    """Return why the next revision cannot replace a frozen one without a moment in which no pod is ready; empty when it can.

    Where the frozen pods have traffic, that moment is an outage: the target rolls by its own strategy, nothing else stands in.
    """
    target = pair.target
    if target.get("kind") != "Deployment":
        return ""
    pods = wanted(target) or (wanted(pair.primary) if pair.primary else 0)
    strategy = target["spec"].get("strategy") or {}
    why = ""
    if strategy.get("type") == "Recreate":
        why = "strategy Recreate takes all pods away before it makes new ones"
    elif pods <= 1:
        why = "one replica has no second one that serves while it is replaced, or while its node is"
    elif _at_once(strategy, pods) >= pods:
        why = f"maxUnavailable lets all {pods} pods go at once"
    if not why:
        return ""
    return f"freezeOnFailure: the next revision of {pair.names.target} rolls under live traffic, but {why}."


def _at_once(strategy: JSON, pods: int) -> int:
    allowed = str((strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%"))
    if allowed.endswith("%"):
        return int(allowed[:-1]) * pods // _PERCENT
    return int(allowed)
