"""What a tool that makes clusters has to offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from harness.clusters.base import Progress
    from harness.clusters.local.records import Record


class Provider(Protocol):
    """One tool. Everything blocks, and raises ClusterError with one sentence."""

    @property
    def kind(self) -> str:
        """The kind of its clusters, as `--cluster` has it: kind or k3s."""

    @property
    def tool(self) -> str:
        """Name of the program."""

    def missing(self) -> str:
        """Return why it cannot be used on this machine, a sentence; empty when it can."""

    def names(self) -> list[str]:
        """Return the names of all clusters that the tool knows."""

    def create(self, record: Record, progress: Progress, cancelled: threading.Event | None) -> None:
        """Make the cluster with a private kubeconfig at `record.kubeconfig`; its nodes need not be ready yet."""

    def adopt(self, record: Record) -> None:
        """Write the private kubeconfig of a cluster that somebody else made."""

    def delete(self, record: Record) -> None:
        """Delete the cluster with everything in it; no error when there is none."""

    def load(self, record: Record, archive: Path) -> None:
        """Put an image, as `docker save` writes it, where every node finds it."""

    def load_local(self, record: Record, image: str) -> None:
        """The same with an image of this machine's container engine."""

    def export_logs(self, record: Record, folder: Path) -> None:
        """Copy the logs of nodes and components into a folder that is there."""
