"""A cluster of somebody else's with a cordoned node, and a user without rights: what is counted, said and refused there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.resource import NAMESPACE, NODE, PRIORITY_CLASS, SERVICEACCOUNT
from harness.model.outcome import ExitCode
from harness.run.identity import RUN_LABEL
from harness.tests.drill_process import DrillProcess, command
from harness.tests.drilling import kubeconfig, with_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.client import KubeClient

pytestmark = pytest.mark.embedded

CONTEXT = "acme-dev"
WHERE = ("--cluster", f"context:{CONTEXT}")
ME = "somebody"


@pytest.fixture
def config(warm_cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    return kubeconfig(warm_cluster, tmp_path / "config", CONTEXT)


async def cordon(client: KubeClient, node: str, *, on: bool) -> None:
    patch = {"spec": {"unschedulable": on or None}}
    await client.patch(NODE, node, None, patch, field_manager=ME)


@pytest.fixture
def cordoned(warm_cluster: EmbeddedCluster) -> Iterator[str]:
    """Of the two nodes one is cordoned; return the other one."""
    free, other = warm_cluster.facts.nodes
    with_client(warm_cluster, lambda client: cordon(client, other, on=True))
    yield free
    with_client(warm_cluster, lambda client: cordon(client, other, on=False))


def test_a_cordoned_node_does_not_count_not_even_when_it_comes_back(
    warm_cluster: EmbeddedCluster, config: Path, cordoned: str, tmp_path: Path
) -> None:
    status, told = command("doctor", *WHERE, KUBECONFIG=str(config))
    assert status == ExitCode.OK, told
    assert f"1 take pods: {cordoned}; left out: " in told
    # The control: with the other node, the promotion would find a place.
    run = ("node-spread-blue-green", "--variant", "without-key", *WHERE)
    drill = DrillProcess(tmp_path / "out", *run, KUBECONFIG=str(config))
    drill.wait_for_phase("Initialized")
    other = next(name for name in warm_cluster.facts.nodes if name != cordoned)
    with_client(warm_cluster, lambda client: cordon(client, other, on=False))
    status, output = drill.end()
    assert status == ExitCode.OK, output
    report = drill.report()
    assert "1 eligible nodes, exactly 1 needed" in report
    assert "Every node is taken by an old pod" in report
    assert "1 node counted; left out: 1 cordoned." in report
    assert "have the PriorityClass rollout-drill" in report
    assert "state no security context" not in report  # no container runs

    async def left(client: KubeClient) -> bool:
        return await client.exists(PRIORITY_CLASS, "rollout-drill")

    assert with_client(warm_cluster, left) is False


@pytest.fixture
def nobody(warm_cluster: EmbeddedCluster, config: Path) -> Iterator[Path]:
    """The kubeconfig of a user who may do nothing."""
    name = "nobody-here"

    async def make(client: KubeClient) -> str:
        await client.create(NAMESPACE, {"metadata": {"name": name}}, field_manager=ME)
        account = {"metadata": {"name": "nobody"}}
        await client.create(SERVICEACCOUNT, account, name, field_manager=ME)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = SERVICEACCOUNT.path(name, "nobody", "token")
        return str((await client.raw("POST", path, None, request))["status"]["token"])

    token = with_client(warm_cluster, make)
    document: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
    document["users"] = [{"name": "nobody", "user": {"token": token}}]
    for row in document["contexts"]:
        row["context"]["user"] = "nobody"
    config.write_text(json.dumps(document), encoding="utf-8")
    yield config
    with_client(warm_cluster, lambda client: client.delete(NAMESPACE, name))


def test_without_rights_nothing_is_made_and_everything_is_said(
    warm_cluster: EmbeddedCluster, nobody: Path, tmp_path: Path
) -> None:
    run = ("run", "canary-weights", *WHERE, "--out", str(tmp_path / "out"))
    status, told = command(*run, KUBECONFIG=str(nobody))
    assert status == ExitCode.ERROR, told
    assert "No drill can run on context:acme-dev, and nothing was made there. Missing: " in told
    assert "create, get, list, delete namespaces (each drill makes a namespace of its own)" in told
    status, told = command("doctor", *WHERE, "--json", KUBECONFIG=str(nobody))
    body = json.loads(told)
    assert (status, body["able"]) == (ExitCode.UNDECIDED, False)
    states = {row["topic"]: row["state"] for row in body["rows"]}
    assert (states["nodes"], states["autoscaler"], states["admission"]) == ("unknown",) * 3

    async def drills(client: KubeClient) -> int:
        return len((await client.list(NAMESPACE, label_selector=RUN_LABEL))[0])

    assert with_client(warm_cluster, drills) == 0
