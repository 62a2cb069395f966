"""The controller as a process on a real control plane, with the rights it ships, killed at every change of state."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.access import write_kubeconfig
from harness.kube.client import KubeClient
from harness.kube.resource import (
    CANARY,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    ROLE,
    ROLEBINDING,
    SERVICE,
    SERVICEACCOUNT,
)
from harness.subjects.base import Access
from harness.subjects.bundled import Bundled
from harness.tests.controller_sim import canary, deployment, image, image_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME = "rollout-drill"


class Place:
    """A namespace with the controller's rights, and the controller in it."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.subject = Bundled()
        self.forbidden: list[str] = []
        self.starts = 0

    async def prepare(self, admin: Path, context: str | None, folder: Path) -> None:
        create, namespace = self.client.create, self.namespace
        for crd in self.subject.cluster_objects():
            await self.client.apply(CRD, crd, field_manager=ME, force=True)
        await create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
        kinds = {res.kind: res for res in (SERVICEACCOUNT, ROLE, ROLEBINDING)}
        for obj in self.subject.namespace_objects(namespace):
            await create(kinds[obj["kind"]], obj, namespace, field_manager=ME)
        self.access = Access(
            kubeconfig=folder / "kubeconfig", namespace=namespace, log=folder / "log"
        )
        await write_kubeconfig(
            self.client,
            admin=admin,
            context=context,
            namespace=namespace,
            service_account=self.subject.service_account,
            target=self.access.kubeconfig,
        )

    async def start(self) -> None:
        self.starts += 1
        await self.subject.start(self.access, self._notice)

    def _notice(self, event: str, detail: str) -> None:
        if event == "forbidden":
            self.forbidden.append(detail)

    async def canary(self) -> JSON:
        return await self.client.get(CANARY, "web", self.namespace)

    async def follow(self, end: str) -> list[str]:
        """Kill and start the controller whenever the Canary's status has moved; return the phases."""
        phases: list[str] = []
        seen: set[Any] = set()
        async with asyncio.timeout(90):
            while True:
                status = (await self.canary()).get("status") or {}
                phase = str(status.get("phase") or "")
                state = (phase, status.get("iterations"), status.get("lastAppliedSpec"))
                if state not in seen:
                    seen.add(state)
                    if phase and phases[-1:] != [phase]:
                        phases.append(phase)
                    await self.subject.kill()
                    await self.start()
                if phase == end:
                    return phases
                await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def placed(cluster: EmbeddedCluster, prefix: str, folder: Path) -> AsyncIterator[Place]:
    """A namespace with a subject that is not started yet; both go in the end."""
    async with await KubeClient.connect(
        cluster.kubeconfig, cluster.context, user_agent="rollout-drill/test"
    ) as client:
        place = Place(client, f"{prefix}-{secrets.token_hex(3)}")
        await place.prepare(cluster.kubeconfig, cluster.context, folder)
        try:
            yield place
        finally:
            await place.subject.kill()
            await client.delete(NAMESPACE, place.namespace)


def test_killed_at_every_step_it_still_promotes(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story() -> None:
        async with placed(warm_cluster, "kill", tmp_path) as place:
            await release(place)

    async def release(place: Place) -> None:
        client, namespace = place.client, place.namespace
        await place.start()
        analysis = {"interval": "1s", "threshold": 1, "iterations": 2}
        for res, obj in (
            (DEPLOYMENT, deployment(replicas=2)),
            (CANARY, canary(analysis=analysis, progressDeadlineSeconds=60)),
        ):
            obj["metadata"]["namespace"] = namespace
            await client.create(res, obj, namespace, field_manager=ME)
        assert await place.follow("Initialized") == ["Initializing", "Initialized"]
        await client.patch(DEPLOYMENT, "web", namespace, image("app:2"), field_manager=ME)
        phases = await place.follow("Succeeded")
        # A phase may pass between two looks, but none may come out of order.
        order = ["Initialized", "Progressing", "Promoting", "Finalising", "Succeeded"]
        assert phases == [phase for phase in order if phase in phases]
        primary = await client.get(DEPLOYMENT, "web-primary", namespace)
        assert image_of(primary) == "app:2"
        assert primary["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        apex = await client.get(SERVICE, "web", namespace)
        assert apex["spec"]["selector"] == {"app": "web-primary"}
        assert (await client.get(DEPLOYMENT, "web", namespace))["spec"]["replicas"] == 0
        assert place.forbidden == []
        assert place.starts > 5

    asyncio.run(story())
