"""Runs with clusters of their own: killed, interrupted while a cluster is made, and two at a time."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import filelock
import psutil
import pytest

from harness.tests.drill_process import DrillProcess, command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.embedded

Start = "Callable[..., DrillProcess]"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def start(
    tmp_path: Path, state: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., DrillProcess]]:
    """Start `drill run` on a cluster of its own; whatever a test leaves is ended after it."""
    started: list[DrillProcess] = []

    def run(name: str = "out", **environment: str) -> DrillProcess:
        where = [
            "--cluster",
            "embedded",
            "--binaries",
            request.config.getoption("--drill-binaries"),
        ]
        arguments = ["node-spread-blue-green", "--variant", "with-key", *where]
        started.append(DrillProcess(tmp_path / name, *arguments, state=state, **environment))
        return started[-1]

    yield run
    for drill in started:
        if drill.process.poll() is None:
            drill.kill()
    command("cluster", "down", "--all", state=state)


def programs(state: Path) -> list[str]:
    """Return the command lines of all processes that were started from, or for, this state folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if f"{state}/" in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def left(state: Path) -> list[str]:
    """Return the files below the state folder that tell of a run or a cluster."""
    folders = ("journals", "runs", "records", "clusters")
    return [str(path) for folder in folders for path in (state / folder).glob("*")]


def until(holds: Callable[[], bool], seconds: float, what: Callable[[], object]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def test_the_cluster_of_a_killed_run_goes_and_sweep_removes_the_rest(
    start: Callable[..., DrillProcess], state: Path
) -> None:
    drill = start()
    drill.wait_for_phase("Progressing")
    names = {line.split()[0].rpartition("/")[2] for line in programs(state)}
    assert {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} <= names
    drill.kill()
    until(lambda: not programs(state), 15, lambda: programs(state))
    assert left(state), "the control: a kill leaves a journal and a token"
    status, told = command("sweep", "--dry-run", state=state)
    assert status == 0
    assert "would remove private files of run" in told
    assert left(state), "a dry run removes nothing"
    status, told = command("sweep", state=state)
    assert status == 0
    assert "removed private files of run" in told
    assert left(state) == []
    assert command("sweep", state=state) == (0, "nothing is left of earlier runs\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_cluster_is_made_leaves_nothing(
    start: Callable[..., DrillProcess], state: Path, number: signal.Signals
) -> None:
    drill = start()
    until(lambda: bool(programs(state)), 30, drill.process.poll)
    drill.signal(number)
    began = time.monotonic()
    status, output = drill.end()
    assert status == 2, output
    assert f"{number.name}: ending the drills" in output
    assert time.monotonic() - began < 20
    assert programs(state) == []
    assert left(state) == []


def test_a_signal_ends_a_run_that_waits_for_another_cluster_to_be_made(
    start: Callable[..., DrillProcess], state: Path, tmp_path: Path
) -> None:
    from harness.clusters.embedded.paths import creation_lock

    # A folder for temporary files of its own, so that no other run on this machine has to wait.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(temporary))
        lock = filelock.FileLock(creation_lock())
    with lock:
        drill = start(TMPDIR=str(temporary))
        until(state.exists, 30, drill.process.poll)
        time.sleep(0.5)
        drill.signal(signal.SIGTERM)
        status, output = drill.end()
    assert status == 2, output
    assert "Another embedded cluster is being made" in output
    assert left(state) == []


def test_two_runs_at_once_have_a_cluster_each(
    start: Callable[..., DrillProcess], state: Path
) -> None:
    drills = [start("one"), start("two")]
    for drill in drills:
        status, output = drill.end()
        assert status == 0, output
    clusters = {next(drill.observations())["cluster"]["name"] for drill in drills}
    assert len(clusters) == 2
    assert programs(state) == []
    assert left(state) == []
