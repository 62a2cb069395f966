"""Another Kubernetes version under the same objects: the control plane is replaced, etcd and the simulated nodes go on.

As in a real upgrade the API server is away for a moment, and whoever talks to it sees its connections break. What kwokctl has
started it also starts again: it finds its programs under names of its own, which lead to the new ones by then.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded import binaries as programs
from harness.clusters.embedded import cluster as embedded
from harness.clusters.embedded import kwokctl, processes, readiness, records

if TYPE_CHECKING:
    import threading

    from harness.clusters.base import Progress
    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.clusters.embedded.components import Binaries
    from harness.clusters.embedded.records import Record

REPLACED: Final = ("kube-scheduler", "kube-controller-manager", "kube-apiserver")
"""Whoever asks the API server ends before it does."""
END_SECONDS: Final = 2.0
"""For what is under way. An API server that is asked to end would wait a minute for watches that nobody is going to end."""


def upgrade(
    cluster: EmbeddedCluster,
    version: str,
    source: str,
    progress: Progress,
    cancelled: threading.Event | None = None,
) -> EmbeddedCluster:
    """Replace the control plane of `cluster` by that of `version`, and return the cluster when it works again.

    Blocks for some seconds, and longer only where the programs are not at hand yet, which `cancelled` ends soon. Once something is
    stopped it goes on to the end: what is to be removed afterwards needs an API server. Raises ClusterError.
    """
    new = programs.ensure_binaries(source, progress, cancelled, kubernetes=version)
    record = cluster.record
    left = processes.end(record, REPLACED, END_SECONDS)
    if left:
        msg = f"Processes of embedded cluster {record.name!r} still run: {', '.join(left)}."
        raise ClusterError(msg)
    processes.drop_strange_pid_files(record)
    replace_programs(record, new)
    kwokctl.start(record)
    waiter = readiness.Waiter(record)
    waiter.answers()
    # An orphan is collected by a controller manager that has read everything, which is when Deployments are looked after again.
    waiter.orphan_collected(waiter.plant_orphan())
    waiter.check_processes()
    stated = waiter.version() or record.kubernetes
    record = dataclasses.replace(record, kubernetes=stated, default_version=False)
    records.write(record)
    return embedded.opened(record, exclusive=cluster.facts.exclusive)


def replace_programs(record: Record, new: Binaries) -> None:
    """Let kwokctl's names for the control plane's programs lead to the new ones. Raises ClusterError."""
    folder = record.workdir / "bin"
    try:
        for name in REPLACED:
            draft = folder / f".{name}"
            draft.unlink(missing_ok=True)
            draft.symlink_to(new.by_name()[name])
            draft.replace(folder / name)
    except OSError as error:
        msg = f"The programs in {folder} cannot be replaced: {error.strerror}."
        raise ClusterError(msg) from error
