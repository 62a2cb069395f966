"""A parked primary on a real control plane: what the real Deployment controller makes of a ReplicaSet that is taken from it (K1, K2, K10)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.resource import CANARY, CONFIGMAP, DEPLOYMENT, POD, SERVICE
from harness.kube.watch import Listed, watch
from harness.tests.controller_sim_make import canary, deployment, image
from harness.tests.test_controller_embedded import ME, Place, placed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.resource import Resource

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
REPLICAS = 3
WATCHED = (POD, SERVICE, CANARY)


class Onlooker:
    """Counts, after every event of a watch, the ready pods behind the apex."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._objects: dict[str, dict[str, JSON]] = {res.kind: {} for res in WATCHED}
        self._moved = asyncio.Event()
        self.served: list[int] = []

    async def follow(self, res: Resource) -> None:
        held = self._objects[res.kind]
        async with aclosing(watch(self._place.client, res, self._place.namespace)) as events:
            async for event in events:
                if isinstance(event, Listed):
                    held |= {obj["metadata"]["name"]: obj for obj in event.items}
                elif event.type == "DELETED":
                    held.pop(event.object["metadata"]["name"], None)
                else:
                    held[event.object["metadata"]["name"]] = event.object
                if "web" in self._objects["Service"]:
                    self.served.append(len(self.behind("web")))
                self._moved.set()

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                self._moved.clear()
                await self._moved.wait()

    def status(self) -> JSON:
        found: JSON = self._objects["Canary"].get("web", {}).get("status") or {}
        return found

    def phase(self, name: str) -> Callable[[], bool]:
        return lambda: self.status().get("phase") == name

    def pods(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self._objects["Pod"].values()}

    def behind(self, service: str) -> set[str]:
        selector = self._objects["Service"][service]["spec"]["selector"]
        pods = self._objects["Pod"].values()
        return {
            pod["metadata"]["uid"]
            for pod in pods
            if selector.items() <= pod["metadata"]["labels"].items() and _ready(pod)
        }

    def ready(self) -> int:
        return sum(map(_ready, self._objects["Pod"].values()))


def _ready(pod: JSON) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def test_no_pod_that_serves_is_touched_from_bootstrap_to_promotion(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story() -> None:
        async with placed(warm_cluster, "park", tmp_path) as place:
            seen = Onlooker(place)
            watches = [asyncio.create_task(seen.follow(res)) for res in WATCHED]
            try:
                await release(place, seen)
            finally:
                for each in watches:
                    each.cancel()
                    with suppress(asyncio.CancelledError):
                        await each

    asyncio.run(story())


async def release(place: Place, seen: Onlooker) -> None:
    client, namespace = place.client, place.namespace

    async def make(res: Resource, obj: JSON) -> None:
        obj["metadata"]["namespace"] = namespace
        await client.create(res, obj, namespace, field_manager=ME)

    async def change(patch: JSON) -> None:
        await client.patch(DEPLOYMENT, "web", namespace, patch, field_manager=ME)

    # The target has a past: without care its older ReplicaSet would be scaled up when the newest is taken away.
    await make(DEPLOYMENT, deployment(image="app:0", replicas=REPLICAS))
    await seen.until(lambda: seen.ready() == REPLICAS)
    await change(image("app:1"))
    rolled = 0
    async with asyncio.timeout(60):
        while rolled != REPLICAS:
            status = (await client.get(DEPLOYMENT, "web", namespace)).get("status") or {}
            counts = {status.get(key) for key in ("replicas", "updatedReplicas")}
            rolled = int(status.get("availableReplicas") or 0) if counts == {REPLICAS} else 0
            await asyncio.sleep(0.05)
    await seen.until(lambda: len(seen.pods()) == REPLICAS)
    first = seen.pods()

    await place.start()
    analysis = {"interval": "1s", "threshold": 1, "iterations": 1, "restore": "adopt"}
    await make(CANARY, canary(analysis=analysis, progressDeadlineSeconds=60))
    await seen.until(seen.phase("Initialized"))
    assert seen.behind("web") == first == seen.behind("web-primary")
    seen.served.clear()

    await change(image("app:2"))
    await seen.until(seen.phase("Progressing"))
    await seen.until(seen.phase("Succeeded"))
    await seen.until(lambda: len(seen.pods()) == REPLICAS and not seen.pods() & first)
    assert seen.behind("web") == seen.pods()
    assert min(seen.served) >= REPLICAS
    target = await client.get(DEPLOYMENT, "web", namespace)
    assert target["spec"]["replicas"] == 0
    assert not await client.exists(DEPLOYMENT, "web-primary", namespace)

    # What both versions would share is refused, and nothing that serves is touched.
    await make(CONFIGMAP, {"metadata": {"name": "env"}, "data": {"a": "1"}})
    refers = {"name": "c", "envFrom": [{"configMapRef": {"name": "env"}}]}
    await change({"spec": {"template": {"spec": {"containers": [{**refers, "image": "app:3"}]}}}})
    await seen.until(lambda: "ConfigMap 'env'" in _said(seen.status()))
    assert seen.behind("web") == seen.pods()
    assert place.forbidden == []


def _said(status: JSON) -> str:
    found = [one for one in status.get("conditions") or [] if one["type"] == "Accepted"]
    return str(found[0]["message"]) if found else ""
