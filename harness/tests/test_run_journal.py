"""The journal: on disk before anything is made, and readable after any kill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.run.journal import Journal, ObjectKey, all_journals, read

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = ObjectKey("", "v1", "namespaces", "Namespace", "drill-x")
DEPLOYMENT = ObjectKey("apps", "v1", "deployments", "Deployment", "web", "drill-x")


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))


def _journal(tmp_path: Path) -> Journal:
    return Journal.open("run-1", "embedded", tmp_path / "kubeconfig", None)


def test_an_object_is_in_the_file_before_its_creation_returns(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.make(NAMESPACE, "drill-a")
    again = read(journal.path)
    assert again is not None
    assert [(e.key, e.drill, e.uid) for e in again.entries] == [(NAMESPACE, "drill-a", "")]
    assert again.reach.run == "run-1"


def test_uid_and_removal_are_read_back(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.made(journal.make(NAMESPACE, "a"), "uid-1")
    journal.gone(journal.make(DEPLOYMENT, "a"))
    again = read(journal.path)
    assert again is not None
    assert [(e.key, e.uid) for e in again.entries] == [(NAMESPACE, "uid-1")]


def test_many_objects_are_announced_with_one_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = _journal(tmp_path)
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    keys = [replace(DEPLOYMENT, name=f"web-{number}") for number in range(300)]
    entries = journal.make_all(keys, "a")
    assert len(synced) == 1
    for entry in entries:
        journal.made(entry, f"uid-of-{entry.key.name}")
    journal.gone(*entries[:200])
    assert len(synced) == 1
    again = read(journal.path)
    assert again is not None
    assert [e.uid for e in again.entries] == [f"uid-of-web-{n}" for n in range(200, 300)]
    assert again.entries == journal.entries


def test_a_line_that_a_kill_cut_off_does_not_hide_the_others(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.make(NAMESPACE, "a")
    with journal.path.open("a") as file:
        file.write('{"make": {"group": "ap')
    again = read(journal.path)
    assert again is not None
    assert [e.key for e in again.entries] == [NAMESPACE]


def test_a_journal_with_entries_stays_and_an_empty_one_goes(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    entry = journal.make(NAMESPACE, "a")
    journal.close()
    assert [found.path for found in all_journals()] == [journal.path]
    journal.gone(entry)
    journal.close()
    assert all_journals() == []


def test_a_run_is_alive_only_as_the_very_same_process(tmp_path: Path) -> None:
    reach = _journal(tmp_path).reach
    assert reach.alive()
    reach.pid_started += 5  # the clock was corrected meanwhile
    assert reach.alive()
    reach.pid_started -= 3600  # another process got the pid an hour later
    assert not reach.alive()
    reach.pid = max(psutil.pids()) + 1_000_000
    assert not reach.alive()
