"""Logs of a cluster's nodes: kept without secrets, not without end, and never at the price of a report."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.clusters.base import Cluster, ClusterError
from harness.model.timeline import ClusterFacts
from harness.run import cluster_logs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

FACTS = ClusterFacts("kind", "x", "v1.35.4", ())


@dataclass(frozen=True, slots=True)
class _Logging(Cluster):
    """A cluster whose logs are what a function writes."""

    writes: Callable[[Path], object] = field(kw_only=True)

    async def save_logs(self, folder: Path) -> None:
        self.writes(folder)


def _keep(tmp_path: Path, writes: Callable[[Path], object]) -> list[str]:
    said: list[str] = []
    cluster = _Logging("kind:x", FACTS, tmp_path / "kubeconfig", writes=writes)
    clean: Callable[[str], str] = lambda text: text.replace("hunter2", "…")  # noqa: E731 - one use
    asyncio.run(cluster_logs.keep(cluster, tmp_path, clean, said.append))
    return said


def test_secrets_are_taken_out(tmp_path: Path) -> None:
    def writes(folder: Path) -> None:
        (folder / "node").mkdir()
        (folder / "node" / "kubelet.log").write_text("password hunter2", encoding="utf-8")
        (folder / "node" / "link").symlink_to("kubelet.log")

    assert _keep(tmp_path, writes) == []
    files = sorted(path.name for path in (tmp_path / cluster_logs.FOLDER).rglob("*"))
    assert files == ["kubelet.log", "node"]
    text = (tmp_path / cluster_logs.FOLDER / "node" / "kubelet.log").read_text("utf-8")
    assert text == "password …"


def test_of_a_long_one_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_logs, "MOST_BYTES", 4)
    _keep(tmp_path, lambda folder: (folder / "a.log").write_text("0123456789", encoding="utf-8"))
    assert (tmp_path / cluster_logs.FOLDER / "a.log").read_text("utf-8") == "6789"


def test_a_cluster_without_logs_leaves_no_folder(tmp_path: Path) -> None:
    assert _keep(tmp_path, lambda _folder: None) == []
    assert not (tmp_path / cluster_logs.FOLDER).exists()


def test_what_cannot_be_had_is_said_and_nothing_half_stays(tmp_path: Path) -> None:
    def writes(folder: Path) -> None:
        (folder / "a.log").write_text("hunter2", encoding="utf-8")
        msg = "no engine"
        raise ClusterError(msg)

    assert _keep(tmp_path, writes) == ["the cluster's logs could not be kept: no engine"]
    assert not (tmp_path / cluster_logs.FOLDER).exists()
