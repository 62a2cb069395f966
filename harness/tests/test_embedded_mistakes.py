"""What a user can get wrong about clusters and folders: one clear sentence, the right exit code, no traceback."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.model.outcome import ExitCode
from harness.tests.drill_process import command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.records import Record

pytestmark = pytest.mark.embedded

RUN = ("run", "node-spread-blue-green", "--variant", "with-key")


def told(output: str) -> str:
    """Return the one line of output that is not progress."""
    (line,) = [line for line in output.splitlines() if not line.startswith("[")]
    return line


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (
            ["--cluster", "embedded", "--binaries", "path:/nowhere"],
            ExitCode.USAGE,
            "The folder /nowhere has no kwokctl, no kwok, no etcd, no kube-apiserver, no kube-controller-manager, no kube-scheduler; all",
        ),
        (
            ["--cluster", "embedded", "--binaries", "pat:/tmp"],
            ExitCode.USAGE,
            "--binaries pat:/tmp: unknown source of programs; allowed: auto, build, download, path:DIR.",
        ),
        (
            ["--cluster", "embedded:nosuch"],
            ExitCode.USAGE,
            "There is no embedded cluster 'nosuch'; there are: none.",
        ),
        (
            ["--cluster", "embedded:No Such"],
            ExitCode.USAGE,
            "'No Such' is no name for a cluster",
        ),
        (
            ["--cluster", "minikube"],
            ExitCode.USAGE,
            "--cluster minikube: unknown kind of cluster; allowed: embedded, embedded:NAME, kind, kind:NAME",
        ),
    ],
)
def test_a_cluster_that_cannot_be_had(
    tmp_path: Path, arguments: list[str], status: ExitCode, sentence: str
) -> None:
    state = tmp_path / "state"
    got, output = command(*RUN, *arguments, "--out", str(tmp_path / "out"), state=state)
    assert sentence in told(output)
    assert got == status
    assert not (tmp_path / "out").exists()
    assert list(state.glob("*/*")) == []


def test_a_state_folder_that_is_a_file(
    tmp_path: Path, warm_cluster: object, request: pytest.FixtureRequest
) -> None:
    del warm_cluster
    state = tmp_path / "state"
    state.write_text("a file")
    binaries = ("--binaries", str(request.config.getoption("--drill-binaries")))
    got, output = command(*RUN, *binaries, "--out", str(tmp_path / "out"), state=state)
    assert str(state) in told(output)
    assert got == ExitCode.ERROR
    assert state.read_text() == "a file"


@pytest.mark.parametrize("below", ["", "out", "more/out"])
def test_an_output_folder_that_cannot_be(tmp_path: Path, below: str) -> None:
    file, state = tmp_path / "file", tmp_path / "state"
    file.write_text("a file")
    got, output = command(*RUN, "--out", str(file / below), state=state)
    assert told(output) == f"--out {file / below}: {file} is a file; choose another folder"
    assert got == ExitCode.USAGE
    assert not state.exists(), "nothing was made before the folder was looked at"


@pytest.fixture
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Record]:
    """A warm cluster in a state folder of its own, whose API server was killed."""
    from harness.clusters.embedded import processes, records

    state = tmp_path / "state"
    binaries = str(request.config.getoption("--drill-binaries"))
    status, output = command("cluster", "up", "kept", "--binaries", binaries, state=state)
    assert status == 0, output
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRILL_STATE_DIR", str(state))
        record = records.read("kept")
        assert record is not None
        pid = processes.running(record)["kube-apiserver"]
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while psutil.pid_exists(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield record
    assert command("cluster", "down", "--all", state=state)[0] == 0


def test_a_warm_cluster_that_died(
    kept: Record, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    state, out = tmp_path / "state", ("--out", str(tmp_path / "out"))
    sentence = (
        "Embedded cluster 'kept' does not run any more; make it again with: drill cluster up kept."
    )
    # Somebody else has its port by now, so that connecting to it would tell nothing.
    with socket.create_server(("127.0.0.1", kept.ports["kubeApiserverPort"])):
        got, output = command(*RUN, "--cluster", "embedded:kept", *out, state=state)
    assert sentence in told(output)
    assert got == ExitCode.ERROR
    assert "dead" in command("cluster", "list", state=state)[1]
    got, output = command("cluster", "prove", "kept", state=state)
    assert got == ExitCode.USAGE
    # Any embedded cluster will do here, so a new one is made.
    binaries = ("--binaries", str(request.config.getoption("--drill-binaries")))
    got, output = command(*RUN, "--cluster", "embedded", *binaries, *out, state=state)
    assert got == ExitCode.OK, output
    assert "Using embedded cluster 'kept'" not in output
