"""Beside a real Flagger that acts everywhere: the bundled controller does its work, and other people's objects stay what they are.

That Flagger acts in every namespace, and so would in the drill's, is what the Canaries of others show: it has initialized them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING

import pytest

from harness.clusters.embedded.binaries import ensure_binaries
from harness.clusters.embedded.cluster import down, up
from harness.kube.client import KubeClient
from harness.kube.resource import CRD
from harness.programs.from_module import cached
from harness.run.adapt.group import DOMAIN
from harness.subjects.flagger_source import program_of
from harness.tests.drill_process import command
from harness.tests.drilling import kubeconfig
from harness.tests.others import VERSION, everything, flagger, settled_canaries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

OTHERS = ("shop", "team-a")
CONTEXT = "acme-dev"
RUN = ("run", "node-spread-blue-green", "--variant", "with-key", "--cluster", f"context:{CONTEXT}")


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[EmbeddedCluster]:
    """A cluster for this test alone: a Flagger that acts everywhere is nobody's good neighbour."""
    if cached(program_of(VERSION)) is None and not os.environ.get("CI"):
        pytest.skip(
            f"Flagger {VERSION} is not in the cache of programs, and building it takes minutes"
        )
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    name = f"beside-{secrets.token_hex(3)}"
    source = str(request.config.getoption("--drill-binaries"))
    made = up(
        name,
        nodes=2,
        seed=1,
        binaries=ensure_binaries(source, print),
        progress=print,
        owner_pid_bound=True,
    )
    try:
        yield made
    finally:
        down(name)


def test_bundled_beside_a_flagger(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    config = kubeconfig(cluster, tmp_path / "config", CONTEXT)
    log = tmp_path / "flagger.log"

    async def crds(client: KubeClient) -> dict[str, str]:
        found, _ = await client.list(CRD, metadata_only=True)
        return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}

    async def story() -> None:
        client = await KubeClient.connect(cluster.kubeconfig, user_agent="test")
        async with client, flagger(cluster, client, log):
            await settled_canaries(client, OTHERS)
            before, types = await everything(client, OTHERS), await crds(client)
            status, output = await asyncio.to_thread(
                command, *RUN, "--out", str(tmp_path / "out"), KUBECONFIG=str(config)
            )
            assert status == 0, output
            assert await everything(client, OTHERS) == before
            assert await crds(client) == types
            refused, output = await asyncio.to_thread(
                command, *RUN, "--subject", f"flagger@{VERSION}", KUBECONFIG=str(config)
            )
            assert (refused, "would prune" in output) == (4, True)

    asyncio.run(story())
    (report,) = (tmp_path / "out").glob("*/report.md")
    text = report.read_text(encoding="utf-8")
    assert f"Flagger {VERSION} would act on the drill's Canaries here" in text
    assert f".{DOMAIN}/v1beta1)" in text
    assert "Nothing. Teardown removed" in text
    assert "shop" in log.read_text(encoding="utf-8")
    assert "drill-" not in log.read_text(encoding="utf-8")
