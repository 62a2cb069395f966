"""Killed after every single write on a real control plane: the same end, and never fewer ready pods behind the apex than without.

The stories of virtual time (`test_controller_crash.py`) are many; here are four of them against real controllers, scheduler and API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters import addons
from harness.clusters.embedded.binaries import ensure_binaries
from harness.clusters.embedded.cluster import down, up
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError
from harness.kube.resource import (
    CANARY,
    CRD,
    DAEMONSET,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    SERVICE,
    Resource,
)
from harness.kube.watch import Listed, watch
from harness.run.addons import provide
from harness.subjects.bundled import Bundled
from harness.tests.controller_mortal import Life, controlled
from harness.tests.controller_sim_make import canary, daemonset, deployment, image, target_ref

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from harness.clusters.base import Cluster
    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(900)]

JSON = dict[str, Any]
ME = "rollout-drill"
ROUTE = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
COMPARED = (CANARY, DEPLOYMENT, DAEMONSET, SERVICE, ROUTE)
AT_ONCE = 6
PODS = 2
"""Of each story: replicas, or nodes."""
SPARE = 2
"""How many of the last writes need not come in every telling."""
WITHIN = 120.0
FAST = {"interval": "1s", "threshold": 1}
_TIMES = ("lastTransitionTime", "lastUpdateTime")
_OF_THE_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "namespace",
)


@dataclass
class Place:
    """A namespace, and everything that happened to its pods and its apex Service."""

    client: KubeClient
    namespace: str
    _seen: list[tuple[int, str, JSON]] = field(default_factory=list)
    """(version, type of the change, object)."""

    async def create(self, resource: Resource, obj: JSON) -> None:
        here = {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}}
        await self.client.create(resource, here, self.namespace, field_manager=ME)

    async def change(self, resource: Resource, patch: JSON) -> None:
        await self.client.patch(resource, "web", self.namespace, patch, field_manager=ME)

    async def until(self, *phases: str) -> None:
        last = "nothing"
        try:
            async with asyncio.timeout(WITHIN):
                async for event in watch(self.client, CANARY, self.namespace):
                    items = event.items if isinstance(event, Listed) else [event.object]
                    for item in items:
                        last = str((item.get("status") or {}).get("phase") or "")
                        if last in phases:
                            return
        except TimeoutError:
            pytest.fail(f"{self.namespace}: {last} instead of {phases} after {WITHIN:g} s")

    async def gone(self) -> None:
        async with asyncio.timeout(WITHIN):
            async for event in watch(self.client, CANARY, self.namespace):
                if isinstance(event, Listed) and not event.items:
                    return
                if not isinstance(event, Listed) and event.type == "DELETED":
                    return

    async def collected(self) -> None:
        """Wait for the garbage collector, which takes what the Canary owned."""
        for resource, name in (
            (DEPLOYMENT, "web-primary"),
            (SERVICE, "web-primary"),
            (SERVICE, "web-canary"),
        ):
            async with asyncio.timeout(WITHIN):
                while await self.client.exists(resource, name, self.namespace):  # noqa: ASYNC110 - the server is what is waited for
                    await asyncio.sleep(0.1)

    async def follow(self, resource: Resource) -> None:
        """Take note of every change."""
        async for event in watch(self.client, resource, self.namespace):
            if isinstance(event, Listed):
                changes = [("MODIFIED", item) for item in event.items]
            else:
                changes = [(event.type, event.object)]
            for kind, obj in changes:
                self._seen.append((int(obj["metadata"]["resourceVersion"]), kind, obj))

    def fewest(self) -> tuple[int, str]:
        """Return how many ready pods the apex Service selected at the worst, from when all were first there, and what that looked like.

        Two watches bring their changes at different times; the versions tell in which order they happened.
        """
        pods: dict[str, JSON] = {}
        apex: JSON = {}
        fewest: int | None = None
        worst = ""
        for _, kind, obj in sorted(self._seen, key=lambda change: change[0]):
            name = obj["metadata"]["name"]
            if obj["kind"] == SERVICE.kind and name == "web":
                apex = {} if kind == "DELETED" else obj["spec"].get("selector") or {}
            elif obj["kind"] == POD.kind:
                pods[name] = obj
                if kind == "DELETED":
                    del pods[name]
            ready = sum(_ready(pod) for pod in pods.values() if _selected(apex, pod))
            started = apex and (fewest is not None or ready == PODS)
            if started and (fewest is None or ready < fewest):
                fewest = ready
                worst = (
                    f"{kind} {obj['kind']}/{name}: {apex} of {sorted(map(_shown, pods.values()))}"
                )
        assert fewest is not None
        return fewest, worst

    async def essence(self) -> dict[str, Any]:
        """Return all objects without what counts writes, tells the time, or differs between two servers' answers."""
        found: dict[str, Any] = {}
        for resource in COMPARED:
            for obj in (await self.client.list(resource, self.namespace))[0]:
                found[f"{resource.kind}/{obj['metadata']['name']}"] = _plain(obj)
        return found


def _shown(pod: JSON) -> str:
    going = " going" if pod["metadata"].get("deletionTimestamp") else ""
    return f"{pod['metadata']['name']}{' ready' if _ready(pod) else ''}{going}"


def _selected(apex: JSON, pod: JSON) -> bool:
    return apex.items() <= (pod["metadata"].get("labels") or {}).items()


def _ready(pod: JSON) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    good = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return good and not pod["metadata"].get("deletionTimestamp")


def _plain(obj: JSON) -> JSON:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _OF_THE_SERVER}
    status = dict(obj.get("status") or {})
    spec = dict(obj.get("spec") or {})
    for key in ("clusterIP", "clusterIPs"):
        spec.pop(key, None)
    if obj["kind"] != CANARY.kind:
        counts = {key: value for key, value in status.items() if key.endswith("eplicas")}
        return {"metadata": meta, "spec": spec, "status": counts}
    status.pop("lastTransitionTime", None)
    status.pop("lastTrackedRevision", None)
    status["conditions"] = [
        {key: value for key, value in condition.items() if key not in _TIMES}
        for condition in status.get("conditions") or []
    ]
    return {"metadata": meta, "spec": spec, "status": status}


# -- the stories -------------------------------------------------------------------------------------------------------------


async def _blue_green(place: Place) -> None:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "matchLabelKeys": ["pod-template-hash"],
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    target = deployment(replicas=PODS)
    spread = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    target["spec"]["template"]["spec"]["affinity"] = spread
    await place.create(DEPLOYMENT, target)
    await place.create(
        CANARY, canary(analysis=FAST | {"iterations": 1}, progressDeadlineSeconds=90)
    )
    await place.until("Initialized")
    await place.change(DEPLOYMENT, image("app:2"))
    await place.until("Succeeded")


async def _daemonset(place: Place) -> None:
    await place.create(DAEMONSET, daemonset())
    spec = {"targetRef": target_ref("DaemonSet"), "analysis": FAST | {"iterations": 1}}
    await place.create(CANARY, canary(**spec, progressDeadlineSeconds=90))
    await place.until("Initialized")
    await place.change(DAEMONSET, image("app:2"))
    await place.until("Succeeded")


async def _weights(place: Place) -> None:
    await place.create(DEPLOYMENT, deployment(replicas=PODS))
    spec: JSON = {
        "provider": "gatewayapi:v1",
        "service": {"port": 80, "gatewayRefs": [{"name": "gateway"}]},
        "analysis": FAST | {"stepWeight": 50, "maxWeight": 50},
    }
    await place.create(CANARY, canary(**spec, progressDeadlineSeconds=90))
    await place.until("Initialized")
    await place.change(DEPLOYMENT, image("app:2"))
    await place.until("Succeeded")


async def _deletion(place: Place) -> None:
    port = {"name": "http", "port": 80, "targetPort": 80, "protocol": "TCP"}
    apex: JSON = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [port]},
    }
    await place.create(SERVICE, apex)
    await place.create(DEPLOYMENT, deployment(replicas=PODS))
    spec = {"revertOnDeletion": True, "analysis": FAST | {"iterations": 1}}
    await place.create(CANARY, canary(**spec, progressDeadlineSeconds=90))
    await place.until("Initialized")
    await place.client.delete(CANARY, "web", place.namespace)
    await place.gone()
    await place.collected()


STORIES: dict[str, Callable[[Place], Awaitable[None]]] = {
    "node-spread": _blue_green,
    "daemonset": _daemonset,
    "weights": _weights,
    "deletion": _deletion,
}


# -- how they are told -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Two nodes, and routes that somebody accepts."""
    source = str(request.config.getoption("--drill-binaries"))
    name = f"crash-{secrets.token_hex(3)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        made = up(
            name,
            nodes=2,
            seed=1,
            binaries=ensure_binaries(source, print),
            progress=print,
            owner_pid_bound=True,
            exclusive=False,
        )
        try:
            yield asyncio.run(_furnished(made))
        finally:
            down(name)


async def _furnished(made: EmbeddedCluster) -> Cluster:
    crds = list(addons.crds(addons.ADDONS["gateway-api"], print))
    async with _client(made) as client:
        for crd in Bundled().cluster_objects():
            await client.apply(CRD, crd, field_manager=ME, force=True)
        return await provide(client, made, ["gateway-api"], crds, print)


@contextlib.asynccontextmanager
async def _client(cluster: Cluster) -> AsyncIterator[KubeClient]:
    async with await KubeClient.connect(
        cluster.kubeconfig, cluster.context, user_agent="rollout-drill/test"
    ) as client:
        yield client


async def _told(
    cluster: Cluster, client: KubeClient, story: str, kill_after: int | None
) -> tuple[dict[str, Any], tuple[int, str], Life]:
    """Return the essence of the end, the fewest ready pods, and how the controller lived."""
    place = Place(client, f"crash-{secrets.token_hex(4)}")
    await client.create(NAMESPACE, {"metadata": {"name": place.namespace}}, field_manager=ME)
    life = Life(kill_after)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                controlled(cluster.kubeconfig, cluster.context, place.namespace, life)
            ),
            group.create_task(place.follow(POD)),
            group.create_task(place.follow(SERVICE)),
        ]
        await STORIES[story](place)
        found = await _at_rest(place)
        for task in tasks:
            task.cancel()
    with contextlib.suppress(KubeError):
        await client.delete(NAMESPACE, place.namespace)
    return found, place.fewest(), life


async def _at_rest(place: Place) -> dict[str, Any]:
    """Return the objects once nothing changes any more: old pods go, the garbage collector comes."""
    found: dict[str, Any] = {}
    async with asyncio.timeout(WITHIN):
        while True:
            await asyncio.sleep(1.0)
            now = await place.essence()
            if now == found:
                return found
            found = now


@pytest.mark.parametrize("story", STORIES)
def test_killed_after_each_of_its_writes_it_ends_as_if_undisturbed(
    cluster: Cluster, story: str
) -> None:
    async def tell() -> int:
        async with _client(cluster) as client:
            wanted, (fewest, _), undisturbed = await _told(cluster, client, story, None)
            writes, killed = undisturbed.writes, set[int]()
            limit = asyncio.Semaphore(AT_ONCE)

            async def one(number: int) -> None:
                async with limit:
                    found, (few, worst), life = await _told(cluster, client, story, number)
                if life.over.is_set():
                    killed.add(number)
                where = f"{story}: killed after write {number} of {writes}"
                assert found.keys() == wanted.keys(), where
                for key in wanted:
                    assert found[key] == wanted[key], f"{where}: {key}"
                assert few >= fewest, f"{story}: {few} ready pods after write {number}, at {worst}"

            async with asyncio.TaskGroup() as group:
                for number in range(1, writes + 1):
                    group.create_task(one(number))
            # Two changes that a status tells may be seen at once or one after the other, so a story has a write more or less.
            missed = set(range(1, writes + 1)) - killed
            assert min(missed, default=writes) > writes - SPARE, f"{story}: never came: {missed}"
            return len(killed)

    points = asyncio.run(tell())
    print(f"{story}: killed after each of {points} writes")  # noqa: T201 - the number is asked for
    assert points > 10
