"""What must hold before the first step: the features, and the number of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.clusters.base import same_version
from harness.model.features import FEATURES
from harness.model.timeline import Missing, Precondition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.model.nodes import Nodes
    from harness.run.parts import Parts


def lacking_features(parts: Parts) -> list[Missing]:
    """Return what the scenario requires and a subject or the cluster has not, one observation for each of them.

    Every subject is asked, the later ones too: a drill is not begun whose second half cannot be run.
    """
    cluster = parts.place.cluster.facts
    subjects = {one.facts.name: one.facts for one in parts.subjects.every}
    sides = [
        *(("subject", one.capabilities, f"subject {name}") for name, one in subjects.items()),
        ("cluster", cluster.capabilities, f"cluster {cluster.name}"),
    ]
    missing = []
    for side, capabilities, who in sides:
        needed = [name for name in parts.plan.resolved.requires if side in FEATURES[name].of]
        lacking = tuple(name for name in needed if name not in capabilities)
        if lacking:
            missing.append(Missing(parts.live.now(), lacking, who))
    return missing


def eligible_nodes(parts: Parts) -> Precondition:
    """Return whether as many nodes can take pods as the scenario asks for."""
    wanted = parts.plan.resolved.nodes
    nodes = parts.live.state.world().get("nodes", [])
    # Without the right to list nodes, what the cluster said when it was opened must do.
    holds, text = enough(nodes, wanted, otherwise=len(parts.place.cluster.facts.nodes))
    return Precondition(parts.live.now(), holds, text)


def enough(
    nodes: Sequence[Mapping[str, Any]], wanted: Nodes, *, otherwise: int
) -> tuple[bool, str]:
    """Return whether these nodes, as checks see them, are as many as the scenario asks for, and a sentence about it.

    Those that it keeps pods away from itself, by a taint, count. `otherwise`: how many there are when none could be seen.
    """
    seen = [
        node
        for node in nodes
        if node["ready"] and (node["schedulable"] or node["name"] in wanted.kept_free)
    ]
    eligible = len(seen) or otherwise
    holds, needed = _compare(eligible, wanted)
    tainted = "; ".join(
        f"{name} has the taint {', '.join(wanted.taints[name])}" for name in wanted.kept_free
    )
    return holds, f"{eligible} eligible nodes{f' ({tainted})' if tainted else ''}{needed}"


def right_version(parts: Parts) -> Precondition | None:
    """Return whether the cluster has the version of Kubernetes that the scenario names; None when it names none."""
    wanted = parts.plan.resolved.kubernetes
    if wanted is None:
        return None
    version = parts.place.cluster.facts.kubernetes
    holds = same_version(version, wanted)
    return Precondition(parts.live.now(), holds, f"Kubernetes {version}, {wanted} needed")


def _compare(eligible: int, wanted: Nodes) -> tuple[bool, str]:
    if wanted.count is not None:
        return eligible == wanted.count, f", exactly {wanted.count} needed"
    if wanted.min is not None:
        return eligible >= wanted.min, f", at least {wanted.min} needed"
    return eligible > 0, ""
