"""kind: makes clusters of containers, by way of pytest-kind; nothing is downloaded but what kind itself pulls."""

from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded.records import write_private
from harness.clusters.kind import child
from harness.clusters.kind.settings import MOST_NODES, base_of, configuration, settings
from harness.clusters.local.tool import call, program, which
from harness.programs.paths import python_path

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.clusters.local.records import Record

CREATE_WITHIN: Final = 600.0
"""Seconds for a new cluster: half a minute, and the pull of its node image where there is none yet."""
DELETE_WITHIN: Final = 120.0
LOAD_WITHIN: Final = 180.0
LOGS_WITHIN: Final = 120.0
EXTRA: Final = "pip install 'rollout-drill[kind]'"


class Kind:
    """The tool, found anew for each call: PATH may change."""

    kind = "kind"
    tool = "kind"

    def missing(self) -> str:
        """Return what is not there: kind, kubectl, pytest-kind, or an answer of its container engine."""
        for name in ("kind", "kubectl"):
            if which(name) is None:
                return f"--cluster kind needs {name} on PATH, and there is none."
        if importlib.util.find_spec("pytest_kind") is None:
            return f"--cluster kind needs pytest-kind: {EXTRA}."
        try:
            self.names()
        except ClusterError as error:
            return f"--cluster kind needs a container engine that answers (Docker, Podman or nerdctl): {error}"
        return ""

    def names(self) -> list[str]:
        """Return the names of all kind clusters of the engine."""
        said = call([program("kind"), "get", "clusters"], what="Listing kind's clusters")
        return said.split()

    def create(self, record: Record, progress: Progress, cancelled: threading.Event | None) -> None:
        """Make a cluster of one control plane and so many workers."""
        if not 1 <= record.nodes <= MOST_NODES:
            msg = f"A kind cluster has 1 to {MOST_NODES} workers, not {record.nodes}."
            raise ClusterError(msg)
        site = settings()
        config = configuration(base_of(site.config), record.name, record.nodes)
        path = record.folder / "kind.yaml"
        # JSON is YAML, and needs no writer.
        write_private(path, json.dumps(config, indent=1))
        self._child("create", record, CREATE_WITHIN, cancelled, image=site.image, config=str(path))
        if site.after_create:
            progress(f"Running {site.after_create[0]} on {record.title}.")
            given = {"KUBECONFIG": str(record.kubeconfig), "DRILL_KIND_NAME": record.name}
            call(
                site.after_create,
                what=f"{site.after_create[0]}, as DRILL_KIND_AFTER_CREATE has it,",
                within=CREATE_WITHIN,
                log=record.log,
                environment=given,
                cancelled=cancelled,
            )

    def adopt(self, record: Record) -> None:
        """Write the kubeconfig that kind keeps of a cluster."""
        argv = [program("kind"), "get", "kubeconfig", "--name", record.name]
        text = call(argv, what=f"Reading the kubeconfig of {record.title}")
        write_private(record.kubeconfig, f"{text}\n")

    def delete(self, record: Record) -> None:
        """Delete the containers."""
        self._child("delete", record, DELETE_WITHIN, None)

    def load(self, record: Record, archive: Path) -> None:
        """Import an image on every node."""
        call(
            [program("kind"), "load", "image-archive", str(archive), "--name", record.name],
            what=f"Loading {archive.name} into {record.title}",
            within=LOAD_WITHIN,
            log=record.log,
        )

    def load_local(self, record: Record, image: str) -> None:
        """Copy an image of Docker's to every node."""
        call(
            [program("kind"), "load", "docker-image", image, "--name", record.name],
            what=f"Loading {image} into {record.title}",
            within=LOAD_WITHIN,
            log=record.log,
        )

    def export_logs(self, record: Record, folder: Path) -> None:
        """Have kind collect the logs of kubelets, containerd and pods."""
        call(
            [program("kind"), "export", "logs", str(folder), "--name", record.name],
            what=f"Exporting the logs of {record.title}",
            within=LOGS_WITHIN,
            log=record.log,
        )

    def _child(
        self,
        verb: str,
        record: Record,
        within: float,
        cancelled: threading.Event | None,
        *,
        image: str = "",
        config: str = "",
    ) -> None:
        job = child.Job(
            record.name,
            str(record.folder),
            str(record.kubeconfig),
            program("kind"),
            program("kubectl"),
            image,
            config,
        )
        done = {"create": "Making", "delete": "Deleting"}[verb]
        call(
            child.argv(verb, job),
            what=f"{done} {record.title}",
            within=within,
            log=record.log,
            # The user's own kubeconfig is not even read.
            environment={"KUBECONFIG": str(record.kubeconfig), "PYTHONPATH": python_path()},
            cancelled=cancelled,
        )
