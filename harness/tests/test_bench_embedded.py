"""The storm on the real control plane, small: three rollouts and the bundled controller."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import jsonschema
import psutil
import pytest

from harness.bench.json_report import schema
from harness.model.outcome import ExitCode
from harness.tests.drill_process import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Running = subprocess.Popen[str]

pytestmark = pytest.mark.embedded
PATIENCE = 240.0


@contextlib.contextmanager
def storm(folder: Path, request: pytest.FixtureRequest, *more: str) -> Iterator[Running]:
    """Run a storm of three as a process, with its report in `folder`/out and its state in `folder`/state."""
    binaries = str(request.config.getoption("--drill-binaries"))
    options = ["--canaries", "3", "--idle", "3s", "--binaries", binaries]
    process = subprocess.Popen(
        [*COMMAND, "bench", "storm", *options, "--out", str(folder / "out"), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "DRILL_STATE_DIR": str(folder / "state")},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def left(state: Path) -> list[str]:
    """Return files and processes that tell of a cluster or a run."""
    folders = ("journals", "runs", "records", "clusters")
    files = [str(path) for folder in folders for path in (state / folder).glob("*")]
    lines = (" ".join(_command_line(process)) for process in psutil.process_iter())
    return files + [line for line in lines if f"{state}/" in line]


def _command_line(process: psutil.Process) -> Sequence[str]:
    try:
        return () if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()
    except psutil.Error:
        return ()


@pytest.mark.slow
def test_a_storm_measures_the_bundled_controller_and_leaves_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    out = tmp_path / "out"
    with storm(tmp_path, request, "--restarts", "2", "--profile") as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.OK, said
    report = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    jsonschema.validate(report, schema())
    (subject,) = report["subjects"]
    assert subject["problems"] == []
    stages = {stage["name"]: stage for stage in subject["stages"]}
    assert [stage["ended"] for stage in stages.values()] == [3] * 4
    assert [stage["unasked"] for stage in stages.values()] == [0] * 4
    assert [stage["gaps"] for stage in stages.values()] == [0] * 4
    initialise, promote = stages["initialise all"], stages["promote all"]
    made = {(row["verb"], row["resource"]): row["count"] for row in initialise["requests"]["rows"]}
    assert made["create", "services"] == 9
    assert made["create", "deployments.apps"] == 3
    assert promote["detection"]["count"] == promote["finish"]["count"] == 3
    assert stages["idle"]["requests"]["writes"] == 0
    assert initialise["usage"]["rss_most"] > 20 << 20
    assert promote["usage"]["cpu"] > 0
    assert {load["name"] for load in promote["machine"]} >= {"kube-apiserver", "etcd", "harness"}
    loop = stages["restart loop"]
    assert (loop["looked"], loop["writes_by_start"]) == (3, [0, 0])
    assert [profile["stage"] for profile in subject["profiles"]] == list(stages)
    assert "harness/controller/" in (out / "profile.md").read_text(encoding="utf-8")
    assert left(tmp_path / "state") == []


def test_ctrl_c_leaves_nothing_either(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with storm(tmp_path, request) as process:
        assert process.stdout is not None
        said = ""
        while "promote all: begins" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert "Traceback" not in said
    assert left(tmp_path / "state") == []
