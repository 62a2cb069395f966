"""On a cluster of others: theirs stays the same byte for byte, runs share what there is one of, what does not go is explained."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import signal
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.resource import (
    CANARY,
    CONFIGMAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    ROLE,
    ROLEBINDING,
    SERVICE,
    SERVICEACCOUNT,
)
from harness.model.outcome import ExitCode
from harness.run import removal
from harness.run.identity import MANAGED_BY
from harness.run.leftovers import NOISE
from harness.tests.drill_process import DrillProcess, command
from harness.tests.drilling import altered, kubeconfig, session, with_client
from harness.tests.test_embedded_existing import CRD_NAME, ME, install_crd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
SCENARIO = ("node-spread-blue-green", "--variant", "with-key")
TYPES = (CANARY, DEPLOYMENT, SERVICE, CONFIGMAP, SERVICEACCOUNT, ROLE)


def alike(name: str) -> list[tuple[Resource, JSON]]:
    """Return objects as a drill makes them, by names, labels and even our label; only whose they are differs."""
    labels = {"app": name, **MANAGED_BY}
    metadata = {"name": name, "labels": labels}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]},
        },
    }
    canary = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "service": {"port": 80},
        "analysis": {"interval": "1s", "threshold": 1, "iterations": 1},
    }
    service = {"selector": {"app": name}, "ports": [{"port": 80}]}
    primary = {**metadata, "name": f"{name}-primary"}
    return [
        (DEPLOYMENT, {"metadata": metadata, "spec": spec}),
        (DEPLOYMENT, {"metadata": primary, "spec": spec}),
        (SERVICE, {"metadata": metadata, "spec": service}),
        (CONFIGMAP, {"metadata": metadata, "data": {"a": "b"}}),
        (SERVICEACCOUNT, {"metadata": {**metadata, "name": "rollout-drill-controller"}}),
        (CANARY, {"metadata": metadata, "spec": canary}),
    ]


async def make(client: KubeClient, namespace: str, objects: list[tuple[Resource, JSON]]) -> None:
    await client.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
    for resource, obj in objects:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        await client.create(resource, body, namespace, field_manager=ME)


async def settled(client: KubeClient, namespace: str) -> None:
    """Wait until all Deployments are ready: what others do about their objects is over then."""
    async with asyncio.timeout(30):
        while True:
            found, _ = await client.list(DEPLOYMENT, namespace)
            if all((one.get("status") or {}).get("readyReplicas") for one in found):
                return
            await asyncio.sleep(0.2)


async def whole(client: KubeClient, namespace: str) -> str:
    """Return every object of a namespace, whole, but for those that the control plane writes all the time."""
    rows = []
    for resource in await client.discover():
        if resource.namespaced and (resource.group, resource.plural) not in NOISE:
            rows += (await client.list(resource, namespace))[0]
    return json.dumps(rows, sort_keys=True)


async def restricted(client: KubeClient, namespace: str) -> str:
    """Make a user who may do everything in a namespace but give rights, and nothing elsewhere; return the token."""
    rule = {
        "apiGroups": ["", "apps", "autoscaling", "flagger.app"],
        "resources": ["*"],
        "verbs": ["*"],
    }
    await client.create(SERVICEACCOUNT, {"metadata": {"name": "dev"}}, namespace, field_manager=ME)
    role = {"metadata": {"name": "dev"}, "rules": [rule]}
    await client.create(ROLE, role, namespace, field_manager=ME)
    binding = {
        "metadata": {"name": "dev"},
        "roleRef": {"apiGroup": ROLE.group, "kind": "Role", "name": "dev"},
        "subjects": [{"kind": "ServiceAccount", "name": "dev", "namespace": namespace}],
    }
    await client.create(ROLEBINDING, binding, namespace, field_manager=ME)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.raw("POST", SERVICEACCOUNT.path(namespace, "dev", "token"), None, request)
    return str(answer["status"]["token"])


def with_user(config: Path, token: str) -> None:
    """Let the context `dev` of a kubeconfig be that user."""
    document = json.loads(config.read_text(encoding="utf-8"))
    context = next(c for c in document["contexts"] if c["name"] == "admin")
    document["users"].append({"name": "dev", "user": {"token": token}})
    own = {"cluster": context["context"]["cluster"], "user": "dev"}
    document["contexts"].append({"name": "dev", "context": own})
    config.write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def names(warm_cluster: EmbeddedCluster) -> Iterator[tuple[str, str]]:
    """Two namespaces of others, removed in the end."""
    with_client(warm_cluster, install_crd)
    mark = secrets.token_hex(3)
    both = f"decoy-{mark}", f"team-{mark}"
    yield both

    async def remove(client: KubeClient) -> None:
        for name in both:
            await client.delete(NAMESPACE, name)

    with_client(warm_cluster, remove)


def test_what_is_alike_is_the_same_byte_for_byte_after_a_drill_and_a_sweep(
    warm_cluster: EmbeddedCluster, names: tuple[str, str], tmp_path: Path
) -> None:
    decoy, team = names
    config = kubeconfig(warm_cluster, tmp_path / "config", "admin")

    async def prepare(client: KubeClient) -> tuple[str, str, str]:
        # In another namespace all names are the drill's own; beside it, in the same one, nearly so.
        await make(client, decoy, alike("web"))
        beside = [(one, obj) for one, obj in alike("shop") if one in {DEPLOYMENT, CONFIGMAP}]
        await make(client, team, beside)
        token = await restricted(client, team)
        for name in names:
            await settled(client, name)
        return token, await whole(client, decoy), await whole(client, team)

    token, *before = with_client(warm_cluster, prepare)
    with_user(config, token)
    checksum = hashlib.sha256(config.read_bytes()).hexdigest()
    where = ("--cluster", "context:dev", "--namespace", team)
    nodes = ("--nodes", ",".join(warm_cluster.facts.nodes))
    drill = DrillProcess(tmp_path / "out", *SCENARIO, *where, *nodes, KUBECONFIG=str(config))
    status, output = drill.end()
    assert status == 0, output
    report = drill.report()
    assert "Nothing. Teardown removed 1 Canary, 2 Deployment" in report
    assert "ran with the user's own credentials" in report
    assert "not allowed" in report
    assert "shop" not in report
    status, told = command("sweep", *where, "--older-than", "0s", KUBECONFIG=str(config))
    assert (status, told) == (0, "nothing is left of earlier runs\n")

    async def after(client: KubeClient) -> list[str]:
        return [await whole(client, decoy), await whole(client, team)]

    assert with_client(warm_cluster, after) == before
    assert hashlib.sha256(config.read_bytes()).hexdigest() == checksum


def test_two_runs_share_a_crd_and_the_last_one_removes_it(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    config = kubeconfig(warm_cluster, tmp_path / "config", "admin")

    async def exists(client: KubeClient) -> bool:
        return await client.exists(CRD, CRD_NAME)

    async def remove(client: KubeClient) -> None:
        await client.delete(CRD, CRD_NAME)
        async with asyncio.timeout(15):
            while await exists(client):  # noqa: ASYNC110 - the server is what is waited for
                await asyncio.sleep(0.1)

    with_client(warm_cluster, install_crd)
    with_client(warm_cluster, remove)
    runs: list[DrillProcess] = []
    try:
        where = (*SCENARIO, "--cluster", "context:admin", "--set", "settle=80s")
        first = DrillProcess(tmp_path / "first", *where, KUBECONFIG=str(config))
        first.wait_for_phase("Initialized")
        second = DrillProcess(tmp_path / "second", *where, KUBECONFIG=str(config))
        runs = [first, second]
        second.wait_for_phase("Initializing")
        # Ended early, which is the same for what they share.
        first.signal(signal.SIGINT)
        status, output = first.end()
        assert status == ExitCode.INTERRUPTED, output
        assert f"{CRD_NAME} stays: run " in output
        assert with_client(warm_cluster, exists) is True
        second.signal(signal.SIGINT)
        status, output = second.end()
        assert status == ExitCode.INTERRUPTED, output
        assert with_client(warm_cluster, exists) is False
    finally:
        for run in runs:
            if run.process.poll() is None:
                run.kill()
        with_client(warm_cluster, install_crd)


def test_a_finalizer_that_nobody_removes_is_named_with_whose_it_is(
    warm_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "GONE_WITHIN", 6.0)
    folder = altered(
        tmp_path / "held", lambda text: text.replace("name: node-spread", "name: held", 1)
    )
    file = folder / "workload.yaml.j2"
    held = "metadata:\n  finalizers: [example.com/hold]\n"
    file.write_text(file.read_text("utf-8").replace("metadata:\n", held, 1), encoding="utf-8")
    result = session(warm_cluster, folder, tmp_path / "out", "with-key")
    (report,) = result.report.drills
    try:
        assert result.exit_code == ExitCode.LEFT_BEHIND
        told = "\n".join(report.left.explained)
        assert "Deployment" in told
        assert "waits for finalizer example.com/hold (set by rollout-drill at" in told
        assert "NamespaceFinalizersRemaining" in told
    finally:

        async def release(client: KubeClient) -> None:
            patch = {"metadata": {"finalizers": None}}
            found, _ = await client.list(DEPLOYMENT, report.namespace, metadata_only=True)
            for one in found:
                name = one["metadata"]["name"]
                await client.patch(DEPLOYMENT, name, report.namespace, patch, field_manager=ME)
            async with asyncio.timeout(20):
                while await client.exists(NAMESPACE, report.namespace):  # noqa: ASYNC110 - the server is what is waited for
                    await asyncio.sleep(0.2)

        with_client(warm_cluster, release)
