"""A cluster of somebody else: used through a context of the user's kubeconfig, and left as it was."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.errors import NotFound
from harness.kube.resource import CANARY, CRD, NAMESPACE
from harness.model.outcome import ExitCode
from harness.run.identity import MANAGED_BY, RUN_LABEL, labels
from harness.subjects.bundled import Bundled
from harness.tests.drill_process import DrillProcess, command
from harness.tests.drilling import kubeconfig, with_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.kube.client import KubeClient

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
CONTEXT = "acme-dev"
WHERE = ("--cluster", f"context:{CONTEXT}")
RUN = ("node-spread-blue-green", "--variant", "with-key", *WHERE)
CRD_NAME = "canaries.flagger.app"
ME = "somebody"


@pytest.fixture
def config(warm_cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    return kubeconfig(warm_cluster, tmp_path / "config", CONTEXT)


async def install_crd(client: KubeClient) -> JSON:
    """Install the CRD as somebody, if it is missing, and return it once it is served."""
    (given,) = (
        crd
        for crd in Bundled().cluster_objects()
        if crd["metadata"]["name"] == "canaries.flagger.app"
    )
    if not await client.exists(CRD, CRD_NAME):
        await client.create(CRD, given, field_manager=ME)
    async with asyncio.timeout(15):
        while True:
            got = await client.get(CRD, CRD_NAME)
            rows = (got.get("status") or {}).get("conditions") or ()
            if ("Established", "True") in {(row["type"], row["status"]) for row in rows}:
                return got
            await asyncio.sleep(0.1)


@pytest.fixture
def crd(warm_cluster: EmbeddedCluster) -> JSON:
    """The CRD, as somebody installed it before."""
    installed: JSON = with_client(warm_cluster, install_crd)
    return installed


@pytest.fixture
def no_crd(warm_cluster: EmbeddedCluster) -> Iterator[None]:
    """A cluster without the CRD; other tests find it there again."""

    async def remove(client: KubeClient) -> None:
        with contextlib.suppress(NotFound):
            await client.delete(CRD, CRD_NAME)
        async with asyncio.timeout(15):
            while await client.exists(CRD, CRD_NAME):  # noqa: ASYNC110 - the server is what is waited for
                await asyncio.sleep(0.1)

    with_client(warm_cluster, remove)
    yield
    with_client(warm_cluster, install_crd)


def exists(cluster: EmbeddedCluster, *names: str) -> list[bool]:
    async def look(client: KubeClient) -> list[bool]:
        return [await client.exists(NAMESPACE, name) for name in names]

    found: list[bool] = with_client(cluster, look)
    return found


def drills(cluster: EmbeddedCluster) -> list[str]:
    """Return the namespaces that carry a run's label."""

    async def look(client: KubeClient) -> list[str]:
        items, _ = await client.list(NAMESPACE, label_selector=RUN_LABEL)
        return [item["metadata"]["name"] for item in items]

    found: list[str] = with_client(cluster, look)
    return found


def test_a_crd_that_was_there_is_not_touched(
    warm_cluster: EmbeddedCluster, config: Path, crd: JSON, tmp_path: Path
) -> None:
    drill = DrillProcess(tmp_path / "out", *RUN, KUBECONFIG=str(config))
    status, output = drill.end()
    assert status == 0, output
    report = drill.report()
    assert "Nothing. Teardown removed" in report
    after = with_client(warm_cluster, lambda client: client.get(CRD, CRD_NAME))
    for field in ("uid", "resourceVersion", "generation"):
        assert after["metadata"][field] == crd["metadata"][field]
    assert drills(warm_cluster) == []
    assert command("sweep", "--dry-run") == (0, "nothing is left of earlier runs\n")


@pytest.mark.usefixtures("no_crd")
@pytest.mark.parametrize("used", [False, True], ids=["unused", "used by somebody"])
def test_a_crd_that_was_missing_is_removed_again_unless_it_is_used(
    warm_cluster: EmbeddedCluster, config: Path, tmp_path: Path, *, used: bool
) -> None:
    theirs = f"theirs-{secrets.token_hex(3)}"

    async def use(client: KubeClient) -> None:
        await client.create(NAMESPACE, {"metadata": {"name": theirs}}, field_manager=ME)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
        spec = {
            "targetRef": target,
            "service": {"port": 80},
            "analysis": {"interval": "1m", "threshold": 1, "iterations": 1},
        }
        body = {"apiVersion": CANARY.api_version, "kind": "Canary", "metadata": {"name": "theirs"}}
        await client.create(CANARY, {**body, "spec": spec}, theirs, field_manager=ME)

    drill = DrillProcess(tmp_path / "out", *RUN, KUBECONFIG=str(config))
    drill.wait_for_phase("Initialized")
    if used:
        with_client(warm_cluster, use)
    status, output = drill.end()
    assert status == 0, output
    assert "Nothing. Teardown removed" in drill.report()

    async def after(client: KubeClient) -> tuple[bool, bool]:
        crd = await client.exists(CRD, CRD_NAME)
        canary = crd and await client.exists(CANARY, "theirs", theirs)
        return crd, canary

    assert with_client(warm_cluster, after) == (used, used)
    stays = f"CustomResourceDefinition {CRD_NAME} stays: there is 1 object of it"
    assert (stays in output) is used
    if used:
        with_client(warm_cluster, lambda client: client.delete(NAMESPACE, theirs))
    assert command("sweep", "--dry-run") == (0, "nothing is left of earlier runs\n")


@pytest.mark.parametrize(
    ("context", "status", "sentence"),
    [
        ("", ExitCode.USAGE, "name a context, as in context:NAME; there are: elsewhere, acme-dev"),
        (
            "nosuch",
            ExitCode.USAGE,
            "There is no context 'nosuch' in {config}; there are: elsewhere, acme-dev.",
        ),
        (
            "elsewhere",
            ExitCode.ERROR,
            "The cluster of context 'elsewhere' ({config}) cannot be used",
        ),
    ],
)
def test_a_context_that_cannot_be_used_is_refused(
    config: Path, tmp_path: Path, context: str, status: ExitCode, sentence: str
) -> None:
    arguments = ("run", RUN[0], "--cluster", f"context:{context}", "--out", str(tmp_path / "out"))
    began = time.monotonic()
    got, output = command(*arguments, KUBECONFIG=str(config))
    assert sentence.format(config=config) in output
    assert got == status
    # Nobody waits half a minute for each of three variants to learn that an address is wrong.
    assert time.monotonic() - began < 20
    assert not (tmp_path / "out").exists()


def test_sweep_removes_what_another_machine_left_and_nothing_else(
    warm_cluster: EmbeddedCluster, config: Path, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    run = {RUN_LABEL: "20200101t000000z-gone"}
    made = {
        f"left-{mark}": labels("20200101t000000z-gone", "some-drill"),
        f"plain-{mark}": {},
        f"managed-{mark}": MANAGED_BY,
        f"run-{mark}": run,
        f"other-{mark}": {**run, "app.kubernetes.io/managed-by": "helm"},
    }

    async def make(client: KubeClient) -> None:
        for name, marks in made.items():
            body = {"metadata": {"name": name, "labels": marks}}
            await client.create(NAMESPACE, body, field_manager=ME)

    with_client(warm_cluster, make)
    left, *others = made
    living = DrillProcess(tmp_path / "out", *RUN, KUBECONFIG=str(config))
    try:
        living.wait_for_phase("Initializing")
        # Nobody here can tell whether its run lives on another machine, so it has to be old, or the user certain.
        status, told = command("sweep", *WHERE, KUBECONFIG=str(config))
        assert status == 0
        assert told.startswith(f"spared Namespace {left} (run 20200101t000000z-gone), 0 min old")
        certain = (*WHERE, "--older-than", "0s")
        status, told = command("sweep", *certain, "--dry-run", KUBECONFIG=str(config))
        what = f"Namespace {left} (run 20200101t000000z-gone)\n"
        assert (status, told) == (0, f"would remove {what}")
        assert exists(warm_cluster, *made) == [True] * len(made)
        status, told = command("sweep", *certain, KUBECONFIG=str(config))
        assert (status, told) == (0, f"removed {what}")
        assert exists(warm_cluster, left, *others) == [False] + [True] * len(others)
        status, told = living.end()
        assert status == 0, told
    finally:
        if living.process.poll() is None:
            living.kill()

        async def remove(client: KubeClient) -> None:
            for name in others:
                await client.delete(NAMESPACE, name)

        with_client(warm_cluster, remove)
    assert (
        command("sweep", *WHERE, KUBECONFIG=str(config))[1] == "nothing is left of earlier runs\n"
    )
