"""The clusters of a run: opened when the first drill needs one, shared by drills that need the same, closed at the end.

A cluster is only shared by drills with the same key. A drill that needs two nodes never runs where three are, since a third
node would let the control variant of a placement drill pass, nor where nodes have other labels or taints; subjects with different CRDs
never meet, since a CRD is one for the whole cluster; and a drill that upgrades something, or lets nodes come and go, has a cluster of
its own, made for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from harness import __version__
from harness.clusters.base import ClusterError
from harness.clusters.embedded.nodes import otherwise
from harness.clusters.select import open_cluster
from harness.kube.client import KubeClient
from harness.kube.config import preload
from harness.kube.errors import KubeError
from harness.kube.resource import CRD, NODE
from harness.run.addons import provide
from harness.run.casting import Casting
from harness.run.crds import differs
from harness.run.identity import slug
from harness.run.journal import Journal, state_dir
from harness.run.leftovers import list_everything
from harness.run.place import Place
from harness.run.shared import install_shared, remove_shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from harness.clusters.base import Cluster
    from harness.model.timeline import JSON
    from harness.run.plan import Options, Plan
    from harness.run.signals import Stop


@dataclass(frozen=True, slots=True)
class Key:
    """What drills must have in common to share a cluster."""

    nodes: int
    crds: str
    """Digest of the first subject's CRDs."""
    kubernetes: str | None = None
    """As the scenario names it; None: the version that a cluster has by default."""
    addons: tuple[str, ...] = ()
    alone: str = ""
    """The drill's own id, if it shares its cluster with nobody."""
    apart: str = ""
    """What sets single nodes apart (`Nodes.apart`)."""


def key_of(plan: Plan, crds: str) -> Key:
    """Return the key of the cluster that `plan` needs, whose first subject's CRDs have the digest `crds`."""
    nodes = plan.resolved.nodes
    alone = plan.name.title if plan.alone else ""
    return Key(nodes.number, crds, plan.resolved.kubernetes, plan.addons, alone, nodes.apart)


class Pool:
    """The clusters of one run, as an async context manager."""

    def __init__(
        self,
        options: Options,
        run: str,
        stop: Stop,
        say: Callable[[str], None],
        casting: Casting | None = None,
    ) -> None:
        self.casting = casting or Casting(say)
        self._options = options
        self._run = run
        self._stop = stop
        self._say = say
        self._stack = contextlib.AsyncExitStack()
        self._places: dict[Key, Place] = {}
        self._refused: dict[Key, ClusterError | KubeError] = {}
        """Clusters that could not be had: what took a minute to fail is not tried again for every drill."""
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    async def place(self, plan: Plan) -> Place:
        """Return the cluster for `plan`, opened if need be.

        Raises ClusterError, KubeError or SubjectError when it cannot be had.
        """
        await self.casting.obtain(plan)
        async with self._opening:
            key = key_of(plan, self.casting.digest(plan))
            if key in self._refused:
                raise self._refused[key]
            if key not in self._places:
                try:
                    self._places[key] = await self._open(key, plan)
                except (ClusterError, KubeError) as error:
                    self._refused[key] = error
                    raise
            return self._places[key]

    async def _open(self, key: Key, plan: Plan) -> Place:
        crds = self.casting.crds(plan)
        addons = self.casting.addon_crds(plan)

        async def suits(cluster: Cluster) -> str:
            async with _client(cluster) as client:
                nodes, _ = await client.list(NODE)
                names = cluster.facts.nodes
                return otherwise(nodes, names, plan.resolved.nodes) or await foreign_crd(
                    client, [*crds, *addons]
                )

        loading = asyncio.create_task(asyncio.to_thread(preload))
        cluster = await self._stack.enter_async_context(
            open_cluster(
                self._options.cluster,
                nodes=key.nodes,
                seed=self._options.seed,
                binaries_source=self._options.binaries,
                progress=self._say,
                keep=self._options.keep,
                kubernetes=key.kubernetes,
                later=plan.kubernetes,
                alone=key.alone,
                suits=suits,
                apart=plan.resolved.nodes,
            )
        )
        await loading
        name = slug(cluster.facts.name)
        private = state_dir() / "runs" / self._run / name
        private.mkdir(parents=True, exist_ok=True)
        private.chmod(0o700)
        journal = Journal.open(self._run, name, cluster.kubeconfig, cluster.context)
        # Also when the rest is kept: raw logs and tokens are for nobody, and the subject has ended.
        self._stack.callback(_forget, private)
        self._stack.push_async_callback(self._close, cluster, journal)
        async with _client(cluster) as client:
            shared = await install_shared(client, journal, crds, self._run, cluster.facts.kind)
            cluster = await provide(client, cluster, key.addons, addons, self._say)
            before = await list_everything(client)
        return Place(
            cluster=cluster,
            run=self._run,
            journal=journal,
            before=before,
            private=private,
            stop=self._stop,
            say=self._say,
            binaries=self._options.binaries,
            keep=self._options.keep,
            anonymise=self._options.anonymise,
            shared=shared,
        )

    async def _close(self, cluster: Cluster, journal: Journal) -> None:
        """Remove what the run's drills shared, and close the journal when nothing is left in it."""
        if self._options.keep:
            return
        if cluster.facts.exclusive:
            journal.entries.clear()  # they go with the cluster, a moment from now
        elif journal.entries:
            try:
                async with _client(cluster) as client:
                    for problem in await remove_shared(client, journal):
                        self._say(problem)
            except KubeError as error:
                self._say(f"what the run's drills shared could not be removed: {error}")
        journal.close()


async def foreign_crd(client: KubeClient, crds: Sequence[JSON]) -> str:
    """Return why drills that need these CRDs cannot use a warm cluster; empty when they can."""
    for crd in crds:
        name = str(crd["metadata"]["name"])
        if await client.exists(CRD, name) and await differs(client, crd):
            return f"its CustomResourceDefinition {name} is that of another subject, or of another version of an add-on"
    return ""


@contextlib.asynccontextmanager
async def _client(cluster: Cluster) -> AsyncIterator[KubeClient]:
    agent = f"rollout-drill/{__version__}"
    client = await KubeClient.connect(cluster.kubeconfig, cluster.context, user_agent=agent)
    async with client:
        yield client


def _forget(private: Path) -> None:
    shutil.rmtree(private, ignore_errors=True)
    # The run's folder goes with its last cluster.
    with contextlib.suppress(OSError):
        private.parent.rmdir()
