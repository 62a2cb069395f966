"""Who plays the Deployment and DaemonSet controllers, the kubelets and the garbage collector of the simulated cluster."""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.controller.core.snapshots import REVISION
from harness.tests.controller_sim_server import Pod, Server
from harness.tests.controller_traces import make_current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JSON = dict[str, Any]


@dataclass
class Node:
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[JSON] = field(default_factory=list)


class Workloads(Server):
    """A namespace whose Deployments and DaemonSets have pods."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None]) -> None:
        super().__init__(delay)
        self.nodes: dict[str, Node] = {"node-1": Node(), "node-2": Node()}
        """What DaemonSets spread over; Deployments do not care here."""
        self._templates: dict[str, str] = {}
        """The template that each Deployment's controller took up last, by UID."""
        self._rolled: dict[tuple[str, str], Any] = {}
        """How things were after each workload's controller acted last."""

    def play_workloads(self) -> None:
        """Let every workload's controller act once."""
        for resource, name in list(self.objects):
            if resource not in ("deployments", "daemonsets") or self._rolled.get(
                (resource, name)
            ) == self._looks(resource, name):
                continue
            if resource == "deployments":
                self._roll(name)
            else:
                self._spread(name)
            self._rolled[resource, name] = self._looks(resource, name)

    def _looks(self, resource: str, name: str) -> Any:
        """Everything that a workload's controller goes by, told apart."""
        pods = [(id(pod), self._is_ready(pod)) for pod in self.pods.get(name, [])]
        nodes = [(node, str(facts)) for node, facts in self.nodes.items()]
        return self.objects[resource, name]["metadata"]["resourceVersion"], pods, nodes

    def pod_times(self) -> Iterator[float]:
        """When pods become ready."""
        for pods in self.pods.values():
            for pod in pods:
                if pod.ready_at is not None and pod.ready_at > self.now:
                    yield pod.ready_at

    def ready_pods(self, name: str) -> int:
        return sum(self._is_ready(pod) for pod in self.pods.get(name, []))

    def behind(self, service: str) -> int | None:
        """Ready pods that a Service selects; None when there is no such Service."""
        obj = self.get("services", service)
        if obj is None:
            return None
        selector: dict[str, str] = obj["spec"].get("selector") or {}
        if not selector:
            return 0
        ready = [pod for pods in self.pods.values() for pod in pods if self._is_ready(pod)]
        return sum(selector.items() <= _labels(pod.revision).items() for pod in ready)

    def _is_ready(self, pod: Pod) -> bool:
        return pod.ready_at is not None and pod.ready_at <= self.now

    def _new_pod(self, owner: str, obj: JSON, index: int, node: str = "") -> Pod:
        template = obj["spec"]["template"]
        delay = self.delay(owner, template, index)
        return Pod(_revision(obj), None if delay is None else self.now + delay, node)

    # -- Deployments -------------------------------------------------------------------------------------------------

    def _roll(self, name: str) -> None:
        obj = copy.deepcopy(self.objects["deployments", name])
        spec, meta = obj["spec"], obj["metadata"]
        revision = _revision(obj)
        pods = self.pods.setdefault(name, [])
        annotations = meta.setdefault("annotations", {})
        if self._templates.get(meta["uid"]) != revision:
            self._templates[meta["uid"]] = revision
            number = int(annotations.get(REVISION, 0)) + 1
            annotations[REVISION] = str(number)
            make_current(self.replica_sets, obj, revision, str(number), self._second())
        desired = spec.get("replicas", 1)
        new = [pod for pod in pods if pod.revision == revision][:desired]
        new += [self._new_pod(name, obj, index) for index in range(len(new), desired)]
        ready = sum(self._is_ready(pod) for pod in new)
        # Old pods that do not serve go first.
        old = sorted((pod for pod in pods if pod.revision != revision), key=self._is_ready)[::-1]
        old = old[: max(desired - ready, 0)]
        self.pods[name] = new + old
        serving = ready + sum(self._is_ready(pod) for pod in old)
        obj["status"] = {
            "observedGeneration": meta["generation"],
            "replicas": len(new) + len(old),
            "updatedReplicas": len(new),
            "readyReplicas": serving,
            "availableReplicas": serving,
        }
        self._store("deployments", obj)

    # -- DaemonSets --------------------------------------------------------------------------------------------------

    def _spread(self, name: str) -> None:
        obj = self.objects["daemonsets", name]
        spec = obj["spec"]
        revision = _revision(obj)
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


@functools.lru_cache(maxsize=1000)
def _labels(revision: str) -> JSON:
    labels: JSON = json.loads(revision).get("metadata", {}).get("labels") or {}
    return labels


def _revision(obj: JSON) -> str:
    return json.dumps(obj["spec"]["template"], sort_keys=True)


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
