"""Knative into an embedded cluster whose API server serves its types: objects, then processes, then the proof that it answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.knative import objects, proof, site
from harness.clusters.knative.components import components
from harness.clusters.knative.manifests import manifests
from harness.clusters.knative.names import ACCOUNT, NAMESPACE
from harness.clusters.knative.programs import obtain
from harness.clusters.knative.proof import Patience
from harness.kube.access import write_kubeconfig
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from harness.clusters.base import Progress
    from harness.clusters.embedded.records import Record
    from harness.model.timeline import JSON

_AGENT: Final = "rollout-drill/knative"
_YEAR: Final = 365 * 24 * 3600
"""How long its token is good: a cluster that was asked for by name stays until it is removed."""


def install(record: Record, progress: Progress, cancelled: threading.Event | None = None) -> None:
    """Install and start Knative beside a cluster; return when it takes Services. Blocks for some seconds. Raises ClusterError.

    What is there already is left alone, so an installation that was cut short goes on where it ended.
    """
    programs = obtain(progress, cancelled)
    documents = manifests(progress, cancelled)
    record = site.with_port(record)
    port = record.ports[site.WEBHOOK_PORT]
    early = [*documents.rights, *objects.configured(documents.configs)]
    late = [*objects.called_at(documents.hooks, port), *objects.simulated(documents.activator)]
    kubeconfig = record.folder / "knative-kubeconfig"
    patience = Patience(record.name, cancelled)

    async def before() -> None:
        async with await KubeClient.connect(
            record.kubeconfig, record.name, user_agent=_AGENT
        ) as client:
            await create(client, early)
            await write_kubeconfig(
                client,
                admin=record.kubeconfig,
                context=record.name,
                namespace=NAMESPACE,
                service_account=ACCOUNT,
                target=kubeconfig,
                seconds=_YEAR,
            )
            await create(client, late)
        async with await KubeClient.connect(kubeconfig, None, user_agent=_AGENT) as its_own:
            await proof.rights(its_own, patience)

    async def after() -> None:
        async with await KubeClient.connect(
            record.kubeconfig, record.name, user_agent=_AGENT
        ) as client:
            await proof.registered(client, objects.registrations(late), patience)
            await proof.takes_services(client, patience)

    try:
        asyncio.run(before())
        site.start(record, components(programs, kubeconfig))
        asyncio.run(after())
    except KubeError as error:
        msg = f"Knative cannot be installed in embedded cluster {record.name!r}: {error}."
        raise ClusterError(msg) from error


async def create(client: KubeClient, documents: Sequence[JSON]) -> None:
    """Create objects in their order, since a namespace stands before what is in it; those that are there stay as they are.

    It is looked first: where an installation was cut short, a webhook that does not run yet would be asked about a second one.
    """
    types = {(one.api_version, one.kind): one for one in await client.discover()}
    for document in documents:
        resource = types[document["apiVersion"], document["kind"]]
        metadata = document["metadata"]
        namespace = metadata.get("namespace")
        if not await client.exists(resource, metadata["name"], namespace):
            await client.create(resource, document, namespace, field_manager=proof.MANAGER)
