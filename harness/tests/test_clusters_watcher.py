"""The watcher deletes a cluster when the process that made it is gone."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from harness.clusters.embedded import records, watcher

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> records.Record:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    made = records.Record("one", 1, 1, os.getpid(), 0.0, owner_bound=True, kwokctl="/no", ports={})
    records.write(made)
    return made


def test_a_dismissed_watcher_ends_and_touches_nothing(record: records.Record) -> None:
    watching = watcher.watch(record)
    watching.dismiss()
    assert watching.process.returncode == 0
    assert records.read("one") == record


def test_the_end_of_the_pipe_deletes_the_cluster_despite_signals(record: records.Record) -> None:
    watching = watcher.watch(record)
    deadline = time.monotonic() + 10
    # Signals may only be sent once it is past the start of Python, where nothing is ignored yet.
    while not _ignores_sigterm(watching.process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        watching.process.send_signal(number)
    os.close(watching.pipe)
    assert watching.process.wait(10) == 0
    assert not record.folder.exists()


def test_a_later_cluster_of_the_same_name_is_left_alone(record: records.Record) -> None:
    watching = watcher.watch(record)
    later = dataclasses.replace(record, id="another")
    records.write(later)
    os.close(watching.pipe)
    assert watching.process.wait(10) == 0
    assert records.read("one") == later


def test_it_is_in_a_session_of_its_own(record: records.Record) -> None:
    watching = watcher.watch(record)
    assert os.getsid(watching.process.pid) == watching.process.pid
    watching.dismiss()


def _ignores_sigterm(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:  # noqa: PTH123
        ignored = next(line.split()[1] for line in file if line.startswith("SigIgn"))
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)
