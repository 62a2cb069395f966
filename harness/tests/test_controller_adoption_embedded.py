"""Restoring a target by adoption on a real control plane: what the real Deployment controller makes of it (K1 to K11)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.errors import NotFound
from harness.kube.resource import CANARY, CONFIGMAP, DEPLOYMENT, POD, REPLICASET, SERVICE
from harness.tests.controller_sim import canary, deployment, image, image_of
from harness.tests.test_controller_embedded import ME, Place, placed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
REPLICAS = 3
LABELS = {"argocd.argoproj.io/instance": "web", "team": "a"}
ANALYSIS = {
    "interval": "1s",
    "threshold": 1,
    "iterations": 1,
    "restore": "adopt",
    # Nobody listens there: every revision fails.
    "webhooks": [{"name": "check", "type": "rollout", "url": "http://127.0.0.1:9/"}],
}


class Town:
    """A namespace with a Canary whose revisions all fail, and somebody who counts the pods behind its apex."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.client, self.namespace = place.client, place.namespace
        self.serving: list[int] = []

    async def make(self) -> None:
        owner = await self._create(CONFIGMAP, {"metadata": {"name": "app"}})
        target = deployment(replicas=REPLICAS, revisionHistoryLimit=3)
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
        target["metadata"] |= {
            "labels": LABELS,
            "annotations": {"note": "ours"},
            "ownerReferences": [reference | {"uid": owner["metadata"]["uid"]}],
        }
        await self._create(DEPLOYMENT, target)
        await self._create(CANARY, canary(analysis=ANALYSIS, progressDeadlineSeconds=60))

    async def _create(self, res: Any, obj: JSON) -> JSON:
        obj["metadata"]["namespace"] = self.namespace
        return await self.client.create(res, obj, self.namespace, field_manager=ME)

    async def target(self) -> JSON:
        return await self.client.get(DEPLOYMENT, "web", self.namespace)

    async def controller(self, parked: JSON) -> tuple[str, str]:
        """Kind and UID of who controls a ReplicaSet."""
        found = await self.client.get(REPLICASET, parked["name"], self.namespace)
        owners = found["metadata"].get("ownerReferences") or []
        (owner,) = [one for one in owners if one.get("controller")]
        return owner["kind"], owner["uid"]

    async def pods_of(self, name: str) -> set[str]:
        pods, _ = await self.client.list(POD, self.namespace)
        return {
            pod["metadata"]["uid"]
            for pod in pods
            for one in pod["metadata"].get("ownerReferences") or []
            if one["name"] == name and not pod["metadata"].get("deletionTimestamp")
        }

    async def change(self, name: str) -> None:
        await self.client.patch(
            DEPLOYMENT, "web", self.namespace, image(name), field_manager="gitops"
        )

    async def uid(self) -> str:
        """UID of the target; empty while there is none."""
        try:
            return str((await self.target())["metadata"]["uid"])
        except NotFound:
            return ""

    async def follow(self, done: Callable[[JSON], bool]) -> None:
        """Wait for a state of the Canary; kill and start the controller at every step of a restoration meanwhile."""
        seen = {(False, await self.uid())}
        async with asyncio.timeout(90):
            while not done(found := await self.place.canary()):
                held = ("restore" in (found.get("status") or {}), await self.uid())
                if held not in seen:
                    seen.add(held)
                    await self.place.subject.kill()
                    await self.place.start()
                await asyncio.sleep(0.005)

    async def count(self) -> None:
        """Note how many ready pods the apex selects, again and again."""
        apex = await self.client.get(SERVICE, "web", self.namespace)
        while True:
            selector = ",".join(f"{k}={v}" for k, v in apex["spec"]["selector"].items())
            pods, _ = await self.client.list(POD, self.namespace, label_selector=selector)
            self.serving.append(sum(map(_ready, pods)))
            await asyncio.sleep(0.02)


def _ready(pod: JSON) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _phase(phase: str) -> Callable[[JSON], bool]:
    return lambda found: (found.get("status") or {}).get("phase") == phase


def _restored(state: str, reason: str) -> Callable[[JSON], bool]:
    def done(found: JSON) -> bool:
        conditions = (found.get("status") or {}).get("conditions") or []
        told = [(one["status"], one["reason"]) for one in conditions if one["type"] == "Restored"]
        return told == [(state, reason)]

    return done


def _held(found: JSON) -> bool:
    return "restore" in found["status"] and bool(found["metadata"].get("finalizers"))


def test_the_real_deployment_controller_adopts_the_pods_that_serve(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story() -> None:
        async with placed(warm_cluster, "adopt", tmp_path) as place:
            await release(Town(place))

    async def release(town: Town) -> None:
        await town.place.start()
        await town.make()
        await town.follow(_phase("Initialized"))
        parked = (await town.place.canary())["status"]["parked"]
        pods = await town.pods_of(parked["name"])
        assert len(pods) == REPLICAS
        counter = asyncio.create_task(town.count())
        try:
            for part in (adopted, applied_again, canary_deleted):
                await part(town, parked)
                assert await town.pods_of(parked["name"]) == pods
        finally:
            counter.cancel()
        assert min(town.serving) >= REPLICAS
        assert town.place.forbidden == []

    asyncio.run(story())


async def adopted(town: Town, parked: JSON) -> None:
    """A revision fails: the target is another one afterwards, and has the pods that served."""
    old = await town.target()
    await town.change("app:2")
    await town.follow(_restored("True", "Adopted"))
    new = await town.target()
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["metadata"]["labels"] == LABELS
    assert new["metadata"]["annotations"]["note"] == "ours"
    assert new["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"]
    assert image_of(new) == "app:1"
    assert new["status"]["readyReplicas"] == REPLICAS
    assert await town.controller(parked) == ("Deployment", new["metadata"]["uid"])


async def applied_again(town: Town, parked: JSON) -> None:
    """A repository applies it again: it is analysed again, and left where it is when it fails again."""
    before = await town.uid()
    await town.change("app:2")
    await town.follow(_restored("False", "AppliedAgain"))
    target = await town.target()
    assert (image_of(target), target["spec"]["replicas"]) == ("app:2", 0)
    assert target["metadata"]["uid"] == before
    assert (await town.controller(parked))[0] == "Canary"


async def canary_deleted(town: Town, parked: JSON) -> None:
    """Another one fails; the controller is dead while its target is away and its Canary is deleted."""
    client, namespace, place = town.client, town.namespace, town.place
    before = await town.uid()
    await town.change("app:3")
    async with asyncio.timeout(60):
        while not _held(await place.canary()):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.005)
    await place.subject.kill()
    if await town.uid() == before:
        await client.delete(DEPLOYMENT, "web", namespace, uid=before)
    await client.delete(CANARY, "web", namespace)
    assert await client.exists(CANARY, "web", namespace)
    await place.start()
    async with asyncio.timeout(60):
        while await client.exists(CANARY, "web", namespace):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
    target = await town.target()
    assert (image_of(target), target["spec"]["replicas"]) == ("app:1", REPLICAS)
    assert not target["spec"].get("paused")
    assert await town.controller(parked) == ("Deployment", target["metadata"]["uid"])
