"""Routes against the real CRDs: accepted without an unknown field, and what comes back is not written again."""

from __future__ import annotations

import asyncio
import copy
import secrets
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.clusters import addons
from harness.controller.core.names import names_of
from harness.controller.core.routers.base import Split, Wish
from harness.controller.core.routers.registry import router_for
from harness.kube.client import KubeClient
from harness.kube.resource import NAMESPACE, Resource
from harness.run.addons import provide
from harness.tests.controller_sim import merge
from harness.tests.routers_kit import GATEWAY, canary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.clusters.base import Cluster
    from harness.controller.core.routers.base import Router

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME: Final = "test"
WITHIN: Final = 30.0
TYPES: Final = {
    "httproutes": Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),
    "virtualservices": Resource(
        "networking.istio.io", "v1beta1", "virtualservices", "VirtualService"
    ),
    "destinationrules": Resource(
        "networking.istio.io", "v1beta1", "destinationrules", "DestinationRule"
    ),
}
COOKIES: Final[JSON] = {"cookieName": "stay", "primaryCookieName": "old", "path": "/", "maxAge": 60}
TEST: Final[JSON] = {
    "iterations": 2,
    "match": [
        {"headers": {"x-test": {"exact": "1"}}},
        {"headers": {"cookie": {"regex": "^(.*?;)?(canary=always)(;.*)?$"}}},
    ],
}
HEADERS: Final[JSON] = {
    "request": {"add": {"x-b": "1", "x-a": "2"}, "remove": ["x-gone"]},
    "response": {"set": {"x-c": "3"}, "add": {"Set-Cookie": "own=1"}},
}
OWN: Final = [
    {"uri": {"prefix": "/api"}, "method": {"exact": "GET"}, "headers": {"v": {"regex": "^1"}}},
    {"uri": {"exact": "/health"}, "queryParams": {"q": {"exact": "1"}}},
]
GATEWAY_CASES: Final[dict[str, JSON]] = {
    "plain": canary(GATEWAY),
    "mirrored": canary(GATEWAY, analysis={"mirror": True, "mirrorWeight": 50}),
    "cookies": canary(GATEWAY, analysis={"sessionAffinity": COOKIES}, headers=HEADERS, match=OWN),
    "test": canary(GATEWAY, analysis=TEST, match=OWN, headers=HEADERS),
    "everything": canary(
        GATEWAY,
        analysis={"sessionAffinity": COOKIES},
        hosts=["example.com", "*.example.org"],
        gatewayRefs=[{"name": "gw"}, {"name": "gw", "namespace": "infra", "sectionName": "https"}],
        match=[{"uri": {"prefix": "/api"}}],
        rewrite={"uri": "/", "authority": "inner.example", "type": "ReplacePrefixMatch"},
        headers=HEADERS,
        mirror=[{"backendRef": {"name": "audit", "port": 9}}],
        timeout="1m30s",
        backendTimeout="500ms",
    ),
}
ISTIO_CASES: Final[dict[str, JSON]] = {
    "plain": canary("istio"),
    "mirrored": canary("istio", analysis={"mirror": True, "mirrorWeight": 50}),
    "cookies": canary("istio", analysis={"sessionAffinity": COOKIES}, headers=HEADERS, match=OWN),
    "test": canary("istio", analysis=TEST, match=OWN, headers=HEADERS),
    "delegated": canary("istio", delegation=True, portDiscovery=True),
    "connections": canary("istio", appProtocol="tcp", match=[{"port": 9000}]),
    "everything": canary(
        "istio",
        analysis={"sessionAffinity": COOKIES},
        hosts=["example.com"],
        gateways=["infra/gw"],
        portDiscovery=True,
        match=[{"uri": {"prefix": "/"}, "withoutHeaders": {"x": {}}, "sourceLabels": {"a": "b"}}],
        rewrite={"uri": "/v2", "type": "ReplacePrefixMatch"},
        retries={"attempts": 3, "perTryTimeout": "1s", "retryOn": "5xx"},
        corsPolicy={"allowOrigins": [{"regex": ".*"}], "maxAge": "24h", "allowCredentials": True},
        headers=HEADERS,
        timeout="1.5s",
        trafficPolicy={
            "tls": {"mode": "DISABLE"},
            "loadBalancer": {"simple": "LEAST_REQUEST", "warmupDurationSecs": "30s"},
            "connectionPool": {"http": {"maxRetries": 3, "idleTimeout": "1m"}},
            "outlierDetection": {"consecutive5xxErrors": 5, "interval": "10s"},
        },
    ),
}
CASES: Final = [
    *((f"gateway {name}", case) for name, case in GATEWAY_CASES.items()),
    *((f"istio {name}", case) for name, case in ISTIO_CASES.items()),
]


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster of these tests' own with the CRDs of every mesh, so that no other test meets them."""
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.clusters.embedded.cluster import down, up

    source = str(request.config.getoption("--drill-binaries"))
    name = f"routers-{secrets.token_hex(3)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        binaries = ensure_binaries(source, print)
        made = up(name, nodes=1, seed=1, binaries=binaries, progress=print, owner_pid_bound=True)
        try:
            yield asyncio.run(_with_crds(made))
        finally:
            down(name)


async def _with_crds(cluster: Cluster) -> Cluster:
    names = ["gateway-api", "istio"]
    crds = [crd for name in names for crd in addons.crds(addons.ADDONS[name], print)]
    async with await KubeClient.connect(cluster.kubeconfig, user_agent=ME) as client:
        return await provide(client, cluster, names, crds, print)


class Scene:
    """One Canary's routes on a real API server."""

    def __init__(self, client: KubeClient, namespace: str, owner: JSON) -> None:
        self.client, self.namespace = client, namespace
        self.canary = copy.deepcopy(owner)
        self.canary["metadata"]["namespace"] = namespace
        router = router_for(owner)
        assert router is not None
        self.router: Router = router

    async def wish(self, share: int, *, mirror: bool = False) -> Wish:
        objects: dict[str, dict[str, JSON]] = {}
        for plural in self.router.needs:
            items, _ = await self.client.list(TYPES[plural], self.namespace)
            objects[plural] = {one["metadata"]["name"]: one for one in items}
        names, split = names_of(self.canary, None), Split(share, mirror=mirror)
        return Wish(copy.deepcopy(self.canary), names, split, objects, None, running=True)

    async def write(self, writes: Any) -> None:
        """Carry out writes; a field that the CRD does not know is refused instead of dropped."""
        strict = {"fieldManager": ME, "fieldValidation": "Strict"}
        for write in writes:
            res = TYPES[write.resource]
            if write.verb == "create":
                body = copy.deepcopy(write.body)
                # The garbage collector would remove what belongs to a Canary that is not there.
                body["metadata"].pop("ownerReferences")
                await self.client.raw("POST", res.path(self.namespace), strict, body)
                continue
            body = merge(write.body, {"metadata": {"resourceVersion": write.precondition}})
            path = res.path(self.namespace, write.name)
            kind = "application/merge-patch+json"
            await self.client.raw("PATCH", path, strict, body, content_type=kind)

    async def step(self, share: int, *, mirror: bool = False) -> None:
        await self.write(self.router.route(await self.wish(share, mirror=mirror)))
        wish = await self.wish(share, mirror=mirror)
        self.canary["status"] = merge(self.canary["status"], self.router.status(wish))
        after = await self.wish(share, mirror=mirror)
        assert self.router.route(after) == (), "what the server made of it is written again"
        await self._in_force(share, mirror=mirror)

    async def _in_force(self, share: int, *, mirror: bool) -> None:
        said = "nothing"
        try:
            async with asyncio.timeout(WITHIN):
                while said:
                    said = self.router.waiting(await self.wish(share, mirror=mirror))
                    await asyncio.sleep(0.05 if said else 0)
        except TimeoutError:
            pytest.fail(f"not in force within {WITHIN:g} s; it waits for: {said}")


async def _run(cluster: Cluster, owner: JSON) -> None:
    namespace = f"routers-{secrets.token_hex(3)}"
    async with await KubeClient.connect(cluster.kubeconfig, user_agent=ME) as client:
        await client.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
        scene = Scene(client, namespace, owner)
        assert scene.router.problem(owner) == ""
        try:
            await scene.step(0)
            if owner["spec"]["analysis"].get("mirror"):
                await scene.step(0, mirror=True)
            for share in (10, 100, 0):
                await scene.step(share)
            await scene.write(scene.router.revert(await scene.wish(0)))
            assert scene.router.revert(await scene.wish(0)) == ()
        finally:
            await client.delete(NAMESPACE, namespace)


@pytest.mark.parametrize(("_name", "owner"), CASES, ids=[name for name, _ in CASES])
def test_routes_pass_the_real_schema_and_settle(cluster: Cluster, _name: str, owner: JSON) -> None:
    asyncio.run(_run(cluster, owner))
