"""What kinds of target write, sent to a real API server: accepted, kept as sent, and settled after one round (O7, O15, O16, C21)."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.names import MANAGER, names_of
from harness.controller.core.targets.base import Pair
from harness.controller.core.targets.daemonset import left_behind
from harness.kube.client import KubeClient
from harness.kube.errors import NotFound
from harness.kube.resource import CANARY, CRD, DAEMONSET, NAMESPACE, SERVICE
from harness.subjects.bundled import Bundled
from harness.tests.controller_sim_make import canary, daemonset, service, target_ref
from harness.tests.controller_targets import kind_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.controller.core import Write
    from harness.kube.resource import Resource

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME = "rollout-drill"
LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
EXTERNAL = {
    "type": "ExternalName",
    "externalName": "a.example.com",
    "ports": None,
    "selector": None,
}
SHAPES: tuple[JSON, ...] = (
    {},
    {"type": "NodePort"},
    LOCAL,
    {"clusterIP": "None"},
    EXTERNAL,
    {"clusterIP": "None", "selector": None},
    LOCAL,
    EXTERNAL,
    {"type": "NodePort", "sessionAffinity": "ClientIP"},
    {},
)
"""Specs of a target, one after another."""


class Place:
    """A namespace with a target of one kind."""

    def __init__(self, client: KubeClient, kind: str, res: Resource) -> None:
        self.client, self.res = client, res
        self.what = kind_of(kind)
        self.kind = kind
        self.namespace = f"target-{secrets.token_hex(3)}"

    async def prepare(self) -> None:
        """Make the namespace, and the Canary that everything belongs to: the garbage collector looks for it."""
        client = self.client
        for crd in Bundled().cluster_objects():
            await client.apply(CRD, crd, field_manager=ME, force=True)
        space = {"metadata": {"name": self.namespace}}
        await client.create(NAMESPACE, space, field_manager=ME)
        rollout = canary(targetRef=target_ref(self.kind))
        del rollout["metadata"]["namespace"]
        self.owner = await self._served(rollout)

    async def _served(self, rollout: JSON) -> JSON:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(NotFound):
                    return await self.client.create(
                        CANARY, rollout, self.namespace, field_manager=ME
                    )
                await asyncio.sleep(0.05)

    async def read(self, name: str) -> JSON | None:
        with contextlib.suppress(NotFound):
            return await self.client.get(self.res, name, self.namespace)
        return None

    async def pair(self, revision: str = "v2:00") -> Pair:
        target, primary, copy = [
            await self.read(name) for name in ("web", "web-primary", "web-canary")
        ]
        assert target is not None
        objects = {str(self.what.plural): {"web-canary": copy}} if copy else {}
        names = names_of(self.owner, target)
        return Pair(self.owner, names, target, primary, objects, revision)

    async def send(self, writes: Iterable[Write]) -> None:
        client, namespace = self.client, self.namespace
        for write in writes:
            body = {**write.body}
            if write.precondition:
                meta = {**(body.get("metadata") or {}), "resourceVersion": write.precondition}
                body["metadata"] = meta
            if write.verb == "create":
                await client.create(self.res, body, namespace, field_manager=MANAGER)
            elif write.verb == "delete":
                await client.delete(self.res, write.name, namespace)
            elif write.verb == "replace":
                await client.replace(self.res, body, namespace, field_manager=MANAGER)
            else:
                await client.patch(self.res, write.name, namespace, body, field_manager=MANAGER)


def story(
    cluster: EmbeddedCluster, kind: str, res: Resource, tell: Callable[[Place], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with await KubeClient.connect(
            cluster.kubeconfig, cluster.context, user_agent="rollout-drill/test"
        ) as client:
            place = Place(client, kind, res)
            await place.prepare()
            try:
                async with asyncio.timeout(90):
                    await tell(place)
            finally:
                await client.delete(NAMESPACE, place.namespace)

    asyncio.run(run())


def test_copies_of_a_service_are_accepted_and_settle_at_once(warm_cluster: EmbeddedCluster) -> None:
    async def tell(place: Place) -> None:
        what, client = place.what, place.client
        for number, shape in enumerate(SHAPES):
            spec = service(**shape)["spec"]
            target = {**service(), "spec": {k: v for k, v in spec.items() if v is not None}}
            del target["metadata"]["namespace"]
            with contextlib.suppress(NotFound):
                await client.delete(SERVICE, "web", place.namespace)
            await client.create(SERVICE, target, place.namespace, field_manager=ME)
            pair = await place.pair(f"v2:{number}")
            await place.send(() if what.exists(pair) else what.create(pair))
            await place.send(what.keep(await place.pair()))
            await place.send(what.promote(await place.pair(f"v2:{number}")))
            pair = await place.pair(f"v2:{number}")
            assert what.keep(pair) == (), shape
            assert what.promote(pair) == (), shape
            assert what.holds(pair), shape
            assert what.revision_of(pair) == f"v2:{number}"
            assert pair.primary is not None
            for copy in (pair.primary, pair.objects["services"]["web-canary"]):
                assert copy["spec"]["type"] == pair.target["spec"]["type"], shape
                none = copy["spec"].get("clusterIP") == "None"
                assert none is (shape.get("clusterIP") == "None"), shape

    story(warm_cluster, "Service", SERVICE, tell)


@pytest.mark.parametrize("surge", [0, 1])
def test_a_daemonset_goes_to_zero_and_back_and_its_primary_follows(
    warm_cluster: EmbeddedCluster, surge: int
) -> None:
    """Case C21 with the nodes of the cluster; one of them has what the pods ask for."""

    async def until(place: Place, done: Callable[[Pair], bool], revision: str = "v2:00") -> Pair:
        while True:
            pair = await place.pair(revision)
            if done(pair):
                return pair
            await asyncio.sleep(0.1)

    async def tell(place: Place) -> None:
        what, client = place.what, place.client
        rolling = {"maxSurge": surge, "maxUnavailable": 1 - surge}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        target = daemonset(image="registry.k8s.io/pause:3.10", updateStrategy=strategy)
        target["metadata"] = {"name": "web"}
        await client.create(DAEMONSET, target, place.namespace, field_manager=ME)
        pair = await until(place, lambda pair: what.canary_ready(pair, 100).ready)
        hashes = {what.snapshot(pair.target).hash}
        await place.send(what.create(pair))
        assert not what.primary_ready(await place.pair(), 100).ready
        pair = await until(place, lambda pair: what.primary_ready(pair, 100).ready)
        assert what.holds(pair)
        assert what.promote(pair) == ()
        assert what.keep(pair) == ()
        await place.send(what.to_zero(pair))

        def gone(pair: Pair) -> bool:
            status = pair.target["status"]
            looked = status["observedGeneration"] == pair.target["metadata"]["generation"]
            return looked and not status["desiredNumberScheduled"] and not left_behind(pair.target)

        pair = await until(place, gone)
        hashes.add(what.snapshot(pair.target).hash)
        assert what.idle(pair)
        assert not what.empty(pair)
        assert not what.canary_ready(pair, 100).ready
        assert what.promote(pair) == ()
        await place.send(what.to_run(pair))
        pair = await until(place, lambda pair: what.canary_ready(pair, 100).ready)
        hashes.add(what.snapshot(pair.target).hash)
        assert len(hashes) == 1
        assert "nodeSelector" not in pair.target["spec"]["template"]["spec"]
        edit = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}
        await client.patch(DAEMONSET, "web", place.namespace, edit, field_manager=ME)
        pair = await until(place, lambda pair: "eligible" in what.canary_ready(pair, 100).message)
        await place.send(what.promote(replace(pair, revision="v2:01")))
        pair = await until(place, what.empty, "v2:01")
        assert what.primary_ready(pair, 100).ready
        assert what.promote(pair) == ()

    story(warm_cluster, "DaemonSet", DAEMONSET, tell)
