"""A real Flagger on a real control plane: it starts with rights in one namespace only, works with them, and what is refused shows."""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.embedded.binaries import ensure_binaries
from harness.clusters.embedded.cluster import down, up
from harness.kube.access import write_kubeconfig
from harness.kube.client import KubeClient
from harness.kube.resource import (
    CANARY,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    ROLE,
    ROLEBINDING,
    SERVICEACCOUNT,
)
from harness.programs.from_module import cached
from harness.run.shared import established
from harness.subjects.base import Access, SubjectError
from harness.subjects.flagger import Flagger
from harness.subjects.flagger_source import program_of
from harness.subjects.names import parse
from harness.tests.controller_sim import canary, deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

VERSION = "1.44.0"
ME = "rollout-drill"
INITIALIZED_WITHIN = 90


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[EmbeddedCluster]:
    """A cluster for this test alone: Flagger's CRDs are not those that other tests work with."""
    if cached(program_of(VERSION)) is None and not os.environ.get("CI"):
        pytest.skip(
            f"Flagger {VERSION} is not in the cache of programs, and building it takes minutes"
        )
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    name = f"flagger-{secrets.token_hex(3)}"
    source = str(request.config.getoption("--drill-binaries"))
    made = up(
        name,
        nodes=1,
        seed=1,
        binaries=ensure_binaries(source, print),
        progress=print,
        owner_pid_bound=True,
    )
    try:
        yield made
    finally:
        down(name)


class Place:
    """A namespace with Flagger's rights in it."""

    def __init__(self, client: KubeClient, subject: Flagger) -> None:
        self.client = client
        self.subject = subject
        self.namespace = f"flagger-{secrets.token_hex(3)}"
        self.told: list[tuple[str, str]] = []

    async def prepare(
        self, cluster: EmbeddedCluster, folder: Path, lacking: str = "none"
    ) -> Access:
        """Make it, without the rules for resources of the API group `lacking`."""
        create, namespace = self.client.create, self.namespace
        await create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=ME)
        kinds = {res.kind: res for res in (SERVICEACCOUNT, ROLE, ROLEBINDING)}
        for obj in self.subject.namespace_objects(namespace):
            if obj["kind"] == "Role":
                obj["rules"] = [one for one in obj["rules"] if lacking not in one["apiGroups"]]
            await create(kinds[obj["kind"]], obj, namespace, field_manager=ME)
        kubeconfig = folder / f"{namespace}.kubeconfig"
        await write_kubeconfig(
            self.client,
            admin=cluster.kubeconfig,
            context=cluster.context,
            namespace=namespace,
            service_account=self.subject.service_account,
            target=kubeconfig,
        )
        return Access(kubeconfig, namespace, folder / f"{namespace}.log")

    def notify(self, event: str, detail: str) -> None:
        self.told.append((event, detail))

    @property
    def forbidden(self) -> list[str]:
        return [detail for event, detail in self.told if event == "forbidden"]

    async def initialized(self) -> dict[str, Any]:
        """Make a Canary and wait until it is Initialized; return its primary."""
        for res, obj in ((DEPLOYMENT, deployment(replicas=1)), (CANARY, canary())):
            obj["metadata"]["namespace"] = self.namespace
            await self.client.create(res, obj, self.namespace, field_manager=ME)
        async with asyncio.timeout(INITIALIZED_WITHIN):
            while True:
                found = await self.client.get(CANARY, "web", self.namespace)
                if (found.get("status") or {}).get("phase") == "Initialized":
                    return await self.client.get(DEPLOYMENT, "web-primary", self.namespace)
                await asyncio.sleep(0.2)


def test_flagger_works_with_rights_in_one_namespace_and_a_refusal_shows(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story() -> None:
        subject = Flagger(parse(f"flagger@{VERSION}"))
        await subject.obtain(print)
        async with await KubeClient.connect(
            cluster.kubeconfig, cluster.context, user_agent="rollout-drill/test"
        ) as client:
            for crd in subject.cluster_objects():
                await client.create(CRD, crd, field_manager=ME)
                await established(client, crd["metadata"]["name"])
            try:
                await works(client, subject)
                await refused(client, subject)
            finally:
                await subject.kill()

    async def works(client: KubeClient, subject: Flagger) -> None:
        place = Place(client, subject)
        access = await place.prepare(cluster, tmp_path)
        await subject.start(access, place.notify)
        # What it has made by then is taken up again.
        await subject.kill()
        await subject.start(access, place.notify)
        primary = await place.initialized()
        assert primary["spec"]["selector"] == {"matchLabels": {"app": "web-primary"}}
        await subject.stop()
        assert [event for event, _ in place.told] == ["started", "killed", "started", "stopped"]
        assert place.told[0][1] == f"flagger@{VERSION} {VERSION}"
        log = access.log.read_text(encoding="utf-8")
        assert "forbidden" not in log
        assert log.count("Started operator workers") == 2

    async def refused(client: KubeClient, subject: Flagger) -> None:
        place = Place(client, subject)
        access = await place.prepare(cluster, tmp_path, lacking="flagger.app")
        with pytest.raises(SubjectError, match=r"ended; its log ends with: Canary CRD is not reg"):
            await subject.start(access, place.notify)
        assert place.forbidden == ["list canaries.flagger.app"]

    asyncio.run(story())
