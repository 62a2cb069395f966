"""What is simulated of add-ons on an embedded cluster: kwok gets their stages, and is started again with them.

kwok looks at its stages only when it starts, and ends when a type that they name is not served; so a cluster gets them behind the
CRDs, and one that nobody asks for add-ons never has them. Pods do not notice the moment in between: a stage is chosen by how an object
looks, and nothing is remembered outside of it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final

from harness.clusters.addons import KNATIVE
from harness.clusters.base import ClusterError
from harness.clusters.embedded import cluster as embedded
from harness.clusters.embedded import kwokctl, ports, processes, readiness, records, stages
from harness.clusters.knative.install import install

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from harness.clusters.base import Progress
    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.clusters.embedded.records import Record

COMPONENT: Final = "kwok-controller"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
END_SECONDS: Final = 5.0
_NAME: Final = re.compile(r"^(?:metadata: \{|  )name: ([\w-]+)", re.MULTILINE)
"""Of a stage, as it is written in our files and as kwokctl writes it."""
PLAYS_WITHIN: Final = 20.0
"""Seconds until kwok plays again; it takes some tenths of one."""


def play(
    cluster: EmbeddedCluster,
    names: Sequence[str],
    progress: Progress,
    cancelled: threading.Event | None = None,
) -> EmbeddedCluster:
    """Return the cluster with add-ons, whose CRDs are served already, once what is simulated of them is played.

    Those that it has are left alone. Blocks, for about a second where kwok has to be started again. Raises ClusterError.
    """
    record = cluster.record
    new = [name for name in names if name not in record.addons]
    if not new:
        return cluster
    files = [stages.ADDON_FILES[name] for name in new if name in stages.ADDON_FILES]
    if files:
        progress(f"Embedded cluster {record.name!r} simulates {', '.join(new)} from now on.")
        _start_again(record, files, cancelled)
    if KNATIVE in new:
        _start_knative(record, progress, cancelled)
        record = records.read(record.name) or record  # it has a port more
    record = dataclasses.replace(record, addons=[*record.addons, *new])
    records.write(record)
    return embedded.opened(record, exclusive=cluster.facts.exclusive)


def _start_knative(record: Record, progress: Progress, cancelled: threading.Event | None) -> None:
    progress(f"Starting Knative beside embedded cluster {record.name!r}.")
    try:
        install(record, progress, cancelled)
    except readiness.CancelledError:
        raise
    except ClusterError as error:
        # The cluster may go before anybody can look at them.
        msg = f"{error} The cluster's logs are in {records.keep_logs(record)}."
        raise ClusterError(msg) from error


def _start_again(record: Record, files: Sequence[str], cancelled: threading.Event | None) -> None:
    left = processes.end(record, (COMPONENT,), END_SECONDS)
    if left:
        msg = f"Processes of embedded cluster {record.name!r} still run: {', '.join(left)}."
        raise ClusterError(msg)
    processes.drop_strange_pid_files(record)
    file = record.workdir / "kwok.yaml"
    try:
        before = file.read_text("utf-8")
    except OSError as error:
        msg = f"Cannot read {file}: {error.strerror}."
        raise ClusterError(msg) from error
    rendered = stages.render(record.seed, files)
    # An attempt that was cut short may have written them.
    if _names(rendered) - _names(before):
        records.write_private(file, f"{before.rstrip()}\n---\n{rendered}")
    waiter = readiness.Waiter(record, cancelled)
    leases = [f"{LEASES}/node-{number}" for number in range(1, record.nodes + 1)]
    for path in leases:
        # A new kwok is another holder: it would leave nodes and their pods alone until the old one's leases have run out.
        waiter.api.request("DELETE", path)
    kwokctl.start(record)
    port = record.ports["kwokControllerPort"]

    def plays() -> bool:
        # It listens once every stage's type is watched, and ends before that when one of them is not served.
        return ports.answers(port) and all(waiter.api.exists(path) for path in leases)

    waiter.until(f"{COMPONENT} did not play its stages", plays, PLAYS_WITHIN)


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))
