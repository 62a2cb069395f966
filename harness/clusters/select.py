"""Which cluster `--cluster` means, and opening it for as long as a run needs it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from harness.clusters.base import ChoiceError, Cluster, Progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.clusters.embedded.components import Binaries

Kind = Literal["embedded", "context"]
ALLOWED: Final = "embedded, embedded:NAME, context:NAME"
_LATER: Final = ("kind", "k3s")
_T = TypeVar("_T")
_used: set[str] = set()
"""Warm clusters that this process has open: two subjects may bring different CRDs, so each gets its own."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a value of `--cluster` means."""

    kind: Kind
    name: str = ""
    """Of a warm embedded cluster, or of a context; empty for any embedded cluster."""


def parse(text: str) -> Choice:
    """Return what a value of `--cluster` means. Raises ChoiceError with the allowed values."""
    kind, colon, name = text.partition(":")
    if kind in _LATER:
        msg = f"--cluster {text}: {kind} clusters are not available yet; allowed: {ALLOWED}."
        raise ChoiceError(msg)
    if kind == "embedded" and (name or not colon):
        return Choice("embedded", name)
    if kind == "context" and name:
        return Choice("context", name)
    if kind == "context":
        from harness.clusters.existing import known_contexts

        msg = (
            f"--cluster {text}: name a context, as in context:NAME; there are: {known_contexts()}."
        )
        raise ChoiceError(msg)
    msg = f"--cluster {text}: unknown kind of cluster; allowed: {ALLOWED}."
    raise ChoiceError(msg)


@contextlib.asynccontextmanager
async def open_cluster(
    choice: Choice | str,
    *,
    nodes: int,
    seed: int | None,
    binaries_source: str,
    progress: Progress,
    kubeconfig: Path | None = None,
    keep: bool = False,
) -> AsyncIterator[Cluster]:
    """Open a cluster for the time of the block; one that was made for it is removed afterwards, come what may.

    `embedded` takes a warm cluster with exactly as many nodes (and the seed, if one is given) that no other run uses, and
    makes one otherwise, which stays with `keep`. An existing cluster has the nodes it has: `nodes` and `seed` say nothing to it. Raises ClusterError.
    """
    wanted = parse(choice) if isinstance(choice, str) else choice
    if wanted.kind == "context":
        from harness.clusters.existing import open_existing

        yield await open_existing(wanted.name, kubeconfig)
        return
    if wanted.name:
        with _named(wanted.name, progress) as cluster:
            yield cluster
        return
    with _warm(nodes, seed) as found:
        if found is not None:
            progress(f"Using embedded cluster {found.facts.name!r}.")
            yield found
            return
    async with _own(nodes, seed, binaries_source, progress, keep=keep) as cluster:
        yield cluster


@contextlib.asynccontextmanager
async def _own(
    nodes: int, seed: int | None, binaries_source: str, progress: Progress, *, keep: bool
) -> AsyncIterator[EmbeddedCluster]:
    from harness.clusters.embedded import cluster as embedded
    from harness.clusters.embedded.binaries import resolve

    name = f"run-{secrets.token_hex(4)}"
    cancelled = threading.Event()

    def make() -> EmbeddedCluster:
        binaries: Binaries = resolve(binaries_source, progress, cancelled=cancelled)
        return embedded.up(
            name,
            nodes=nodes,
            seed=secrets.randbelow(1_000_000) if seed is None else seed,
            binaries=binaries,
            progress=progress,
            owner_pid_bound=not keep,
            cancelled=cancelled,
        )

    try:
        # A thread cannot be interrupted: it is told to stop, and waited for, before anything is removed.
        made = await _to_the_end(asyncio.to_thread(make), cancelled)
        yield made
    finally:
        if keep and embedded.find(name) is not None:
            progress(f"Kept: embedded:{name}; remove it with `drill cluster down {name}`.")
        else:
            await _to_the_end(asyncio.to_thread(embedded.down, name))


@contextlib.contextmanager
def _named(name: str, progress: Progress) -> Iterator[EmbeddedCluster]:
    from harness.clusters.embedded import cluster as embedded

    found = embedded.find(name)
    if found is None:
        raise embedded.unusable(name)
    with _leased(found) as mine:
        if not mine:
            progress(f"Embedded cluster {name!r} is used by another run at the same time.")
        yield found


@contextlib.contextmanager
def _warm(nodes: int, seed: int | None) -> Iterator[EmbeddedCluster | None]:
    from harness.clusters.embedded import cluster as embedded

    for listed in embedded.listing():
        fits = listed.nodes == nodes and seed in (None, listed.seed)
        if not (fits and listed.alive) or listed.owner_bound:
            continue
        found = embedded.find(listed.name)
        if found is None:
            continue
        with _leased(found) as mine:
            if mine:
                yield found
                return
    yield None


@contextlib.contextmanager
def _leased(cluster: EmbeddedCluster) -> Iterator[bool]:
    """Hold a warm cluster for this run; False when another run, or another subject of this one, holds it."""
    import filelock

    name = cluster.facts.name
    if name in _used:
        yield False
        return
    lock = filelock.FileLock(cluster.record.folder / "in-use.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    _used.add(name)
    try:
        yield True
    finally:
        _used.discard(name)
        lock.release()


async def _to_the_end(work: Awaitable[_T], cancelled: threading.Event | None = None) -> _T:
    """Wait for work in a thread to end even when this task is cancelled, and only then pass that on."""
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            interrupted = error
            if cancelled is not None:
                cancelled.set()
        except Exception:  # noqa: BLE001, S110 - it is the task's, and raised below
            pass
    if interrupted is not None:
        task.exception()
        raise interrupted
    return task.result()
