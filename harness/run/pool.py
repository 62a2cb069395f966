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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from harness import __version__
from harness.clusters.base import ClusterError
from harness.clusters.embedded.nodes import otherwise
from harness.clusters.select import open_cluster
from harness.kube.client import KubeClient
from harness.kube.config import preload
from harness.kube.errors import KubeError
from harness.kube.resource import CRD, NODE
from harness.run.adapt.group import in_group
from harness.run.addons import provide
from harness.run.beside import Beside, beside
from harness.run.casting import Casting
from harness.run.crds import differs
from harness.run.existing import Wanted, prepare
from harness.run.identity import slug
from harness.run.journal import Journal, state_dir
from harness.run.leftovers import NOTHING, list_everything
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


FEWEST_REAL: Final = 2
"""Nodes of a real cluster that is made for drills which do not say how many they need exactly."""


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
    number = nodes.number
    if nodes.count is None and not plan.embedded:
        # A real cluster takes half a minute to make: whatever number will do, all drills do with the same one.
        number = max(number, FEWEST_REAL)
    return Key(number, crds, plan.resolved.kubernetes, plan.addons, alone, nodes.apart)


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
        self._loaded: set[tuple[Key, Path]] = set()
        """Images of subjects that are in no registry, and the clusters whose nodes have them."""
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
            place = self._places[key]
            for archive in self.casting.archives(plan):
                if (key, archive) not in self._loaded:
                    await place.cluster.load(archive, self._say)
                    self._loaded.add((key, archive))
            return place

    async def _open(self, key: Key, plan: Plan) -> Place:
        crds = self.casting.crds(plan)
        addons = self.casting.addon_crds(plan)

        async def suits(cluster: Cluster) -> str:
            async with _client(cluster) as client:
                if cluster.facts.kind == "embedded":
                    nodes, _ = await client.list(NODE)
                    why = otherwise(nodes, cluster.facts.nodes, plan.resolved.nodes)
                else:
                    # Real nodes are what they are; the drill's own precondition counts them.
                    why = ""
                try:
                    group = (await self._beside(client, cluster, plan)).api_group
                except ClusterError as error:
                    return str(error)
                return why or await foreign_crd(client, [*in_group(crds, group), *addons])

        loading = asyncio.create_task(asyncio.to_thread(preload))
        if not plan.embedded:
            # Opening another cluster begins with asking it: two threads that import one package at once can wait for each other.
            await loading
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
        async with _client(cluster) as client:
            # Before anything is written down or made: a cluster that is not ours may have no place for drills.
            with_others = await self._beside(client, cluster, plan)
            prepared = await prepare(client, cluster, self._wanted(plan, with_others.api_group))
        cluster = prepared.cluster
        if with_others.told:
            self._say(with_others.told)
        notes = (*cluster.facts.notes, *with_others.notes)
        cluster = replace(cluster, facts=replace(cluster.facts, notes=notes))
        crds = in_group(crds, with_others.api_group)
        name = slug(cluster.facts.name)
        private = state_dir() / "runs" / self._run / name
        private.mkdir(parents=True, exist_ok=True)
        private.chmod(0o700)
        journal = Journal.open(self._run, name, cluster.kubeconfig, cluster.context)
        # Also when the rest is kept: raw logs and tokens are for nobody, and the subject has ended.
        self._stack.callback(_forget, private)
        self._stack.push_async_callback(self._close, cluster, journal)
        namespace = self._options.namespace
        async with _client(cluster) as client:
            # In a namespace of others nothing is made, or looked at, outside of it, but for types that nobody else knows.
            own = crds if with_others.api_group or not namespace else []
            needed = [*own, *(() if namespace else prepared.shared)]
            shared = await install_shared(client, journal, needed, self._run, cluster.facts.kind)
            cluster = await provide(client, cluster, key.addons, addons, self._say)
            before = NOTHING if namespace else await list_everything(client)
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
            adaptation=replace(prepared.adaptation, api_group=with_others.api_group),
            node_names=prepared.names,
            observed=with_others.observed,
            namespace=namespace,
            shared=shared,
        )

    async def _beside(self, client: KubeClient, cluster: Cluster, plan: Plan) -> Beside:
        return await beside(client, cluster, plan, self._run, self._options.namespace)

    def _wanted(self, plan: Plan, group: str) -> Wanted:
        options, casting = self._options, self.casting
        # Those of a group of its own are made in any case, whatever else may not be made beside a namespace.
        made = bool(group and options.namespace)
        return Wanted(
            options.nodes,
            options.node_selector,
            options.namespace,
            options.image,
            () if made else tuple(in_group(casting.crds(plan), group)),
            tuple(in_group(casting.roles(plan), group)),
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
                    left = await remove_shared(client, journal)
                for sentence in (*left.stays, *left.problems):
                    self._say(sentence)
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
