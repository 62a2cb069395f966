"""Where a subject is measured: a cluster of its own, made for it, with a namespace and the rights that a drill would give it."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness import __version__
from harness.bench import population
from harness.bench.audit import user_of
from harness.clusters.base import ClusterError
from harness.clusters.embedded import processes
from harness.clusters.embedded.cluster import EmbeddedCluster
from harness.clusters.select import open_cluster
from harness.kube import access
from harness.kube.client import KubeClient
from harness.kube.resource import CANARY
from harness.run.identity import FIELD_MANAGER, labels
from harness.run.journal import Journal, state_dir
from harness.run.namespace import make_namespace
from harness.run.objects import ResourceMap
from harness.run.shared import install_shared
from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from harness.bench.plan import StormPlan
    from harness.clusters.base import Cluster
    from harness.subjects.base import Subject


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster on which everything is there but the storm."""

    cluster: Cluster
    client: KubeClient
    """The administrator's."""
    namespace: str
    kubeconfig: Path
    """The subject's."""
    token: str = field(repr=False)
    """In that kubeconfig, and for no output."""
    private: Path
    """For tokens and raw logs; gone afterwards."""
    audit_log: Path
    user: str
    """The subject, as the audit log names it."""
    parts: Mapping[str, int]
    """Process numbers of the control plane, by program."""

    @property
    def log(self) -> Path:
        """The subject's raw log."""
        return self.private / "controller.log"


@contextlib.asynccontextmanager
async def scene(
    subject: Subject, plan: StormPlan, run: str, say: Callable[[str], None]
) -> AsyncIterator[Scene]:
    """Make a cluster for `subject` and remove it with everything in it.

    What is made in it is in no journal, since it goes with the cluster, and that goes when this process does. Raises ClusterError,
    KubeError, RefusedError or SubjectError.
    """
    opened = open_cluster(
        "embedded",
        nodes=population.nodes_for(plan.canaries),
        seed=plan.seed,
        binaries_source=plan.binaries,
        progress=say,
        alone="A benchmark",
    )
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(opened)
        if cluster.audit_log is None:
            msg = (
                f"{cluster.name} has no audit log, by which the requests of a subject are counted."
            )
            raise ClusterError(msg)
        private = state_dir() / "runs" / run / cluster.facts.name
        private.mkdir(mode=0o700, parents=True)
        stack.callback(_forget, private)
        journal = Journal.open(run, cluster.facts.name, cluster.kubeconfig, cluster.context)
        stack.callback(journal.discard)
        client = await stack.enter_async_context(
            await KubeClient.connect(
                cluster.kubeconfig, cluster.context, user_agent=f"rollout-drill/{__version__}"
            )
        )
        await install_shared(client, journal, subject.cluster_objects(), run, cluster.facts.kind)
        namespace = (await make_namespace(client, journal, labels(run, "storm"), "storm")).key.name
        resources = ResourceMap(client)
        for obj in subject.namespace_objects(namespace):
            resource = await resources.find(str(obj["apiVersion"]), str(obj["kind"]))
            await client.apply(
                resource,
                obj,
                namespace if resource.namespaced else None,
                field_manager=FIELD_MANAGER,
            )
        account = subject.service_account
        if account is None:
            msg = (
                f"{subject.facts.name} has no service account of ours, so it cannot be benchmarked."
            )
            raise SubjectError(msg)
        # The first creation of a type whose CRD is new takes the API server two seconds, which are nobody's figures.
        probe = population.rollout("probe", namespace)
        await client.raw("POST", CANARY.path(namespace), {"dryRun": "All"}, probe)
        kubeconfig = private / "subject.kubeconfig"
        token = await access.write_kubeconfig(
            client,
            admin=cluster.kubeconfig,
            context=cluster.context,
            namespace=namespace,
            service_account=account,
            target=kubeconfig,
        )
        yield Scene(
            cluster,
            client,
            namespace,
            kubeconfig,
            token,
            private,
            cluster.audit_log,
            user_of(namespace, account),
            processes.running(cluster.record) if isinstance(cluster, EmbeddedCluster) else {},
        )


def _forget(private: Path) -> None:
    shutil.rmtree(private, ignore_errors=True)
    # The run's folder goes with its last cluster.
    with contextlib.suppress(OSError):
        private.parent.rmdir()
