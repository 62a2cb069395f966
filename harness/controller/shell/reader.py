"""What is read on demand, because only a rare pass needs it and a watch would cost every Canary memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.controller.shell.kinds import RESOURCES
from harness.kube.errors import Forbidden
from harness.kube.resource import CANARY, POD, REPLICASET

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource


class Reader:
    """Reads in one namespace."""

    def __init__(
        self, client: KubeClient, namespace: str, log: Any, *, canaries: Resource = CANARY
    ) -> None:
        self._client = client
        self._canaries = canaries
        self._namespace = namespace
        self._log = log

    async def revisions(self, target: JSON) -> list[JSON]:
        """Return the ReplicaSets that a Deployment's selector finds.

        Empty when they may not be read: then managedFields alone tell when the template changed. Raises KubeError for what a later
        attempt may cure.
        """
        if target.get("kind") != "Deployment":
            # Others have none; what managedFields say has to do.
            return []
        labels = target["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        try:
            items, _ = await self._client.list(REPLICASET, self._namespace, label_selector=selector)
        except Forbidden as error:
            path = REPLICASET.path(self._namespace)
            self._log.error("forbidden", verb="list", path=path, message=error.message)
            return []
        return items

    async def ready_pods(self, target: JSON, more: JSON) -> int:
        """Return how many of a workload's pods are ready and not on their way out. Raises KubeError.

        `more`: labels that tell them from others that its selector finds too. Where pods may not be read, as many as its status says.
        """
        labels = (target["spec"]["selector"].get("matchLabels") or {}) | more
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        try:
            pods, _ = await self._client.list(POD, self._namespace, label_selector=selector)
        except Forbidden as error:
            path = POD.path(self._namespace)
            self._log.error("forbidden", verb="list", path=path, message=error.message)
            status = target.get("status") or {}
            return int(status.get("availableReplicas") or status.get("numberAvailable") or 0)
        return sum(map(_ready, pods))

    async def canary(self, name: str) -> JSON | None:
        """Return a Canary as it is served now, None when there is none. Raises KubeError."""
        only = f"metadata.name={name}"
        items, _ = await self._client.list(self._canaries, self._namespace, field_selector=only)
        return items[0] if items else None

    async def config(self, plural: str, name: str) -> JSON | None:
        """Return a ConfigMap or Secret that a target has begun to refer to, None when there is none. Raises KubeError.

        As a list of one, which needs no right that the watch does not need as well.
        """
        only = f"metadata.name={name}"
        items, _ = await self._client.list(RESOURCES[plural], self._namespace, field_selector=only)
        return items[0] if items else None


def _ready(pod: JSON) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")
