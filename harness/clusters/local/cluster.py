"""Clusters that a tool makes on this machine: made, found, listed and removed by name."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.clusters import workload
from harness.clusters.base import (
    REVISION_IMAGES,
    ChoiceError,
    Cluster,
    ClusterError,
    capabilities,
)
from harness.clusters.existing import takes_pods
from harness.clusters.local import records
from harness.clusters.local.images import archive, in_engine
from harness.model.timeline import ClusterFacts
from harness.programs.errors import ProgramError
from harness.programs.threads import in_thread

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.clusters.local.provider import Provider
    from harness.clusters.local.records import Record
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

READY_WITHIN: Final = 180.0
"""Seconds until all nodes of a new cluster are ready; it takes about fifteen."""


@dataclass(frozen=True, slots=True)
class LocalCluster(Cluster):
    """A cluster that a tool made on this machine, with real nodes."""

    record: Record = dataclasses.field(kw_only=True)
    provider: Provider = dataclasses.field(kw_only=True)

    @property
    def workload_image(self) -> str:
        """Ours, which was loaded into it."""
        return workload.IMAGE

    async def load(self, archive: Path, progress: Progress) -> None:
        """Put an image on every node, unless it was put there before. Raises ClusterError."""
        record = records.read(self.record.kind, self.record.name) or self.record
        if archive.name not in record.images:
            progress(f"Loading {archive.name} into {self.name}.")
            loaded = await in_thread(lambda _: _load(self.provider, record, archive))
            await asyncio.to_thread(records.write, loaded)

    async def load_local(self, images: Sequence[str], progress: Progress) -> None:
        """Load what the engine has of a scenario's images, each once; see `Cluster.load_local`. Raises ClusterError."""
        await asyncio.to_thread(self._load_local, images, progress)

    def _load_local(self, images: Sequence[str], progress: Progress) -> None:
        for image, identity in in_engine(images).items():
            record = records.read(self.record.kind, self.record.name) or self.record
            mark = f"{image}@{identity}"
            if mark in record.images:
                continue
            progress(f"Loading {image} into {self.name}.")
            self.provider.load_local(record, image)
            records.write(dataclasses.replace(record, images=[*record.images, mark]))

    async def save_logs(self, folder: Path) -> None:
        """Copy the logs of its nodes and components; see `Cluster.save_logs`."""
        await asyncio.to_thread(self.provider.export_logs, self.record, folder)


def provider_of(kind: str) -> Provider:
    """Return who makes clusters of a kind on this machine. No I/O but a look at PATH."""
    if kind == "kind":
        from harness.clusters.kind.provider import Kind

        return Kind()
    from harness.clusters.k3s.provider import K3d

    return K3d()


async def up(
    kind: str,
    name: str,
    *,
    nodes: int,
    progress: Progress,
    bound: bool,
    exclusive: bool,
) -> LocalCluster:
    """Make a cluster with so many nodes that take pods, our image on each, and return it when all are ready.

    `bound`: it goes when this process goes, by `down` or at the next sweep. Whatever goes wrong, nothing is left. Raises ClusterError.
    """
    provider = provider_of(kind)
    if why := await asyncio.to_thread(provider.missing):
        raise ClusterError(why)
    record = records.new(kind, name, nodes, provider.tool, bound=bound)
    if name in await asyncio.to_thread(provider.names):
        msg = f"There is a {kind} cluster {name!r} already; use it with --cluster {record.title}, or take another name."
        raise ChoiceError(msg)
    await asyncio.to_thread(records.write, record)
    try:
        progress(f"Making {record.title} with {provider.tool}: a control plane and {nodes} nodes.")
        began = time.monotonic()
        # The image is built while the tool works.
        made, _ = await asyncio.gather(
            in_thread(lambda cancelled: _image(progress, cancelled)),
            in_thread(lambda cancelled: provider.create(record, progress, cancelled)),
        )
        await nodes_ready(record, nodes)
        record = await asyncio.to_thread(_load, provider, record, made)
        record = dataclasses.replace(record, ready=True)
        await asyncio.to_thread(records.write, record)
        progress(f"{record.title} was ready after {time.monotonic() - began:.0f} s.")
        return await opened(provider, record, exclusive=exclusive)
    except BaseException:
        with contextlib.suppress(ClusterError):
            await asyncio.shield(asyncio.to_thread(_remove, provider, record))
        raise


async def find(kind: str, name: str, progress: Progress) -> LocalCluster:
    """Return a cluster of that name, also one that somebody else made with the tool. Raises ClusterError when there is none."""
    provider = provider_of(kind)
    if why := await asyncio.to_thread(provider.missing):
        raise ClusterError(why)
    names = await asyncio.to_thread(provider.names)
    record = records.read(kind, name)
    if name not in names:
        there = ", ".join(names) or "none"
        msg = f"There is no {kind} cluster {name!r} (there are: {there}); make it with: drill cluster up {kind}:{name}."
        raise ChoiceError(msg)
    if record is None:
        record = records.new(kind, name, 0, provider.tool, bound=False, found=True)
        await asyncio.to_thread(records.write, record)
        await asyncio.to_thread(provider.adopt, record)
    made = await in_thread(lambda cancelled: _image(progress, cancelled))
    record = await asyncio.to_thread(_load, provider, record, made)
    await asyncio.to_thread(records.write, record)
    return await opened(provider, record, exclusive=False)


def warm(kind: str, nodes: int) -> list[str]:
    """Return the names of clusters of ours that were made to stay, with so many nodes."""
    return [
        one.name
        for one in records.read_all(kind)
        if one.ready and one.nodes == nodes and not one.owner_bound and not one.found
    ]


def down(kind: str, name: str) -> bool:
    """Delete a cluster of ours; of another's only our kubeconfig goes. False when nothing is known of it. Raises ClusterError."""
    record = records.read(kind, name)
    if record is None:
        return False
    _remove(provider_of(kind), record)
    return True


def abandoned() -> list[Record]:
    """Return the clusters whose owner is gone and that nobody asked to keep."""
    return [
        one
        for one in records.read_all("kind", "k3s")
        if not one.owner_alive and (one.owner_bound or not one.ready) and not one.found
    ]


def remove(record: Record) -> None:
    """Delete a cluster of ours; of another's only our kubeconfig goes. Raises ClusterError."""
    _remove(provider_of(record.kind), record)


async def opened(provider: Provider, record: Record, *, exclusive: bool) -> LocalCluster:
    """Return the cluster of a record, with facts from its API. Raises ClusterError."""
    from harness.kube.errors import KubeError
    from harness.kube.resource import NODE

    try:
        async with await _client(record) as client:
            kubernetes = await client.version()
            nodes, _ = await client.list(NODE)
    except KubeError as error:
        msg = f"{record.title} does not answer: {error}."
        raise ClusterError(msg) from error
    facts = ClusterFacts(
        kind=record.kind,
        name=record.name,
        kubernetes=kubernetes,
        nodes=tuple(sorted(_name(node) for node in nodes if takes_pods(node))),
        exclusive=exclusive,
        capabilities=capabilities(kubernetes, simulated=False, more=(REVISION_IMAGES,)),
    )
    return LocalCluster(record.title, facts, record.kubeconfig, record=record, provider=provider)


async def nodes_ready(record: Record, wanted: int) -> None:
    """Wait until so many nodes take pods. Raises ClusterError that says how each stands."""
    from harness.kube.errors import KubeError
    from harness.kube.resource import NODE
    from harness.kube.watch import Changed, Listed, watch

    seen: dict[str, JSON] = {}
    try:
        async with asyncio.timeout(READY_WITHIN), await _client(record) as client:
            stream = watch(client, NODE)
            try:
                async for event in stream:
                    match event:
                        case Listed(items=items):
                            seen = {_name(item): item for item in items}
                        case Changed(object=obj):
                            seen[_name(obj)] = obj
                        case _:
                            pass
                    if sum(takes_pods(node) for node in seen.values()) >= wanted:
                        return
            finally:
                await stream.aclose()
    except TimeoutError:
        states = ", ".join(
            f"{name} {'takes pods' if takes_pods(node) else 'does not take pods'}"
            for name, node in sorted(seen.items())
        )
        msg = f"The nodes of {record.title} were not ready within {READY_WITHIN:.0f} s: {states or 'there is none'}."
        raise ClusterError(msg) from None
    except KubeError as error:
        msg = f"{record.title} does not answer: {error}."
        raise ClusterError(msg) from error


async def _client(record: Record) -> KubeClient:
    from harness.kube.client import KubeClient

    return await KubeClient.connect(
        record.kubeconfig, None, user_agent=f"rollout-drill/{__version__}"
    )


def _image(progress: Progress, cancelled: threading.Event | None) -> Path:
    program = workload.obtain(progress, cancelled)
    try:
        return archive(program, workload.IMAGE, cancelled)
    except ProgramError as error:
        msg = f"The image of workloads cannot be made: {error}"
        raise ClusterError(msg) from error


def _load(provider: Provider, record: Record, made: Path) -> Record:
    """Load an image unless the cluster has it; return the record that says so."""
    mark = made.name
    if mark in record.images:
        return record
    provider.load(record, made)
    return dataclasses.replace(record, images=[*record.images, mark])


def _remove(provider: Provider, record: Record) -> None:
    if not record.found:
        provider.delete(record)
    records.forget(record)


def _name(node: JSON) -> str:
    return str(node["metadata"]["name"])
