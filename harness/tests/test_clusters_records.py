"""What is remembered about embedded clusters, and which processes are theirs."""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.base import ClusterError
from harness.clusters.embedded import cluster, processes, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> records.Record:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    pid, started = records.this_process()
    made = records.Record(
        "one", 2, 7, pid, started, owner_bound=True, kwokctl="/nowhere/kwokctl", ports={"a": 1}
    )
    records.write(made)
    return made


@pytest.fixture
def component(record: records.Record) -> Iterator[subprocess.Popen[bytes]]:
    """A process that was started as a program of the cluster."""
    program = record.workdir / "bin" / "etcd"
    program.parent.mkdir(parents=True)
    program.symlink_to(shutil.which("sleep") or "/bin/sleep")
    (record.workdir / "pids").mkdir()
    with subprocess.Popen([program, "60"]) as process:
        (record.workdir / "pids" / "etcd.pid").write_text(str(process.pid), encoding="utf-8")
        yield process
        process.kill()


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "../x", "a" * 41, "a/b", "a\n"])
def test_names_that_are_no_names_are_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="no name for a cluster"):
        records.check_name(name)


def test_a_record_is_read_as_it_was_written(record: records.Record) -> None:
    assert records.read("one") == record
    assert records.read_all() == [record]


def test_records_are_private(record: records.Record) -> None:
    file = record.folder / "record.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.folder.stat().st_mode) == 0o700


def test_a_broken_record_is_no_record(record: records.Record) -> None:
    (record.folder / "record.json").write_text('{"name": "one"', encoding="utf-8")
    assert records.read("one") is None


def test_an_owner_is_alive_until_its_number_is_used_again(record: records.Record) -> None:
    assert record.owner_alive()
    assert not dataclasses.replace(record, owner_started=record.owner_started - 60).owner_alive()


def test_processes_are_told_by_the_program_they_run(
    record: records.Record, component: subprocess.Popen[bytes]
) -> None:
    assert processes.running(record) == {"etcd": component.pid}


def test_pid_files_of_strangers_are_dropped(
    record: records.Record, component: subprocess.Popen[bytes]
) -> None:
    folder = record.workdir / "pids"
    (folder / "kube-apiserver.pid").write_text(str(os.getpid()), encoding="utf-8")
    (folder / "kwok-controller.pid").write_text("garbage", encoding="utf-8")
    processes.drop_strange_pid_files(record)
    assert [file.name for file in folder.iterdir()] == ["etcd.pid"]
    assert component.poll() is None


def test_deleting_works_without_kwokctl_and_without_pid_files(
    record: records.Record, component: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "END_SECONDS", 0.2)
    shutil.rmtree(record.workdir / "pids")
    assert cluster.down("one")
    assert not processes.running(record)
    component.wait(5)
    assert not record.workdir.exists()
    assert not record.folder.exists()
    assert not cluster.down("one")


def test_clusters_of_runs_that_are_gone_are_removed_and_others_stay(
    record: records.Record,
) -> None:
    gone: dict[str, Any] = {"owner_pid": 2**22 + 1, "owner_started": 1.0}
    abandoned = dataclasses.replace(record, name="abandoned", **gone)
    unfinished = dataclasses.replace(record, name="unfinished", owner_bound=False, **gone)
    kept = dataclasses.replace(record, name="kept", owner_bound=False, ready=True, **gone)
    for one in (abandoned, unfinished, kept):
        records.write(one)
    said: list[str] = []
    assert cluster.reap(said.append) == ["abandoned", "unfinished"]
    assert [one.name for one in records.read_all()] == ["kept", "one"]
    assert len(said) == 2


def test_a_listing_tells_dead_clusters(record: records.Record) -> None:
    records.write(dataclasses.replace(record, ready=True))
    (listed,) = cluster.listing()
    assert (listed.name, listed.nodes, listed.seed, listed.alive) == ("one", 2, 7, False)
    assert listed.created_by == os.getpid()


def test_a_dead_cluster_makes_room_and_one_being_made_does_not(record: records.Record) -> None:
    with pytest.raises(ClusterError, match="is being made by process"):
        cluster._make_room("one", print)
    records.write(dataclasses.replace(record, ready=True))
    said: list[str] = []
    cluster._make_room("one", said.append)
    assert said == ["The processes of embedded cluster 'one' are gone; making it again."]
    assert records.read("one") is None


def test_logs_are_asked_for_by_known_names(record: records.Record) -> None:
    assert cluster.logs("one", "etcd") == record.workdir / "logs" / "etcd.log"
    with pytest.raises(ClusterError, match="allowed: etcd, kube-apiserver"):
        cluster.logs("one", "kubelet")
    with pytest.raises(ClusterError, match="there are: one"):
        cluster.logs("two", "etcd")
