"""The rules about nodes: what is said of one is said of one that there is, and only where nodes may be changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from harness.model.nodes import NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.scenario.locate import Path
    from harness.scenario.validate import Rules

FEATURE: Final = "node-changes"
REPLICAS: Final = "replicas"
PER_ELIGIBLE: Final = "replicasPerEligible"
_MOST: Final = 100
"""Nobody has more, and a number that is a slip of the pen must not fill the memory."""


def _one_number(rules: Rules) -> None:
    nodes = _mapping(rules.spec.get("nodes"))
    if nodes.get("count") is not None and nodes.get("min") is not None:
        message = "give count or min, not both"
        rules.report(("spec", "nodes"), message, ("count", "min"), key=True)


def _replicas_are_a_value(rules: Rules) -> None:
    nodes, values = _mapping(rules.spec.get("nodes")), _mapping(rules.spec.get("values"))
    replicas = values.get(REPLICAS)
    whole = isinstance(replicas, int) and not isinstance(replicas, bool)
    if nodes.get(PER_ELIGIBLE) is not None and not whole:
        message = f"needs a whole number {REPLICAS!r} in spec.values, which it replaces on a cluster that is not ours"
        rules.report(("spec", "nodes", PER_ELIGIBLE), message, key=True)


def _nodes_exist(rules: Rules) -> None:
    """Follow the steps: who joins is not there before, and everybody else is."""
    nodes = _mapping(rules.spec.get("nodes"))
    there = _at_first(nodes)
    if there is None:
        return
    for field in ("labels", "taints"):
        for name in filter(re.compile(NODE).match, _mapping(nodes.get(field))):
            rules.refer(("spec", "nodes", field, name), name, tuple(there), "node of this scenario")
    for path, row in rules.steps:
        step = _mapping(row.get("node"))
        who, becomes = step.get("name"), step.get("becomes")
        at: Path = (*path, "node", "name")
        if not isinstance(who, str):
            continue
        if becomes != "joined":
            rules.refer(at, who, tuple(there), "node that is there at this step")
        elif who in there:
            rules.report(at, f"{who!r} is there already, so that it cannot join")
        else:
            there.append(who)
        if becomes == "gone" and who in there:
            there.remove(who)


def _feature_is_required(rules: Rules) -> None:
    required = rules.spec.get("requires")
    if isinstance(required, list) and FEATURE in required:
        return
    nodes = _mapping(rules.spec.get("nodes"))
    paths: list[Path] = [("spec", "nodes", key) for key in ("labels", "taints") if nodes.get(key)]
    paths += [(*path, "node") for path, row in rules.steps if row.get("node") is not None]
    for path in paths[:1]:
        message = f"needs {FEATURE!r} in spec.requires, for the nodes of a cluster that is not ours are left as they are"
        rules.report(path, message, key=True)


def _at_first(nodes: dict[str, Any]) -> list[str] | None:
    """Return the names of the nodes at the beginning; None while their number is no number."""
    number = nodes.get("count") or nodes.get("min") or 1
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return [f"node-{one}" for one in range(1, min(number, _MOST) + 1)]


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


RULES: Final[tuple[Callable[[Rules], None], ...]] = (
    _one_number,
    _replicas_are_a_value,
    _nodes_exist,
    _feature_is_required,
)
"""Every rule; each looks at the whole document and reports all that breaks it."""
