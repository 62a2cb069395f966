"""What must hold before the first step: the features, and the number of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.clusters.base import same_version
from harness.model.features import FEATURES
from harness.model.timeline import Missing, Precondition

if TYPE_CHECKING:
    from harness.model.scenario import Nodes
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
    nodes = parts.live.state.world().get("nodes", [])
    seen = [node["name"] for node in nodes if node["ready"] and node["schedulable"]]
    # Without the right to list nodes, what the cluster said when it was opened must do.
    eligible = len(seen or parts.place.cluster.facts.nodes)
    holds, wanted = _compare(eligible, parts.plan.resolved.nodes)
    return Precondition(parts.live.now(), holds, f"{eligible} eligible nodes{wanted}")


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
