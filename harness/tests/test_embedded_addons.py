"""Add-ons on the real control plane: types that are served, and routes that get a status. Knative has a file of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.clusters import addons
from harness.clusters.embedded import processes
from harness.kube.client import KubeClient
from harness.kube.resource import CRD, NAMESPACE, POD, SERVICEACCOUNT, Resource
from harness.run.addons import provide

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from harness.clusters.base import Cluster
    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME: Final = "test"
ROUTE: Final = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
GATEWAY: Final = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
WITHIN: Final = 15.0


@pytest.fixture(scope="module")
def bare(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    """A cluster of these tests' own, so that no other test meets types that it did not ask for."""
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.clusters.embedded.cluster import down, up

    source = str(request.config.getoption("--drill-binaries"))
    name = f"addons-{secrets.token_hex(3)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        made = up(
            name,
            nodes=1,
            seed=1,
            binaries=ensure_binaries(source, print),
            progress=print,
            owner_pid_bound=True,
        )
        try:
            yield made
        finally:
            down(name)


ALL: Final = [name for name in addons.ADDONS if name != addons.KNATIVE]


async def _with_all(cluster: Cluster) -> Cluster:
    crds = [crd for name in ALL for crd in addons.crds(addons.ADDONS[name], print)]
    async with await KubeClient.connect(cluster.kubeconfig, user_agent=ME) as client:
        return await provide(client, cluster, ALL, crds, print)


@pytest.fixture(scope="module")
def cluster(bare: EmbeddedCluster) -> Cluster:
    """The cluster with all add-ons that are types and stages alone."""
    return asyncio.run(_with_all(bare))


def within(cluster: Cluster, act: Callable[[KubeClient, str], Awaitable[None]]) -> None:
    """Do something with a client in a namespace of its own."""

    async def run() -> None:
        namespace = f"addons-{secrets.token_hex(3)}"
        async with await KubeClient.connect(cluster.kubeconfig, user_agent=ME) as client:
            await client.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
            try:
                await act(client, namespace)
            finally:
                await client.delete(NAMESPACE, namespace)

    asyncio.run(run())


async def seen(
    client: KubeClient, key: Resource, where: tuple[str, str], holds: Callable[[JSON], bool]
) -> JSON:
    """Return an object once `holds` does."""
    namespace, name = where
    last: JSON = {}
    try:
        async with asyncio.timeout(WITHIN):
            while True:
                last = await client.get(key, name, namespace)
                if holds(last):
                    return last
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(
            f"{key.kind} not as expected within {WITHIN:g} s; seen last: {last.get('status')}"
        )


def accepted(route: JSON) -> list[tuple[str, str, int]]:
    """Return parent, status and generation of each Accepted condition."""
    return [
        (parent["parentRef"]["name"], one["status"], one["observedGeneration"])
        for parent in (route.get("status") or {}).get("parents") or ()
        for one in parent["conditions"]
        if one["type"] == "Accepted"
    ]


def true_conditions(obj: JSON) -> set[str]:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return {one["type"] for one in conditions if one["status"] == "True"}


def route(*parents: str, **labels: str) -> JSON:
    return {
        "apiVersion": ROUTE.api_version,
        "kind": ROUTE.kind,
        "metadata": {"name": "web", "labels": labels},
        "spec": {
            "parentRefs": [{"name": name} for name in parents],
            "rules": [{"backendRefs": [{"name": "web", "port": 80, "weight": 100}]}],
        },
    }


def test_all_types_of_all_add_ons_are_served_and_belong_to_nobody_but_the_cluster(
    cluster: Cluster,
) -> None:
    assert {*ALL, "simulated-routes"} <= set(cluster.facts.capabilities)
    assert len(cluster.facts.addons) == len(ALL)

    async def act(client: KubeClient, _: str) -> None:
        served = {f"{one.plural}.{one.group}" for one in await client.discover()}
        for addon in addons.chosen(ALL):
            assert served.issuperset(addon.crds)
            for name in addon.crds:
                conditions = (await client.get(CRD, name))["status"]["conditions"]
                assert ("Established", "True") in {(c["type"], c["status"]) for c in conditions}

    within(cluster, act)


def test_a_second_time_nothing_is_made_and_kwok_goes_on(cluster: Cluster) -> None:
    from harness.clusters.embedded.cluster import find

    found = find(cluster.facts.name)
    assert found is not None, "a later run finds the warm cluster"
    assert found.facts.addons == cluster.facts.addons
    before = processes.running(found.record)
    again = asyncio.run(_with_all(found))
    assert again is found
    assert processes.running(found.record) == before
    assert os.getpid() not in before.values()


def test_a_route_is_accepted_at_every_generation_by_all_parents(cluster: Cluster) -> None:
    async def act(client: KubeClient, namespace: str) -> None:
        where = (namespace, "web")
        await client.create(ROUTE, route("edge", "inner"), namespace, field_manager=ME)
        first = await seen(client, ROUTE, where, lambda o: len(accepted(o)) == 2)
        assert accepted(first) == [("edge", "True", 1), ("inner", "True", 1)]
        assert [p["parentRef"] for p in first["status"]["parents"]] == first["spec"]["parentRefs"]
        types = [one["type"] for one in first["status"]["parents"][0]["conditions"]]
        assert types == ["Accepted", "ResolvedRefs"]
        patch = {"spec": route("edge")["spec"]}
        patch["spec"]["rules"][0]["backendRefs"][0]["weight"] = 50
        await client.patch(ROUTE, "web", namespace, patch, field_manager=ME)
        await seen(client, ROUTE, where, lambda o: accepted(o) == [("edge", "True", 2)])

    within(cluster, act)


def test_a_route_is_refused_or_not_answered_when_told(cluster: Cluster) -> None:
    async def act(client: KubeClient, namespace: str) -> None:
        where = (namespace, "web")

        async def tell(value: str | None, weight: int) -> None:
            patch = {
                "metadata": {"labels": {"rollout-drill/route": value}},
                "spec": route("edge")["spec"],
            }
            patch["spec"]["rules"][0]["backendRefs"][0]["weight"] = weight
            await client.patch(ROUTE, "web", namespace, patch, field_manager=ME)

        told = route("edge", **{"rollout-drill/route": "refused"})
        await client.create(ROUTE, told, namespace, field_manager=ME)
        await seen(client, ROUTE, where, lambda o: accepted(o) == [("edge", "False", 1)])
        await tell(None, 100)  # the generation stays, the answer does not
        await seen(client, ROUTE, where, lambda o: accepted(o) == [("edge", "True", 1)])
        await tell("never", 50)
        # Another route is answered meanwhile: so this one would have been.
        other = route("edge")
        other["metadata"]["name"] = "other"
        await client.create(ROUTE, other, namespace, field_manager=ME)
        await seen(client, ROUTE, (namespace, "other"), lambda o: bool(accepted(o)))
        late = await client.get(ROUTE, "web", namespace)
        assert late["metadata"]["generation"] == 2
        assert accepted(late) == [("edge", "True", 1)]
        await tell("refused", 50)
        await seen(client, ROUTE, where, lambda o: accepted(o) == [("edge", "False", 2)])

    within(cluster, act)


def test_a_gateway_is_programmed_and_pods_start_as_before(cluster: Cluster) -> None:
    gateway = {
        "apiVersion": GATEWAY.api_version,
        "kind": GATEWAY.kind,
        "metadata": {"name": "edge"},
        "spec": {
            "gatewayClassName": "any",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    }
    pod = {
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "app", "image": "registry.k8s.io/pause:3.10"}]},
    }

    async def act(client: KubeClient, namespace: str) -> None:
        await client.create(GATEWAY, gateway, namespace, field_manager=ME)
        async with asyncio.timeout(WITHIN):
            while not await client.exists(SERVICEACCOUNT, "default", namespace):  # noqa: ASYNC110 - the server is what is waited for
                await asyncio.sleep(0.05)
        await client.create(POD, pod, namespace, field_manager=ME)
        found = await seen(
            client,
            GATEWAY,
            (namespace, "edge"),
            lambda o: {"Accepted", "Programmed"} == true_conditions(o),
        )
        assert {c["observedGeneration"] for c in found["status"]["conditions"]} == {1}
        await seen(
            client,
            POD,
            (namespace, "one"),
            lambda o: "Ready" in true_conditions(o),
        )

    within(cluster, act)
