"""Knative into an embedded cluster whose API server serves its types: objects, then processes, then the proof that it answers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.knative import objects, site
from harness.clusters.knative.components import components
from harness.clusters.knative.manifests import manifests
from harness.clusters.knative.names import ACCOUNT, NAMESPACE
from harness.clusters.knative.programs import obtain
from harness.kube.access import write_kubeconfig
from harness.kube.client import KubeClient
from harness.kube.errors import AlreadyExists, KubeError
from harness.kube.resource import CONFIGMAP, Resource

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable, Sequence

    from harness.clusters.base import Progress
    from harness.clusters.embedded.records import Record
    from harness.model.timeline import JSON

_AGENT: Final = "rollout-drill/knative"
_MANAGER: Final = "rollout-drill"
_YEAR: Final = 365 * 24 * 3600
"""How long its token is good: a cluster that was asked for by name stays until it is removed."""
RIGHTS_WITHIN: Final = 30.0
"""Seconds until kube-controller-manager has filled an aggregated role; it takes about one."""
ANSWERS_WITHIN: Final = 60.0
"""Seconds until Knative's webhook answers, and until a Service is ready; each takes some seconds."""
_LOOK: Final = 0.1
"""Neither rights nor answers of a webhook can be watched."""
SERVICE: Final = Resource("serving.knative.dev", "v1", "services", "Service")
_TRIAL: Final = "trial"
TRIAL: Final[JSON] = {
    "apiVersion": SERVICE.api_version,
    "kind": SERVICE.kind,
    "metadata": {"name": _TRIAL},
    "spec": {
        "template": {
            "metadata": {"annotations": {"autoscaling.knative.dev/initial-scale": "0"}},
            "spec": {"containers": [{"image": "dev.local/trial"}]},
        }
    },
}


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

    async def before() -> None:
        async with await KubeClient.connect(
            record.kubeconfig, record.name, user_agent=_AGENT
        ) as client:
            await _create(client, early)
            await write_kubeconfig(
                client,
                admin=record.kubeconfig,
                context=record.name,
                namespace=NAMESPACE,
                service_account=ACCOUNT,
                target=kubeconfig,
                seconds=_YEAR,
            )
            await _create(client, late)
        async with await KubeClient.connect(kubeconfig, None, user_agent=_AGENT) as its_own:
            # Its programs give up after some seconds without a right to read their ConfigMaps.
            await _until(
                "Knative's service account had no rights",
                lambda: its_own.get(CONFIGMAP, "config-logging", NAMESPACE),
                RIGHTS_WITHIN,
            )

    async def after() -> None:
        async with await KubeClient.connect(
            record.kubeconfig, record.name, user_agent=_AGENT
        ) as client:
            await _proved(client)

    try:
        asyncio.run(before())
        site.start(record, components(programs, kubeconfig))
        asyncio.run(after())
    except KubeError as error:
        msg = f"Knative cannot be installed in embedded cluster {record.name!r}: {error}."
        raise ClusterError(msg) from error


async def _create(client: KubeClient, documents: Sequence[JSON]) -> None:
    """Create objects in their order: a namespace stands before what is in it."""
    types = {(one.api_version, one.kind): one for one in await client.discover()}
    for document in documents:
        resource = types[document["apiVersion"], document["kind"]]
        try:
            await client.create(
                resource, document, document["metadata"].get("namespace"), field_manager=_MANAGER
            )
        except AlreadyExists:
            continue


async def _proved(client: KubeClient) -> None:
    """Return once a Service was ready, which takes all three programs; without a pod, so that it is quick. Raises ClusterError."""

    async def make() -> None:
        with contextlib.suppress(AlreadyExists):
            made = await client.create(SERVICE, TRIAL, NAMESPACE, field_manager=_MANAGER)
            if "containerConcurrency" not in made["spec"]["template"]["spec"]:
                msg = "a Service came back as it was sent"
                raise KubeError(msg)

    async def look() -> None:
        status = (await client.get(SERVICE, _TRIAL, NAMESPACE)).get("status") or {}
        conditions = {one["type"]: one for one in status.get("conditions") or ()}
        ready = conditions.get("Ready") or {"status": "unknown, since nobody looks after it"}
        if ready["status"] != "True":
            msg = f"its condition Ready is {ready['status']} {ready.get('message', '')}".strip()
            raise KubeError(msg)

    await _until("Knative's webhook did not answer", make, ANSWERS_WITHIN)
    await _until("no Service of Knative became ready", look, ANSWERS_WITHIN)
    await client.delete(SERVICE, _TRIAL, NAMESPACE)


async def _until(what: str, ask: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Return when asking succeeds. Raises ClusterError with the last answer."""
    last = "nothing was answered"
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    await ask()
                except KubeError as error:
                    last = str(error)
                else:
                    return
                await asyncio.sleep(_LOOK)
    except TimeoutError:
        msg = f"{what} within {seconds:g} s: {last}."
        raise ClusterError(msg) from None
