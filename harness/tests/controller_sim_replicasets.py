"""Pods, and who plays the ReplicaSet controller of the simulated cluster.

A pod belongs to a ReplicaSet, a DaemonSet or a Knative revision. `pods` holds them by the name of what users look at: those of a
ReplicaSet under its Deployment's name, and under its own when a Canary controls it, or nobody.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from harness.controller.core.ownership import controller_of
from harness.tests.controller_sim_server import Pod, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JSON = dict[str, Any]


class ReplicaSets(Server):
    """A namespace whose ReplicaSets keep their pods, whoever controls them."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None]) -> None:
        super().__init__(delay)
        self._homes: dict[str, str] = {}
        """Under which name the pods of a ReplicaSet are, by its UID."""
        self._born_pods = 0

    @property
    def replica_sets(self) -> list[JSON]:
        return list(self.of("replicasets").values())

    # -- pods --------------------------------------------------------------------------------------------------------

    def pod_times(self) -> Iterator[float]:
        """When pods become ready."""
        for pods in self.pods.values():
            for pod in pods:
                if pod.ready_at is not None and pod.ready_at > self.now:
                    yield pod.ready_at

    def ready_pods(self, name: str) -> int:
        """Ready pods of a workload, or of a ReplicaSet that no Deployment controls."""
        return sum(self._is_ready(pod) for pod in self.pods.get(name, []))

    def pod_uids(self, replica_set: str) -> set[str]:
        """UIDs of the pods of a ReplicaSet."""
        obj = self.get("replicasets", replica_set)
        return {pod.uid for pod in self._pods_of(obj)} if obj else set()

    def behind(self, service: str) -> int | None:
        """Ready pods that a Service selects; None when there is no such Service."""
        found = self.pods_behind(service)
        return None if found is None else len(found)

    def pods_behind(self, service: str) -> list[Pod] | None:
        """Those pods."""
        obj = self.get("services", service)
        if obj is None:
            return None
        selector = obj["spec"].get("selector") or {}
        return self.ready_with(selector) if selector else []

    def ready_with(self, labels: JSON) -> list[Pod]:
        """Ready pods that have these labels."""
        ready = [pod for pods in self.pods.values() for pod in pods if self._is_ready(pod)]
        return [pod for pod in ready if labels.items() <= labels_in(pod.revision).items()]

    def _is_ready(self, pod: Pod) -> bool:
        return pod.ready_at is not None and pod.ready_at <= self.now

    def _new_pod(self, owner: str, obj: JSON, index: int, node: str = "") -> Pod:
        template = obj["spec"]["template"]
        delay = self.delay(owner, template, index)
        self._born_pods += 1
        return Pod(
            template_text(obj),
            None if delay is None else self.now + delay,
            node,
            f"pod-{self._born_pods}",
            obj["metadata"]["uid"] if obj["kind"] == "ReplicaSet" else "",
        )

    # -- ReplicaSets -------------------------------------------------------------------------------------------------

    def keep_replica_sets(self) -> None:
        """Let the ReplicaSet controller act on those that are no Deployment's: they keep their pods all the same."""
        for name, obj in self.of("replicasets").items():
            if self._home(obj) == name:
                self._keep(name)

    def _keep(self, name: str) -> None:
        """Make a ReplicaSet have as many pods as it wants, and say how many it has."""
        obj = self.objects["replicasets", name]
        home, uid = self._home(obj), obj["metadata"]["uid"]
        own = self._pods_of(obj)
        desired = obj["spec"].get("replicas", 1)
        if "deletionTimestamp" not in obj["metadata"] and len(own) != desired:
            # Those that do not serve go first, then the youngest.
            kept = sorted(own, key=lambda pod: not self._is_ready(pod))[:desired]
            kept += [self._new_pod(home, obj, index) for index in range(len(kept), desired)]
            self.pods[home] = [pod for pod in self.pods[home] if pod.owner != uid] + kept
            own = kept
        ready = sum(self._is_ready(pod) for pod in own)
        status = {
            "observedGeneration": obj["metadata"]["generation"],
            "replicas": len(own),
            "fullyLabeledReplicas": len(own),
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        if status != obj.get("status"):
            self.observe("replicasets", name, status)

    def _pods_of(self, obj: JSON) -> list[Pod]:
        """The pods of a ReplicaSet, which are moved to where they belong when another one controls it now."""
        uid, home = obj["metadata"]["uid"], self._home(obj)
        held = self._homes.setdefault(uid, home)
        if held != home:
            self._homes[uid] = home
            moved = [pod for pod in self.pods.get(held, []) if pod.owner == uid]
            self.pods[held] = [pod for pod in self.pods.get(held, []) if pod.owner != uid]
            self.pods.setdefault(home, []).extend(moved)
        return [pod for pod in self.pods.setdefault(home, []) if pod.owner == uid]

    def _home(self, obj: JSON) -> str:
        owner = controller_of(obj) or {}
        if owner.get("kind") == "Deployment":
            held = self.get("deployments", owner["name"])
            if held is not None and held["metadata"]["uid"] == owner["uid"]:
                return str(owner["name"])
        return str(obj["metadata"]["name"])

    def _vanish(self, resource: str, name: str) -> None:
        obj = self.objects[resource, name]
        if resource == "replicasets":
            uid = obj["metadata"]["uid"]
            for pods in self.pods.values():
                pods[:] = [pod for pod in pods if pod.owner != uid]
        elif resource in ("daemonsets", "krevisions"):
            self.pods.pop(name, None)
        super()._vanish(resource, name)


def template_text(obj: JSON) -> str:
    """A workload's template as text, to be told apart from others."""
    return json.dumps(obj["spec"]["template"], sort_keys=True)


@functools.lru_cache(maxsize=1000)
def labels_in(text: str) -> JSON:
    """The labels of a template that is given as text."""
    labels: JSON = json.loads(text).get("metadata", {}).get("labels") or {}
    return labels
