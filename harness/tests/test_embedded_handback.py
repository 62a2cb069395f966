"""The way back on a real control plane: a real Flagger takes over from the bundled controller, with and without a handback."""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.embedded.binaries import ensure_binaries
from harness.clusters.embedded.cluster import down, up
from harness.handback.carry_out import hand_back
from harness.handback.plan import Fate
from harness.handback.program import obtain, program_for
from harness.handback.told import HandbackError, ask
from harness.kube.access import write_kubeconfig
from harness.kube.client import KubeClient
from harness.kube.resource import (
    CANARY,
    CONFIGMAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    ROLE,
    ROLEBINDING,
    SERVICEACCOUNT,
)
from harness.programs.from_module import cached
from harness.run.shared import established
from harness.subjects.base import Access, Subject
from harness.subjects.bundled import Bundled
from harness.subjects.flagger import Flagger
from harness.subjects.flagger_source import program_of
from harness.subjects.names import parse
from harness.tests.controller_handover import annotation
from harness.tests.controller_sim import canary, deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]

JSON = dict[str, Any]
VERSION = "1.44.0"
TO = f"flagger@{VERSION}"
ME = "rollout-drill"
SETTLED = {
    "fresh": "Initialized",
    "released": "Succeeded",
    "failed": "Failed",
    "changed": "Initialized",
}
RUNNING = ("Progressing", "Waiting")
LOOKS = 35.0
"""Seconds in which Flagger, whose interval is 10 s at the least, looks at every Canary three times."""


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[EmbeddedCluster]:
    """A cluster for this test alone: Flagger's CRDs are not those that other tests work with."""
    needed = (program_of(VERSION), program_for(VERSION))
    if not all(cached(program) for program in needed) and not os.environ.get("CI"):
        pytest.skip(
            f"Flagger {VERSION} is not in the cache of programs, and building it takes minutes"
        )
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    name = f"handback-{secrets.token_hex(3)}"
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


class Place:
    """A namespace with four Canaries, and a subject in it."""

    def __init__(self, client: KubeClient, cluster: EmbeddedCluster, folder: Path) -> None:
        self.client, self.cluster, self.folder = client, cluster, folder
        self.namespace = f"handback-{secrets.token_hex(3)}"

    async def start(self, subject: Subject) -> None:
        await subject.obtain(print)
        for crd in subject.cluster_objects():
            await self.client.apply(CRD, crd, field_manager=ME, force=True)
            await established(self.client, crd["metadata"]["name"])
        kinds = {res.kind: res for res in (SERVICEACCOUNT, ROLE, ROLEBINDING)}
        for obj in subject.namespace_objects(self.namespace):
            await self.client.apply(kinds[obj["kind"]], obj, self.namespace, field_manager=ME)
        place = self.folder / f"{self.namespace}-{subject.facts.name}"
        access = Access(place.with_suffix(".kubeconfig"), self.namespace, place.with_suffix(".log"))
        assert subject.service_account is not None
        await write_kubeconfig(
            self.client,
            admin=self.cluster.kubeconfig,
            context=self.cluster.context,
            namespace=self.namespace,
            service_account=subject.service_account,
            target=access.kubeconfig,
        )
        await subject.start(access, lambda _event, _detail: None)

    async def create(self) -> None:
        """Make the Canaries; the pods of one never become ready once its label says so."""
        await self.client.create(
            NAMESPACE, {"metadata": {"name": self.namespace}}, field_manager=ME
        )
        settings = {"metadata": {"name": "settings"}, "data": {"color": "red"}}
        await self.client.create(CONFIGMAP, settings, self.namespace, field_manager=ME)

    async def add_canaries(self) -> None:
        for name in SETTLED:
            text = {"metadata": {"name": name, "namespace": self.namespace}}
            target = deployment(replicas=1) | text
            target["spec"]["selector"]["matchLabels"]["app"] = name
            target["spec"]["template"]["metadata"]["labels"]["app"] = name
            container = target["spec"]["template"]["spec"]["containers"][0]
            container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
            rollout = canary(analysis={"interval": "10s", "threshold": 1, "iterations": 1}) | text
            rollout["spec"]["targetRef"]["name"] = name
            rollout["spec"]["progressDeadlineSeconds"] = 15
            await self.client.create(DEPLOYMENT, target, self.namespace, field_manager=ME)
            await self.client.create(CANARY, rollout, self.namespace, field_manager=ME)

    async def patch(self, name: str, patch: JSON) -> None:
        await self.client.patch(DEPLOYMENT, name, self.namespace, patch, field_manager="somebody")

    async def statuses(self) -> dict[str, JSON]:
        items, _ = await self.client.list(CANARY, self.namespace)
        return {item["metadata"]["name"]: item.get("status") or {} for item in items}

    async def settle(self, wanted: dict[str, str], within: float = 90) -> None:
        seen: dict[str, Any] = {}
        try:
            async with asyncio.timeout(within):
                while seen != wanted:
                    seen = {
                        name: status.get("phase")
                        for name, status in (await self.statuses()).items()
                    }
                    await asyncio.sleep(0.2)
        except TimeoutError:
            pytest.fail(f"wanted {wanted}, seen last {seen}")

    async def begun(self, seconds: float, enough: int = 99) -> set[str]:
        """Watch for that long, or until that many have begun; return which analyses have."""
        found: set[str] = set()
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end and len(found) < enough:
            statuses = await self.statuses()
            found |= {name for name, status in statuses.items() if status.get("phase") in RUNNING}
            await asyncio.sleep(0.2)
        return found

    async def settled_under_bundled(self) -> Bundled:
        """Bring every Canary to rest under the bundled controller: initialised, released, failed."""
        await self.create()
        bundled = Bundled()
        await self.start(bundled)
        await self.add_canaries()
        await self.settle(dict.fromkeys(SETTLED, "Initialized"))
        await self.patch("released", annotation("2"))
        broken = {"metadata": {"labels": {"rollout-drill/pod": "never-ready"}}}
        await self.patch("failed", {"spec": {"template": broken}})
        await self.settle(SETTLED)
        return bundled


def test_flagger_takes_over_without_an_analysis_that_nobody_asked_for(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story() -> None:
        connecting = KubeClient.connect(cluster.kubeconfig, cluster.context, user_agent="test")
        async with await connecting as client:
            handed, left = (Place(client, cluster, tmp_path) for _ in range(2))
            bundled = [await place.settled_under_bundled() for place in (handed, left)]
            program = await obtain(VERSION, print)
            back = functools.partial(
                hand_back, client, handed.namespace, TO, functools.partial(ask, program)
            )
            await refused_while_bundled_runs(handed, back)
            for subject in bundled:
                await subject.stop()
            await handed.patch("changed", annotation("unseen"))
            result = await back(apply=True)
            assert {one.name for one in result.of(Fate.STARTS)} == {"changed"}
            assert {one.name for one in result.of(Fate.RESTS)} == {"fresh", "released", "failed"}
            await taken_over(handed, left)

    async def refused_while_bundled_runs(place: Place, back: Any) -> None:
        with pytest.raises(HandbackError, match="Stop the bundled controller first"):
            await back(apply=True)
        statuses = await place.statuses()
        assert {name: status["phase"] for name, status in statuses.items()} == SETTLED
        hashes = [status["lastAppliedSpec"] for status in statuses.values()]
        assert all(hash_.startswith("v2:") for hash_ in hashes), "the bundled controller mends it"

    async def taken_over(handed: Place, left: Place) -> None:
        flaggers = [Flagger(parse(TO)) for _ in range(2)]
        try:
            for place, flagger in zip((handed, left), flaggers, strict=True):
                await place.start(flagger)
            began = await asyncio.gather(*(place.begun(LOOKS) for place in (handed, left)))
            assert began[0] == {"changed"}, "only the target that changed unseen is analysed"
            assert began[1] == set(SETTLED), "without a handback every Canary is"
            quiet = SETTLED.keys() - {"changed"}
            for name in quiet:
                await handed.patch(name, annotation("real"))
            assert await handed.begun(LOOKS, enough=len(SETTLED)) >= quiet
        finally:
            for flagger in flaggers:
                await flagger.stop()

    asyncio.run(story())
