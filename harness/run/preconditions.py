"""What must hold before the first step: the features, and the number of nodes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import (
    NETWORK,
    REAL_PODS,
    REVISION_IMAGES,
    SIMULATED_PODS,
    same_version,
)
from harness.clusters.local.images import RESERVED
from harness.clusters.workload import PROGRAM, is_ours
from harness.model.actions import ApplyAsStep, PatchStep
from harness.model.features import FEATURES
from harness.model.names import IN_CLUSTER
from harness.model.timeline import Missing, Precondition
from harness.run.reach import reachable
from harness.run.subjects import runs_in_cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harness.model.nodes import Nodes
    from harness.model.timeline import ClusterFacts
    from harness.run.parts import Parts

_OF_PODS: Final = re.compile(r'"rollout-drill/pod": "([^"]+)"')
_NORMAL: Final = "start"
"""The value of that label with which a simulated pod does as a real one does."""


def lacking_features(parts: Parts) -> list[Missing]:
    """Return what the scenario requires and a subject or the cluster has not, one observation for each of them.

    Every subject is asked, the later ones too: a drill is not begun whose second half cannot be run.
    """
    cluster = parts.place.cluster.facts
    subjects = {one.facts.name: one.facts for one in parts.subjects.every}
    sides = [
        *(("subject", one.capabilities, f"subject {name}") for name, one in subjects.items()),
        ("cluster", cluster.capabilities, f"cluster {cluster.name}{_simulated(cluster)}"),
    ]
    missing = []
    for side, capabilities, who in sides:
        needed = [name for name in parts.plan.resolved.requires if side in FEATURES[name].of]
        if side == "cluster" and IN_CLUSTER in subjects and REAL_PODS not in needed:
            needed.append(REAL_PODS)  # a subject runs as a pod
        if side == "cluster":
            needed += [name for name in _needed_by_itself(parts) if name not in needed]
        lacking = tuple(name for name in needed if name not in capabilities)
        if lacking:
            missing.append(Missing(parts.live.now(), lacking, who))
    probe = lacking_probe(parts)
    return missing if probe is None else [*missing, probe]


def _simulated(cluster: ClusterFacts) -> str:
    """Return why a cluster lacks what only containers have, for a sentence; empty for one with real nodes."""
    return f" (its nodes are simulated by {cluster.simulated})" if cluster.simulated else ""


def lacking_probe(parts: Parts) -> Missing | None:
    """Return that the cluster's image has no program that asks, where the scenario has traffic and the cluster a network."""
    cluster = parts.place.cluster
    image = cluster.workload_image
    probed = parts.plan.resolved.traffic is not None and NETWORK in cluster.facts.capabilities
    if not probed or is_ours(image):
        return None
    way = f"a probe of traffic (give an image of ours, …/rollout-drill/{PROGRAM}, with --image)"
    return Missing(parts.live.now(), (way,), f"image {image}")


def _needed_by_itself(parts: Parts) -> list[str]:
    """Return what manifests or steps need whatever the scenario says: images that nobody can pull, pods that obey a label."""
    steps = parts.plan.resolved.to_json()["steps"]
    text = json.dumps([dict(parts.manifests), steps])
    asked = {value for value in _OF_PODS.findall(text) if value != _NORMAL}
    return [REVISION_IMAGES] * (f"{RESERVED}/" in text) + [SIMULATED_PODS] * bool(asked)


def eligible_nodes(parts: Parts) -> Precondition:
    """Return whether as many nodes can take pods as the scenario asks for."""
    wanted = parts.plan.resolved.nodes
    facts = parts.place.cluster.facts
    nodes = parts.live.state.world().get("nodes", [])
    among: Sequence[str] | None = None
    if facts.kind == "existing" and nodes:
        # Only these can be used by the drill's pods, whatever other nodes there are by now.
        among = facts.nodes
    # Without the right to list nodes, what the cluster said when it was opened must do.
    holds, text = enough(nodes, wanted, otherwise=len(facts.nodes), among=among)
    return Precondition(parts.live.now(), holds, text)


def enough(
    nodes: Sequence[Mapping[str, Any]],
    wanted: Nodes,
    *,
    otherwise: int,
    among: Collection[str] | None = None,
) -> tuple[bool, str]:
    """Return whether these nodes, as checks see them, are as many as the scenario asks for, and a sentence about it.

    Those that it keeps pods away from itself, by a taint, count. `otherwise`: how many there are when none could be seen, 0: nobody knows.
    `among`: the names of those that the drill may use; None: all.
    """
    seen = [
        node
        for node in nodes
        if node["ready"]
        and (node["schedulable"] or node["name"] in wanted.kept_free)
        and (among is None or node["name"] in among)
    ]
    eligible = len(seen) if nodes else otherwise
    if not nodes and not otherwise:
        holds = wanted.count is None and wanted.min is None
        _, needed = _compare(0, wanted)
        return holds, f"how many nodes take pods is not known: name them with --nodes{needed}"
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


def can_reach(parts: Parts) -> Precondition | None:
    """Return why a subject cannot reach what the scenario has it call; None when all can."""
    resolved = parts.plan.resolved
    actions = (step.action for step in resolved.steps)
    patches = (one.merge for one in actions if isinstance(one, ApplyAsStep | PatchStep))
    objects = [obj for several in parts.manifests.values() for obj in several]
    objects += [dict(patch) for patch in patches if patch]
    known = (name for _, plural, _, name in parts.place.before.objects if plural == "namespaces")
    namespaces = {parts.namespace.key.name, *known}
    for subject in parts.subjects.every:
        found = reachable(
            resolved,
            objects,
            subject=subject.facts.name,
            in_cluster=runs_in_cluster(subject),
            namespaces=namespaces,
            now=parts.live.now(),
        )
        if found is not None:
            return found
    return None


def _compare(eligible: int, wanted: Nodes) -> tuple[bool, str]:
    if wanted.count is not None:
        return eligible == wanted.count, f", exactly {wanted.count} needed"
    if wanted.min is not None:
        return eligible >= wanted.min, f", at least {wanted.min} needed"
    return eligible > 0, ""
