"""Which cluster `--cluster` means, and opening it for as long as a run needs it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.clusters.base import ChoiceError, Cluster, ClusterError, Progress, same_version
from harness.programs.threads import to_the_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.clusters.embedded.components import Binaries
    from harness.model.nodes import Nodes

Kind = Literal["embedded", "kind", "k3s", "context"]
ALLOWED: Final = "embedded, embedded:NAME, kind, kind:NAME, k3s, k3s:NAME, context:NAME"
MADE: Final[tuple[Kind, ...]] = ("embedded", "kind", "k3s")
"""Kinds of clusters that the harness makes itself."""
_used: set[str] = set()
"""Warm clusters that this process has open: two subjects may bring different CRDs, so each gets its own."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a value of `--cluster` means."""

    kind: Kind
    name: str = ""
    """Of a cluster that was made before, or of a context; empty for any cluster of that kind."""


ALONE: Final = Choice("embedded")
"""The choice that can give a run a cluster of its own."""


def parse(text: str) -> Choice:
    """Return what a value of `--cluster` means. Raises ChoiceError with the allowed values."""
    kind, colon, name = text.partition(":")
    for made in MADE:
        if kind == made and (name or not colon):
            return Choice(made, name)
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


@dataclass(frozen=True, slots=True)
class Wish:
    """What a run asks of a cluster that it opens; of an existing one, which is as it is, nothing is asked."""

    nodes: int
    seed: int | None = None
    """None: any."""
    kubernetes: str | None = None
    """Version of its control plane, `v1.34` or `v1.34.4`; None: the default one."""
    later: tuple[str, ...] = ()
    """Versions that it will be upgraded to, whose programs have to be at hand before."""
    alone: str = ""
    """Who needs a cluster that nobody used before, in words; empty: a warm one will do."""
    suits: Callable[[Cluster], Awaitable[str]] | None = None
    """Says why a warm cluster does not suit; empty: it does. Its nodes are asked there, too: they may be others by now."""
    apart: Nodes | None = None
    """What sets single nodes of a new cluster apart; None: nothing."""


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
    kubernetes: str | None = None,
    later: tuple[str, ...] = (),
    alone: str = "",
    suits: Callable[[Cluster], Awaitable[str]] | None = None,
    apart: Nodes | None = None,
) -> AsyncIterator[Cluster]:
    """Open a cluster for the time of the block; one that was made for it is removed afterwards, come what may.

    `embedded` takes a warm cluster that fulfils every wish (see `Wish`) and that no other run uses, and makes one otherwise, which
    stays with `keep`. An existing cluster has the nodes and the version that it has. Raises ClusterError.
    """
    wanted = parse(choice) if isinstance(choice, str) else choice
    wish = Wish(nodes, seed, kubernetes, later, alone, suits, apart)
    if alone and wanted != ALONE:
        msg = f"{alone} needs a cluster of its own: use --cluster embedded."
        raise ChoiceError(msg)
    if wanted.kind == "context":
        from harness.clusters.existing import open_existing

        yield await open_existing(wanted.name, kubeconfig)
        return
    if wanted.kind != "embedded":
        async with _local(wanted, wish, progress, keep=keep) as local:
            yield local
        return
    if wanted.name:
        with _named(wanted.name, progress) as cluster:
            await _must_suit(cluster, wish)
            yield cluster
        return
    if not alone:
        async with _warm(wish) as found:
            if found is not None:
                progress(f"Using embedded cluster {found.facts.name!r}.")
                yield found
                return
    async with _own(wish, binaries_source, progress, keep=keep) as cluster:
        yield cluster


@contextlib.asynccontextmanager
async def _local(
    wanted: Choice, wish: Wish, progress: Progress, *, keep: bool
) -> AsyncIterator[Cluster]:
    """Open a cluster of kind or k3s. One that stays is shared with other runs, as any real cluster is; only one's own goes."""
    from harness.clusters.local import cluster as local

    if wanted.name:
        found = await local.find(wanted.kind, wanted.name, progress)
        await _must_suit(found, wish)
        yield found
        return
    for name in local.warm(wanted.kind, wish.nodes):
        try:
            found = await local.find(wanted.kind, name, progress)
        except ClusterError:
            continue  # somebody removed it without us
        if wish.suits is None or not await wish.suits(found):
            progress(f"Using {found.name}.")
            yield found
            return
    name = f"drill-{secrets.token_hex(4)}"
    made = await local.up(
        wanted.kind, name, nodes=wish.nodes, progress=progress, bound=not keep, exclusive=True
    )
    try:
        yield made
    finally:
        if keep:
            progress(f"Kept: {made.name}; remove it with `drill cluster down {made.name}`.")
        else:
            await to_the_end(asyncio.to_thread(local.down, wanted.kind, name))


@contextlib.asynccontextmanager
async def _own(
    wish: Wish, binaries_source: str, progress: Progress, *, keep: bool
) -> AsyncIterator[EmbeddedCluster]:
    from harness.clusters.embedded import cluster as embedded
    from harness.clusters.embedded.binaries import ensure_binaries
    from harness.clusters.embedded.nodes import ALIKE

    name = f"run-{secrets.token_hex(4)}"
    cancelled = threading.Event()

    def make() -> EmbeddedCluster:
        for version in wish.later:
            ensure_binaries(binaries_source, progress, cancelled, kubernetes=version)
        binaries: Binaries = ensure_binaries(
            binaries_source, progress, cancelled, kubernetes=wish.kubernetes
        )
        return embedded.up(
            name,
            nodes=wish.nodes,
            seed=secrets.randbelow(1_000_000) if wish.seed is None else wish.seed,
            binaries=binaries,
            progress=progress,
            owner_pid_bound=not keep,
            cancelled=cancelled,
            kubernetes=wish.kubernetes,
            apart=wish.apart or ALIKE,
        )

    try:
        # A thread cannot be interrupted: it is told to stop, and waited for, before anything is removed.
        made = await to_the_end(asyncio.to_thread(make), cancelled)
        yield made
    finally:
        if keep and embedded.find(name) is not None:
            progress(f"Kept: embedded:{name}; remove it with `drill cluster down {name}`.")
        else:
            await to_the_end(asyncio.to_thread(embedded.down, name))


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


async def _must_suit(cluster: Cluster, wish: Wish) -> None:
    why = "" if wish.suits is None else await wish.suits(cluster)
    if why:
        msg = f"{cluster.name} cannot be used: {why}; use --cluster embedded, or another cluster."
        raise ChoiceError(msg)


@contextlib.asynccontextmanager
async def _warm(wish: Wish) -> AsyncIterator[EmbeddedCluster | None]:
    from harness.clusters.embedded import cluster as embedded

    for listed in embedded.listing():
        fits = listed.nodes == wish.nodes and wish.seed in (None, listed.seed)
        if not (fits and listed.alive) or listed.owner_bound:
            continue
        found = embedded.find(listed.name)
        if found is None or not _has_version(found, wish.kubernetes):
            continue
        with _leased(found) as mine:
            if mine and not (wish.suits is not None and await wish.suits(found)):
                yield found
                return
    yield None


def _has_version(cluster: EmbeddedCluster, wanted: str | None) -> bool:
    if wanted is None:
        return cluster.record.default_version
    return same_version(cluster.facts.kubernetes, wanted)


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
