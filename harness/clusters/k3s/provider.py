"""k3s by way of k3d, which runs a k3s server and agents as containers.

k3s itself, as processes, has one node on one machine, and leaves containers and mounts when it ends; such a cluster is somebody's own:
`--cluster context:NAME`. `DRILL_K3S_IMAGE` names the image of k3s; k3d's own default unless given.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded.records import write_private
from harness.clusters.local.tool import call, program, which

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.clusters.local.records import Record

IMAGE: Final = "DRILL_K3S_IMAGE"
CREATE_WITHIN: Final = 600.0
"""Seconds for a new cluster: half a minute, and the pull of its images where there are none yet."""
DELETE_WITHIN: Final = 120.0
LOAD_WITHIN: Final = 180.0
MOST_NODES: Final = 20
NEEDLESS: Final = ("traefik", "servicelb", "metrics-server")
"""What k3s adds to Kubernetes: it would only compete with a drill for the machine."""
KEEPS_FREE: Final = "node-role.kubernetes.io/control-plane=true:NoSchedule"
"""The server takes no pods, as control planes elsewhere do, so that a drill gets exactly the agents."""


class K3d:
    """The tool, found anew for each call: PATH may change."""

    kind = "k3s"
    tool = "k3d"

    def missing(self) -> str:
        """Return what is not there: k3d, or an answer of Docker."""
        if which("k3d") is None:
            own = (
                "; k3s alone has one node here, use it as a cluster of your own with --cluster context:NAME"
                if which("k3s")
                else ""
            )
            return f"--cluster k3s needs k3d on PATH, and there is none{own}."
        try:
            self.names()
        except ClusterError as error:
            return f"--cluster k3s needs Docker: {error}"
        return ""

    def names(self) -> list[str]:
        """Return the names of all clusters of k3d."""
        said = call(
            [program("k3d"), "cluster", "list", "-o", "json"], what="Listing k3d's clusters"
        )
        return names_in(said)

    def create(self, record: Record, progress: Progress, cancelled: threading.Event | None) -> None:
        """Make a cluster of one server and so many agents."""
        del progress
        if not 1 <= record.nodes <= MOST_NODES:
            msg = f"A k3s cluster has 1 to {MOST_NODES} agents, not {record.nodes}."
            raise ClusterError(msg)
        call(
            [program("k3d"), *creation(record.name, record.nodes, os.environ.get(IMAGE, ""))],
            what=f"Making {record.title}",
            within=CREATE_WITHIN,
            log=record.log,
            # The user's own kubeconfig is not even read.
            environment={"KUBECONFIG": str(record.kubeconfig)},
            cancelled=cancelled,
        )
        self.adopt(record)

    def adopt(self, record: Record) -> None:
        """Write the kubeconfig that k3d keeps of a cluster."""
        argv = [program("k3d"), "kubeconfig", "get", record.name]
        text = call(argv, what=f"Reading the kubeconfig of {record.title}")
        write_private(record.kubeconfig, f"{text}\n")

    def delete(self, record: Record) -> None:
        """Delete the containers and the network."""
        call(
            [program("k3d"), "cluster", "delete", record.name],
            what=f"Deleting {record.title}",
            within=DELETE_WITHIN,
            log=record.log,
            environment={"KUBECONFIG": str(record.kubeconfig)},
        )

    def load(self, record: Record, archive: Path) -> None:
        """Import an image on every node."""
        call(
            [program("k3d"), "image", "import", str(archive), "--cluster", record.name],
            what=f"Loading {archive.name} into {record.title}",
            within=LOAD_WITHIN,
            log=record.log,
        )

    def load_local(self, record: Record, image: str) -> None:
        """Copy an image of Docker's to every node."""
        call(
            [program("k3d"), "image", "import", image, "--cluster", record.name],
            what=f"Loading {image} into {record.title}",
            within=LOAD_WITHIN,
            log=record.log,
        )

    def export_logs(self, record: Record, folder: Path) -> None:
        """Keep what each node's container said; k3s logs there."""
        listed = call([program("k3d"), "node", "list", "-o", "json"], what="Listing k3d's nodes")
        for node in nodes_in(listed, record.name):
            argv = [program("docker"), "logs", node]
            text = call(argv, what=f"Reading the log of {node}", log=None)
            (folder / f"{node}.log").write_text(text, encoding="utf-8")


def creation(name: str, agents: int, image: str) -> list[str]:
    """Return the arguments of k3d that make a cluster on loopback, with nothing of the user's changed."""
    argv = ["cluster", "create", name, "--servers", "1", "--agents", str(agents)]
    argv += ["--image", image] if image else []
    argv += ["--api-port", "127.0.0.1:random", "--no-lb"]
    argv += ["--kubeconfig-update-default=false", "--kubeconfig-switch-context=false"]
    for what in NEEDLESS:
        argv += ["--k3s-arg", f"--disable={what}@server:*"]
    argv += ["--k3s-arg", f"--node-taint={KEEPS_FREE}@server:*"]
    return [*argv, "--wait", "--timeout", f"{CREATE_WITHIN:.0f}s"]


def names_in(listed: str) -> list[str]:
    """Return the names in what `k3d cluster list -o json` printed. Raises ClusterError for anything else."""
    return [str(one["name"]) for one in _rows(listed) if "name" in one]


def nodes_in(listed: str, cluster: str) -> list[str]:
    """Return the nodes of a cluster in what `k3d node list -o json` printed. Raises ClusterError for anything else."""
    label = "k3d.cluster"
    return [
        str(one["name"])
        for one in _rows(listed)
        if (one.get("runtimeLabels") or {}).get(label) == cluster
    ]


def _rows(listed: str) -> list[dict[str, Any]]:
    try:
        # Without any it prints `null`.
        rows = json.loads(listed or "null") or []
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        msg = f"k3d printed no list: {listed[:80]!r}."
        raise ClusterError(msg)
    return rows
