"""Who plays the controllers of workloads in the simulated cluster; DaemonSets themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.tests.controller_sim_deployments import Deployments
from harness.tests.controller_sim_replicasets import template_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.tests.controller_sim_server import Pod

JSON = dict[str, Any]


@dataclass
class Node:
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[JSON] = field(default_factory=list)


class Workloads(Deployments):
    """A namespace whose Deployments and DaemonSets have pods."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None]) -> None:
        super().__init__(delay)
        self.nodes: dict[str, Node] = {"node-1": Node(), "node-2": Node()}
        """What DaemonSets spread over; Deployments do not care here."""
        self._rolled: dict[tuple[str, str], Any] = {}
        """How things were after each workload's controller acted last, unless it had more to do."""

    def play_workloads(self) -> None:
        """Let every workload's controller act once."""
        for resource, name in list(self.objects):
            key = (resource, name)
            if resource not in ("deployments", "daemonsets"):
                continue
            if key in self._rolled and self._rolled[key] == self._looks(resource, name):
                continue
            again = False
            if resource == "deployments":
                again = self._sync(name)
            else:
                self._spread(name)
            self._rolled[key] = None if again else self._looks(resource, name)
        self.keep_replica_sets()

    def _looks(self, resource: str, name: str) -> Any:
        """Everything that a workload's controller goes by, told apart."""
        pods = [(pod.uid, self._is_ready(pod)) for pod in self.pods.get(name, [])]
        version = self.objects[resource, name]["metadata"]["resourceVersion"]
        if resource == "deployments":
            return version, pods, self._sets_of_interest(name)
        return version, pods, [(node, str(facts)) for node, facts in self.nodes.items()]

    # -- DaemonSets --------------------------------------------------------------------------------------------------

    def _spread(self, name: str) -> None:
        obj = self.objects["daemonsets", name]
        spec = obj["spec"]
        revision = template_text(obj)
        eligible = [node for node, facts in self.nodes.items() if _fits(spec["template"], facts)]
        pods = [pod for pod in self.pods.get(name, []) if pod.node in eligible]
        strategy = spec.get("updateStrategy") or {}
        if strategy.get("type") != "OnDelete":
            rolling = strategy.get("rollingUpdate") or {}
            surge = rolling.get("maxSurge") or 0
            if surge:
                pods = self._surge(name, pods, revision, _count(surge, len(eligible)))
            else:
                limit = _count(rolling.get("maxUnavailable", 1), len(eligible))
                pods = self._make_room(pods, revision, limit, len(eligible))
        taken = {pod.node for pod in pods}
        for index, node in enumerate(eligible):
            if node not in taken:
                pods.append(self._new_pod(name, obj, index, node))
        pods.sort(key=lambda pod: pod.node)
        self.pods[name] = pods
        ready = len({pod.node for pod in pods if self._is_ready(pod)})
        self.observe(
            "daemonsets",
            name,
            {
                "observedGeneration": obj["metadata"]["generation"],
                "desiredNumberScheduled": len(eligible),
                "currentNumberScheduled": len({pod.node for pod in pods}),
                "updatedNumberScheduled": sum(pod.revision == revision for pod in pods),
                "numberMisscheduled": 0,
                "numberReady": ready,
                "numberAvailable": ready,
                "numberUnavailable": len(eligible) - ready,
            },
        )

    def _surge(self, name: str, pods: list[Pod], revision: str, limit: int) -> list[Pod]:
        """Put new pods beside old ones, and take an old one away once the new one on its node is ready."""
        obj = self.objects["daemonsets", name]
        new = {pod.node: pod for pod in pods if pod.revision == revision}
        left = [
            pod
            for pod in pods
            if pod.revision == revision or not (pod.node in new and self._is_ready(new[pod.node]))
        ]
        both = sum(pod.revision != revision and pod.node in new for pod in left)
        next_nodes = [pod.node for pod in left if pod.node not in new][: max(limit - both, 0)]
        return left + [self._new_pod(name, obj, 0, node) for node in next_nodes]

    def _make_room(self, pods: list[Pod], revision: str, limit: int, desired: int) -> list[Pod]:
        """Take away old pods: those that do not serve anyhow, then as many as may be missing."""
        left = [pod for pod in pods if pod.revision == revision or self._is_ready(pod)]
        missing = desired - sum(self._is_ready(pod) for pod in left)
        for pod in [pod for pod in left if pod.revision != revision]:
            if missing >= limit:
                break
            left.remove(pod)
            missing += 1
        return left


def _count(limit: int | str, desired: int) -> int:
    """`maxUnavailable` as a number; percent are rounded up, as for DaemonSets."""
    if isinstance(limit, int):
        return limit
    return max(-(-desired * int(limit.rstrip("%")) // 100), 1)


def _fits(template: JSON, node: Node) -> bool:
    """Whether a DaemonSet's pod may run on a node."""
    spec = template["spec"]
    wanted = (spec.get("nodeSelector") or {}).items()
    tolerations = spec.get("tolerations") or []
    return wanted <= node.labels.items() and all(
        any(_tolerates(toleration, taint) for toleration in tolerations) for taint in node.taints
    )


def _tolerates(toleration: JSON, taint: JSON) -> bool:
    if toleration.get("effect") not in (None, taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, taint["key"])
    mine = (toleration.get("key"), toleration.get("value") or "")
    return mine == (taint["key"], taint.get("value") or "")
