"""Embedded clusters: made, listed and removed by name, on this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.addons import chosen
from harness.clusters.base import (
    AUDIT,
    KUBERNETES_UPGRADE,
    NODE_CHANGES,
    ChoiceError,
    Cluster,
    ClusterError,
    Progress,
    capabilities,
)
from harness.clusters.embedded import (
    api,
    components,
    history,
    kwokctl,
    ports,
    processes,
    readiness,
    records,
    watcher,
)
from harness.clusters.embedded.nodes import ALIKE
from harness.clusters.embedded.paths import creation_lock, make_folder, state_root
from harness.clusters.knative import site
from harness.model.timeline import ClusterFacts
from harness.programs.threads import to_the_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from harness.clusters.base import Change
    from harness.clusters.embedded.components import Binaries
    from harness.clusters.embedded.records import Record
    from harness.kube.resource import Resource
    from harness.model.nodes import Nodes

MOST_NODES: Final = 100
ATTEMPTS: Final = 3
END_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.5
"""How soon a creation that waits for another one sees that it is not wanted any more."""
_watchers: dict[str, watcher.Watcher] = {}
"""Of the clusters that go with this process, by the id of the cluster."""


@dataclass(frozen=True, slots=True)
class EmbeddedCluster(Cluster):
    """An embedded cluster that is ready."""

    record: records.Record = dataclasses.field(kw_only=True)

    @property
    def audit_log(self) -> Path | None:
        """The API server's audit log; None for a cluster that an earlier version made."""
        return self.record.audit_log if self.record.audited else None

    async def missed(
        self, resource: Resource, namespace: str | None, after: int, until: int
    ) -> list[Change] | None:
        """Return what etcd remembers of the changes behind `after`, up to `until` (see `Cluster.missed`)."""
        port = self.record.ports["etcdPort"]
        return await history.missed(port, resource, namespace, after, until)

    async def with_addons(self, names: Sequence[str], progress: Progress) -> EmbeddedCluster:
        """Play what is simulated of add-ons (see `Cluster.with_addons` and `harness.clusters.embedded.addons`)."""
        from harness.clusters.embedded.addons import play

        cancelled = threading.Event()
        return await to_the_end(
            asyncio.to_thread(play, self, names, progress, cancelled), cancelled
        )

    def stand_ins(self, addons: Sequence[str]) -> list[tuple[str, str]]:
        """Return who answers for simulated pods, and whether anything tried to leave the machine (see `Cluster.stand_ins`)."""
        if site.NAME not in addons or not site.belongs_to(self.record):
            return []
        return [("requests to pods", site.says(self.record))]

    async def upgrade(self, version: str, *, binaries: str, progress: Progress) -> EmbeddedCluster:
        """Replace the control plane (see `Cluster.upgrade` and `harness.clusters.embedded.upgrade`)."""
        from harness.clusters.embedded.upgrade import upgrade

        cancelled = threading.Event()
        work = asyncio.to_thread(upgrade, self, version, binaries, progress, cancelled)
        return await to_the_end(work, cancelled)


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of `listing`."""

    name: str
    nodes: int
    seed: int
    alive: bool
    """Its processes run and its API server accepts connections."""
    created_by: int
    """The process that made it."""
    owner_bound: bool
    """It goes when that process goes; otherwise it was asked to be kept."""
    age: float
    """Seconds since it was made."""
    kubernetes: str = ""
    """Version of its API server."""


def up(
    name: str,
    *,
    nodes: int,
    seed: int,
    binaries: Binaries,
    progress: Progress,
    owner_pid_bound: bool,
    cancelled: threading.Event | None = None,
    exclusive: bool = True,
    kubernetes: str | None = None,
    apart: Nodes = ALIKE,
) -> EmbeddedCluster:
    """Make a cluster and return it when it is ready, which takes three to four seconds.

    `binaries` are those of the version `kubernetes`, which is the default one unless given; `apart` sets single nodes apart.
    `owner_pid_bound`: a watcher deletes it when this process ends, however it ends. Otherwise it stays until `down`.
    Setting `cancelled` makes it give up soon. Whatever goes wrong, nothing is left. Blocks; raises ClusterError.
    """
    records.check_name(name)
    if sys.platform != "linux":
        msg = (
            f"The embedded cluster needs Linux, this is {sys.platform}; use --cluster context:NAME."
        )
        raise ClusterError(msg)
    if not 1 <= nodes <= MOST_NODES:
        msg = f"An embedded cluster has 1 to {MOST_NODES} nodes, not {nodes}."
        raise ClusterError(msg)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            record = _create(
                name,
                binaries,
                progress,
                cancelled,
                nodes=nodes,
                seed=seed,
                bound=owner_pid_bound,
                kubernetes=kubernetes,
                apart=apart,
            )
        except readiness.PortTakenError as error:
            if attempt == ATTEMPTS:
                raise
            progress(f"{error} Trying other ports.")
            continue
        return opened(record, exclusive=exclusive)
    raise AssertionError


def down(name: str) -> bool:
    """Delete a cluster and everything it left; return False when there was none. Raises ClusterError."""
    record = records.read(records.check_name(name))
    if record is None:
        return False
    try:
        processes.drop_strange_pid_files(record)
        site.stop(record)
        # Without kwokctl (its cache was cleaned) the processes are ended here, as are those that it missed.
        with contextlib.suppress(ClusterError):
            kwokctl.delete(record)
        left = processes.end_all(record, END_SECONDS)
        if left:
            msg = f"Processes of embedded cluster {name!r} still run: {', '.join(left)}."
            raise ClusterError(msg)
        shutil.rmtree(record.workdir, ignore_errors=True)
        records.forget(record)
    finally:
        watching = _watchers.pop(record.id, None)
        if watching is not None:
            watching.dismiss()
    return True


def stop(cluster: EmbeddedCluster) -> None:
    """Stop all processes of a cluster and keep its data, as in an outage. Raises ClusterError."""
    processes.drop_strange_pid_files(cluster.record)
    site.stop(cluster.record)
    kwokctl.stop(cluster.record)
    left = processes.end_all(cluster.record, END_SECONDS)
    if left:
        msg = f"Processes of embedded cluster {cluster.record.name!r} still run: {', '.join(left)}."
        raise ClusterError(msg)


def start(cluster: EmbeddedCluster) -> None:
    """Start a stopped cluster again, and return when its API server is ready. Raises ClusterError."""
    processes.drop_strange_pid_files(cluster.record)
    kwokctl.start(cluster.record)
    readiness.Waiter(cluster.record).answers()
    site.again(cluster.record)


def listing() -> list[Listed]:
    """Return all embedded clusters of this user, by name."""
    return [
        Listed(
            record.name,
            record.nodes,
            record.seed,
            alive(record),
            record.owner_pid,
            record.owner_bound,
            time.time() - record.created,
            record.kubernetes,
        )
        for record in records.read_all()
    ]


def find(name: str) -> EmbeddedCluster | None:
    """Return a cluster that was made before and is alive; None otherwise."""
    record = records.read(name)
    return opened(record, exclusive=False) if record is not None and alive(record) else None


def alive(record: Record) -> bool:
    """Whether a cluster was ready once, all its processes run, Knative's too, and its API server accepts connections."""
    running = processes.running(record)
    return (
        record.ready
        and all(name in running for name in readiness.COMPONENTS)
        and (site.running(record) or not site.belongs_to(record))
        and ports.answers(record.ports["kubeApiserverPort"])
    )


def abandoned() -> list[str]:
    """Return the names of clusters whose owner is gone and that nobody asked to keep."""
    return [
        record.name
        for record in records.read_all()
        if not record.owner_alive() and (record.owner_bound or not record.ready)
    ]


def reap(progress: Progress) -> list[str]:
    """Remove the abandoned clusters; return their names."""
    names = abandoned()
    for name in names:
        progress(f"Removing embedded cluster {name!r}, left by a run that is gone.")
        down(name)
    return names


def logs(name: str, component: str) -> Path:
    """Return the path of a component's log. Raises ClusterError with the allowed names."""
    record = records.read(records.check_name(name))
    if record is None:
        raise unknown(name)
    there = (*readiness.COMPONENTS, *site.logs(record))
    if component not in there:
        msg = f"{component!r} is no component of {name!r}; allowed: {', '.join(there)}."
        raise ClusterError(msg)
    return record.log(component)


def prove_collectors(cluster: EmbeddedCluster) -> float:
    """Prove that deleted namespaces and owned objects go; return the seconds it took. Raises ClusterError."""
    waiter = readiness.Waiter(cluster.record)
    waiter.check_processes()
    return waiter.prove_collectors()


def unknown(name: str) -> ChoiceError:
    """Return the error for a name that no cluster has."""
    names = ", ".join(record.name for record in records.read_all()) or "none"
    return ChoiceError(f"There is no embedded cluster {name!r}; there are: {names}.")


def unusable(name: str) -> ClusterError:
    """Return the error for a name that `find` does not give."""
    if records.read(name) is None:
        return unknown(name)
    again = f"make it again with: drill cluster up {name}."
    return ClusterError(f"Embedded cluster {name!r} does not run any more; {again}")


def opened(record: Record, *, exclusive: bool) -> EmbeddedCluster:
    """Return the cluster of a record that is ready."""
    facts = ClusterFacts(
        kind="embedded",
        name=record.name,
        kubernetes=record.kubernetes,
        nodes=tuple(f"node-{number}" for number in range(1, record.nodes + 1)),
        simulated=f"kwok {record.kwok}",
        seed=record.seed,
        exclusive=exclusive,
        capabilities=capabilities(record.kubernetes, simulated=True, more=_more(record)),
        addons=tuple(one.says for one in chosen(record.addons)),
    )
    return EmbeddedCluster(
        f"embedded:{record.name}", facts, record.kubeconfig, record.name, record=record
    )


def _more(record: Record) -> tuple[str, ...]:
    audit = (AUDIT,) if record.audited else ()
    added = (feature for one in chosen(record.addons) for feature in (one.name, *one.gives))
    return (KUBERNETES_UPGRADE, NODE_CHANGES, *audit, *added)


def _create(
    name: str,
    binaries: Binaries,
    progress: Progress,
    cancelled: threading.Event | None,
    *,
    nodes: int,
    seed: int,
    bound: bool,
    kubernetes: str | None,
    apart: Nodes,
) -> Record:
    with _creation(name, progress, cancelled):
        reap(progress)
        _make_room(name, progress)
        pid, started = records.this_process()
        record = records.Record(
            name=name,
            nodes=nodes,
            seed=seed,
            owner_pid=pid,
            owner_started=started,
            owner_bound=bound,
            kwokctl=str(binaries.kwokctl),
            ports=ports.free(port for other in records.read_all() for port in other.ports.values()),
            kubernetes=components.kubernetes_version(kubernetes),
            kwok=components.pinned_version("kwok", "sigs.k8s.io/kwok"),
            default_version=kubernetes is None,
            audited=True,
        )
        records.write(record)
        try:
            if bound:
                _watchers[record.id] = watcher.watch(record)
            kwokctl.create(record, binaries)
            waiter = readiness.Waiter(record, cancelled)
            # Until all listen, another creation could take the same ports.
            waiter.answers()
        except BaseException as error:
            _abandon(record, error)
            raise
    try:
        return _finish(record, waiter, apart)
    except BaseException as error:
        _abandon(record, error)
        raise


def _abandon(record: Record, error: BaseException) -> None:
    """Remove a cluster that did not become ready, but keep its logs when they can say why."""
    if type(error) is ClusterError:
        records.keep_logs(record)
    down(record.name)


def _finish(record: Record, waiter: readiness.Waiter, apart: Nodes) -> Record:
    api.write_kubeconfig(record)
    waiter.until(
        "namespace kube-public was not there",
        lambda: waiter.api.exists("/api/v1/namespaces/kube-public"),
        readiness.READY_SECONDS,
    )
    # The collector takes about as long to begin as the nodes do, so it is asked first and looked at last.
    orphan = waiter.plant_orphan()
    waiter.nodes_ready(apart)
    waiter.orphan_collected(orphan)
    waiter.check_processes()
    version = waiter.version() or record.kubernetes
    record = dataclasses.replace(record, ready=True, kubernetes=version)
    records.write(record)
    return record


def _make_room(name: str, progress: Progress) -> None:
    record = records.read(name)
    if record is None:
        # A folder of kwokctl without a record of ours would be taken up again by it.
        shutil.rmtree(state_root() / "clusters" / name, ignore_errors=True)
        return
    if alive(record):
        msg = f"There is already an embedded cluster {name!r}; remove it with: drill cluster down {name}."
        raise ClusterError(msg)
    if not record.ready and record.owner_alive():
        msg = f"Embedded cluster {name!r} is being made by process {record.owner_pid} right now."
        raise ClusterError(msg)
    progress(f"The processes of embedded cluster {name!r} are gone; making it again.")
    down(name)


@contextlib.contextmanager
def _creation(name: str, progress: Progress, cancelled: threading.Event | None) -> Iterator[None]:
    """Hold the machine's lock on creations; ends early when `cancelled` is set, so that a signal need not wait for it."""
    import filelock

    make_folder(state_root())
    lock = filelock.FileLock(creation_lock())
    deadline = time.monotonic() + ATTEMPTS * readiness.ANSWER_SECONDS
    waited = False
    while True:
        try:
            lock.acquire(timeout=_LOOK_SECONDS if waited else 0)
            break
        except filelock.Timeout:
            readiness.check_cancelled(name, cancelled)
            if time.monotonic() > deadline:
                msg = f"Embedded cluster {name!r} cannot be made: another one is still being made."
                raise ClusterError(msg) from None
        if not waited:
            progress("Another embedded cluster is being made; waiting for it.")
        waited = True
    try:
        yield
    finally:
        lock.release()
