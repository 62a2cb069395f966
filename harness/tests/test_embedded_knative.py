"""The real Knative Serving beside simulated pods: what it makes of a Service, what it refuses, and what never leaves its namespace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.clusters import addons
from harness.clusters.embedded import processes
from harness.clusters.knative import site
from harness.clusters.knative.dataplane import INGRESS, SERVICE
from harness.clusters.knative.names import CONCURRENCY, REVISION
from harness.kube.client import KubeClient
from harness.kube.errors import ApiError
from harness.kube.resource import CANARY, CRD, NAMESPACE, POD, Resource
from harness.run.addons import furnish, needed
from harness.subjects.bundled import Bundled
from harness.tests.controller_mortal import Life, controlled
from harness.tests.controller_sim_make import canary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from harness.clusters.base import Cluster
    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
ME: Final = "test"
REVISIONS: Final = Resource("serving.knative.dev", "v1", "revisions", "Revision")
WITHIN: Final = 60.0
LAG: Final = 5.0
"""Seconds for which Knative does nothing (case C22)."""


@pytest.fixture(scope="module")
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    """A cluster with Knative."""
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.clusters.embedded.cluster import down, up

    source = str(request.config.getoption("--drill-binaries"))
    name = f"knative-{secrets.token_hex(3)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILL_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        wanted = needed(addons.chosen([addons.KNATIVE]), print)
        cluster = up(
            name,
            nodes=2,
            seed=1,
            binaries=ensure_binaries(source, print),
            progress=print,
            owner_pid_bound=True,
        )
        try:
            asyncio.run(_furnish(cluster, wanted))
            yield cluster
        finally:
            down(name)
            assert not site.running(cluster.record)


async def _furnish(cluster: Cluster, wanted: dict[str, list[JSON]]) -> None:
    found = await furnish(cluster, wanted, print)
    assert "knative" in found.facts.capabilities


@contextlib.asynccontextmanager
async def place(cluster: Cluster) -> Any:
    """A client, and a namespace of the test's own."""
    namespace = f"knative-{secrets.token_hex(3)}"
    async with await KubeClient.connect(cluster.kubeconfig, user_agent=ME) as client:
        await client.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
        try:
            yield client, namespace
        finally:
            await client.delete(NAMESPACE, namespace)


def template(tag: int, **labels: str) -> JSON:
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"image": f"registry.example/web:{tag}"}]},
    }


def service(concurrency: str | None = "10") -> JSON:
    notes = {} if concurrency is None else {CONCURRENCY: concurrency}
    return {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": {"name": "web", "annotations": notes},
        "spec": {"template": template(1)},
    }


async def until(what: str, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Return what is asked for once it is something; kinds of several projects, so that one watch will not do."""
    last: Any = None
    try:
        async with asyncio.timeout(WITHIN):
            while not (last := await ask()):  # noqa: ASYNC110 - the server is what is waited for
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {WITHIN:g} s: {what}; seen last: {last}")
    return last


def conditions(obj: JSON) -> dict[str, str]:
    return {one["type"]: one["status"] for one in (obj.get("status") or {}).get("conditions") or ()}


async def settled(client: KubeClient, namespace: str, newest: str) -> JSON:
    async def ask() -> JSON | None:
        found = await client.get(SERVICE, "web", namespace)
        status = found.get("status") or {}
        observed = status.get("observedGeneration") == found["metadata"]["generation"]
        ready = status.get("latestReadyRevisionName") == newest
        return found if observed and ready and conditions(found)["Ready"] == "True" else None

    found: JSON = await until(f"{newest} is ready", ask)
    return found


def shares(rows: list[JSON], name: str) -> dict[str, int]:
    return {row[name]: row["percent"] for row in rows if row.get("percent")}


def test_traffic_moves_from_spec_to_status_to_ingress_and_pods_follow_it(
    made: EmbeddedCluster,
) -> None:
    async def act() -> None:
        async with place(made) as (client, namespace):
            await client.create(SERVICE, service(), namespace, field_manager=ME)
            await settled(client, namespace, "web-00001")
            traffic = [
                {"latestRevision": True, "percent": 20},
                {"revisionName": "web-00001", "percent": 80},
            ]
            patch = {"spec": {"template": template(2), "traffic": traffic}}
            await client.patch(SERVICE, "web", namespace, patch, field_manager=ME)
            found = await settled(client, namespace, "web-00002")
            wanted = {"web-00001": 80, "web-00002": 20}
            assert shares(found["status"]["traffic"], "revisionName") == wanted
            ingress = await client.get(INGRESS, "web", namespace)
            for rule in ingress["spec"]["rules"]:
                assert shares(rule["http"]["paths"][0]["splits"], "serviceName") == wanted

            # All requests go to the first again: the second loses its pod and stays ready, and comes back with its share.
            back = [
                {"latestRevision": True, "percent": 0},
                {"revisionName": "web-00001", "percent": 100},
            ]
            await client.patch(
                SERVICE, "web", namespace, {"spec": {"traffic": back}}, field_manager=ME
            )

            async def pods() -> dict[str, int]:
                items, _ = await client.list(POD, namespace, label_selector=REVISION)
                names = [pod["metadata"]["labels"][REVISION] for pod in items]
                return {name: names.count(name) for name in names}

            async def only_first() -> bool:
                return await pods() == {"web-00001": 1}

            await until("the second revision is at zero", only_first)
            idle = conditions(await client.get(REVISIONS, "web-00002", namespace))
            assert (idle["Ready"], idle["Active"]) == ("True", "False")
            await client.patch(
                SERVICE, "web", namespace, {"spec": {"traffic": traffic}}, field_manager=ME
            )

            async def both() -> bool:
                return len(await pods()) > 1

            await until("requests that wait bring it back", both)
            await _refused(client, namespace)

    asyncio.run(act())
    assert site.counters(made.record).no_route == 0, site.says(made.record)


async def _refused(client: KubeClient, namespace: str) -> None:
    """What the real webhook refuses: a revision that is edited, and shares that are not a hundred."""
    edit = {"spec": {"timeoutSeconds": 17}}
    with pytest.raises(ApiError, match="Immutable fields changed"):
        await client.patch(REVISIONS, "web-00001", namespace, edit, field_manager=ME)
    short = {"spec": {"traffic": [{"latestRevision": True, "percent": 60}]}}
    with pytest.raises(ApiError, match="Traffic targets sum to 60, want 100"):
        await client.patch(SERVICE, "web", namespace, short, field_manager=ME)


def test_while_knative_lags_nothing_is_promoted_and_nothing_gets_traffic(
    made: EmbeddedCluster,
) -> None:
    """Case C22: before the new revision appears the phase stays and the weights are 0/100; afterwards it is promoted."""
    rollout = canary(
        provider="knative",
        targetRef={"apiVersion": SERVICE.api_version, "kind": SERVICE.kind, "name": "web"},
        analysis={"interval": "1s", "threshold": 1, "stepWeights": [20, 50]},
    )
    seen: list[tuple[str, int]] = []

    async def act() -> None:
        async with place(made) as (client, namespace):
            for crd in Bundled().cluster_objects():
                await client.apply(CRD, crd, field_manager=ME, force=True)

            async def phase(*wanted: str) -> None:
                async def ask() -> bool:
                    status = (await client.get(CANARY, "web", namespace)).get("status") or {}
                    seen.append((str(status.get("phase")), int(status.get("canaryWeight") or 0)))
                    return seen[-1][0] in wanted

                await until(f"phase {wanted}", ask)

            driven = controlled(made.kubeconfig, made.context, namespace, Life())
            controller = asyncio.create_task(driven)
            pid = processes.running(made.record)["knative-controller"]
            try:
                await client.create(SERVICE, service(), namespace, field_manager=ME)
                rollout["metadata"]["namespace"] = namespace
                await client.create(CANARY, rollout, namespace, field_manager=ME)
                await phase("Initialized")
                os.kill(pid, signal.SIGSTOP)
                patch = {"spec": {"template": template(2)}}
                await client.patch(SERVICE, "web", namespace, patch, field_manager=ME)
                seen.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAG):
                        await phase("Succeeded", "Failed")
                assert set(seen) == {("Initialized", 0)}, seen
                lagging = await client.get(SERVICE, "web", namespace)
                assert shares(lagging["status"]["traffic"], "revisionName") == {"web-00001": 100}
                os.kill(pid, signal.SIGCONT)
                await phase("Succeeded")
            finally:
                os.kill(pid, signal.SIGCONT)
                controller.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await controller
            assert {20, 50} <= {weight for _, weight in seen}
            found = await settled(client, namespace, "web-00002")
            assert found["metadata"]["annotations"]["flagger.app/primary-revision"] == "web-00002"
            assert shares(found["status"]["traffic"], "revisionName") == {"web-00002": 100}

    asyncio.run(act())
    assert site.counters(made.record).no_route == 0, site.says(made.record)
