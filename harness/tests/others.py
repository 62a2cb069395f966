"""Other people on a cluster, for tests beside them: their Flagger, its Deployment, and Canaries of theirs that have settled."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from harness.kube.resource import CANARY, CRD, DEPLOYMENT, NAMESPACE
from harness.programs.from_module import cached
from harness.run.shared import established
from harness.subjects.base import Access
from harness.subjects.flagger import Flagger, arguments, environment
from harness.subjects.flagger_source import program_of
from harness.subjects.names import parse
from harness.tests.controller_sim import canary, deployment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.client import KubeClient

JSON = dict[str, Any]
VERSION: Final = "1.44.0"
ME: Final = "somebody"
SYSTEM: Final = "flagger-system"
SETTLED_WITHIN: Final = 90


def flagger_deployment(**flags: str) -> JSON:
    """Return the object that shows a Flagger; the test runs its program beside it, so it is scaled to zero."""
    made = deployment(replicas=0)
    made["metadata"] = {"name": "flagger", "namespace": SYSTEM}
    args = [f"-{name.replace('_', '-')}={value}" for name, value in flags.items()]
    container = {"name": "flagger", "image": f"ghcr.io/fluxcd/flagger:{VERSION}", "args": args}
    made["spec"]["template"]["spec"] = {"containers": [container]}
    return made


@contextlib.asynccontextmanager
async def flagger(cluster: EmbeddedCluster, client: KubeClient, log: Path) -> AsyncIterator[None]:
    """Install a Flagger as its users do, for all namespaces, and run it."""
    subject = Flagger(parse(f"flagger@{VERSION}"))
    await subject.obtain(print)
    for crd in subject.cluster_objects():
        await client.create(CRD, crd, field_manager=ME)
        await established(client, str(crd["metadata"]["name"]))
    await client.create(NAMESPACE, {"metadata": {"name": SYSTEM}}, field_manager=ME)
    shown = flagger_deployment(mesh_provider="kubernetes")
    await client.create(DEPLOYMENT, shown, SYSTEM, field_manager=ME)
    program = cached(program_of(VERSION))
    assert program is not None
    argv = arguments(program, Access(cluster.kubeconfig, "", log))
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *argv, env=dict(environment(cluster.kubeconfig)), stdout=file, stderr=file
        )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def settled_canaries(client: KubeClient, namespaces: Sequence[str]) -> None:
    """Make a Canary with its Deployment in each namespace, of the very names that drills use, and wait until Flagger is done with them."""
    for namespace in namespaces:
        await client.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
        for resource, obj in ((DEPLOYMENT, deployment(replicas=1)), (CANARY, canary())):
            obj["metadata"]["namespace"] = namespace
            await client.create(resource, obj, namespace, field_manager=ME)
    async with asyncio.timeout(SETTLED_WITHIN):
        while True:
            found, _ = await client.list(CANARY)
            phases = {(one.get("status") or {}).get("phase") for one in found}
            if phases == {"Initialized"} and await _still(client, namespaces):
                return
            await asyncio.sleep(0.5)


async def _still(client: KubeClient, namespaces: Sequence[str]) -> bool:
    before = await everything(client, namespaces)
    await asyncio.sleep(2)
    return before == await everything(client, namespaces)


async def everything(client: KubeClient, namespaces: Sequence[str]) -> dict[str, str]:
    """Return every object of some namespaces, whole and as text: events apart, which run out by themselves."""
    found: dict[str, str] = {}
    for resource in await client.discover():
        if not resource.namespaced or resource.plural in {"events", "leases"}:
            continue
        for namespace in namespaces:
            for obj in (await client.list(resource, namespace))[0]:
                name = f"{resource.label} {namespace}/{obj['metadata']['name']}"
                found[name] = json.dumps(obj, sort_keys=True)
    return found
