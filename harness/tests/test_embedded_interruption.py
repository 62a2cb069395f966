"""A drill that is ended early: by a signal in any phase, or by SIGKILL and then swept."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from harness.kube.client import KubeClient
from harness.kube.resource import NAMESPACE
from harness.run.leftovers import list_everything
from harness.run.sweep import sweep
from harness.tests.drill_process import DrillProcess

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.run.leftovers import Key

pytestmark = pytest.mark.embedded

SCENARIO = "node-spread-blue-green"


def everything(cluster: EmbeddedCluster) -> set[Key]:
    """Return all objects of the cluster but those that the control plane makes by itself."""

    async def listed() -> set[Key]:
        client = await KubeClient.connect(cluster.kubeconfig, user_agent="test")
        async with client:
            objects = (await list_everything(client)).objects
        # An APIService comes with the first CRD of its group, and goes with the last.
        own = {"events", "leases", "nodes", "csinodes", "apiservices"}
        return {key for key in objects if key[1] not in own}

    return asyncio.run(listed())


def namespace_exists(cluster: EmbeddedCluster, name: str) -> bool:
    async def exists() -> bool:
        client = await KubeClient.connect(cluster.kubeconfig, user_agent="test")
        async with client:
            return await client.exists(NAMESPACE, name)

    return asyncio.run(exists())


def start(cluster: EmbeddedCluster, out: Path, *more: str) -> DrillProcess:
    where = ["--cluster", f"embedded:{cluster.record.name}"]
    return DrillProcess(out, SCENARIO, "--variant", "with-key", *where, *more)


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("set-up", signal.SIGTERM),
        ("Initializing", signal.SIGINT),
        ("Initialized", signal.SIGTERM),
        ("Progressing", signal.SIGINT),
        ("Promoting", signal.SIGTERM),
        ("Succeeded", signal.SIGINT),
    ],
)
def test_a_signal_ends_in_a_report_and_leaves_nothing(
    warm_cluster: EmbeddedCluster, tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    before = everything(warm_cluster)
    drill = start(warm_cluster, tmp_path / "out", "--set", "settle=5s")
    if moment == "set-up":
        drill.wait_until(lambda row: row["type"] == "header", "a header")
    else:
        drill.wait_for_phase(moment)
    drill.signal(number)
    status, output = drill.end()
    assert status == 2, output
    report = drill.report()
    assert f"interrupted by {number.name}" in report
    assert "Nothing. Teardown removed" in report
    left = {
        key for key in everything(warm_cluster) - before if key[1] != "customresourcedefinitions"
    }
    assert left == set()


def test_a_signal_during_teardown_does_not_stop_it(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    drill = start(warm_cluster, tmp_path / "out")
    drill.wait_until(lambda r: r["type"] == "settle" and r["state"] == "end", "the settle time")
    drill.signal(signal.SIGTERM)
    drill.signal(signal.SIGTERM)
    status, output = drill.end()
    assert status in {0, 2}, output
    assert "Nothing. Teardown removed" in drill.report()
    assert not namespace_exists(warm_cluster, drill.namespace)


@pytest.mark.parametrize("phase", ["Initializing", "Progressing", "Promoting"])
def test_sweep_removes_what_a_killed_run_left(
    warm_cluster: EmbeddedCluster, tmp_path: Path, phase: str
) -> None:
    before = everything(warm_cluster)
    drill = start(warm_cluster, tmp_path / "out")
    drill.wait_for_phase(phase)
    drill.process.kill()
    drill.process.communicate()
    namespace = drill.namespace
    assert namespace_exists(warm_cluster, namespace), "the control: a kill leaves something"
    listed = asyncio.run(sweep(dry_run=True))
    assert any(namespace in line for line in listed.removed)
    assert namespace_exists(warm_cluster, namespace), "a dry run removes nothing"
    result = asyncio.run(sweep(dry_run=False))
    assert result.problems == []
    left = {
        key for key in everything(warm_cluster) - before if key[1] != "customresourcedefinitions"
    }
    assert left == set()
    again = asyncio.run(sweep(dry_run=True))
    assert not any(namespace in line for line in again.removed)
