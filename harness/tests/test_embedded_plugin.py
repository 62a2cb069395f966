"""The pytest plugin in somebody else's repository: drills of their own, on a warm cluster."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harness
from harness.data import data_path

if TYPE_CHECKING:
    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

MODULE = """\
import pytest

@pytest.mark.drill
def test_drill(drill_scenario, drill, request):
    drill.must_pass(drill_scenario, request)
"""
SERVED = "primary.ready >= 1"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two scenarios of its own, one of which fails, and a module of three lines."""
    (tmp_path / "test_ours.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, check in (("own-good", SERVED), ("own-broken", "primary.ready >= 3")):
        folder = tmp_path / "ours" / name
        shutil.copytree(data_path("scenarios", "node-spread-blue-green"), folder)
        file = folder / "scenario.yaml"
        text = file.read_text().replace("name: node-spread-blue-green", f"name: {name}", 1)
        assert SERVED in text
        file.write_text(text.replace(SERVED, check))
    return tmp_path


def start(repository: Path, cluster: str, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """Start pytest there as a person does, but without whatever other plugins are installed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    root = str(Path(harness.__file__).parents[1])
    fixed = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": root}
    plugins = ["-p", "harness.plugin", "-p", "xdist"]
    where = ["--drill-scenarios", "ours", "--drill-cluster", cluster]
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *plugins, "-m", "drill", *where, *arguments],
        cwd=repository,
        env={**kept, **fixed, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(repository: Path, cluster: EmbeddedCluster, *arguments: str) -> tuple[int, str]:
    process = start(repository, f"embedded:{cluster.record.name}", *arguments)
    output, _ = process.communicate(timeout=240)
    return process.returncode, output


def reports(repository: Path, output: str) -> list[Path]:
    """Return the reports that the terminal summary names."""
    found = [Path(line) for line in re.findall(r"^ +report: (.+)$", output, re.MULTILINE)]
    assert all(path.is_file() and repository in path.parents for path in found), found
    return found


def test_own_drills_pass_and_the_summary_names_their_reports(
    warm_cluster: EmbeddedCluster, repository: Path
) -> None:
    status, output = run(
        repository, warm_cluster, "-k", "own-good and (with-key or no-surge)", "-n", "2"
    )
    assert status == 0, output
    assert "2 passed" in output
    summary = output[output.index("= drills =") :]
    assert len(reports(repository, summary)) == 2
    for variant in ("with-key", "no-surge"):
        assert re.search(rf"^pass +own-good\[{variant}", summary, re.MULTILINE), summary
    assert {path.name for path in repository.iterdir()} >= {"drill-reports", "ours"}


def test_a_drill_that_fails_fails_its_test_with_the_finding(
    warm_cluster: EmbeddedCluster, repository: Path
) -> None:
    status, output = run(
        repository, warm_cluster, "-k", "own-broken and with-key", "--drill-out", "out"
    )
    assert status == 1, output
    assert "1 failed" in output
    failures = output[output.index("= FAILURES =") : output.index("= drills =")]
    assert "primary-served-throughout: fail: " in failures
    assert "primary.ready" in failures
    (report,) = set(reports(repository, output))
    assert report.parents[1] == repository / "out"
    assert "Nothing. Teardown removed" in report.read_text(encoding="utf-8")


def test_an_interrupt_while_the_cluster_is_made_ends_the_session_and_leaves_nothing(
    repository: Path, request: pytest.FixtureRequest
) -> None:
    state = repository / "state"
    binaries = ["--drill-binaries", str(request.config.getoption("--drill-binaries"))]
    process = start(repository, "embedded", "-k", "own-good", *binaries, DRILL_STATE_DIR=str(state))
    deadline = time.monotonic() + 30
    while not list(state.glob("clusters/*/pids/*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 2, output
    assert "SIGINT: no drill had begun" in output
    assert [path for path in state.glob("*/*") if path.parent.name != "failed"] == []
