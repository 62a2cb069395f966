"""The subject `installed` is looked at, and never touched."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness.kube.testing import FakeCluster
from harness.subjects.base import Access
from harness.subjects.bundled_objects import CAPABILITIES
from harness.subjects.detect import Controller
from harness.subjects.flagger_capabilities import capabilities
from harness.subjects.installed import Installed
from harness.tests.others import flagger_deployment


def _looked(*versions: str) -> Installed:
    cluster, subject = FakeCluster(), Installed()
    for number, version in enumerate(versions):
        obj = flagger_deployment()
        obj["metadata"]["name"] = f"flagger-{number}"
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = f"flagger:{version}"
        cluster.add(obj)
    asyncio.run(subject.look(cluster.client()))
    return subject


def test_it_finds_the_one_that_runs() -> None:
    subject = _looked("1.37.0")
    assert (subject.facts.name, subject.facts.version) == ("installed", "1.37.0")
    assert subject.facts.capabilities == capabilities("1.37.0")
    assert [one.version for one in subject.controllers] == ["1.37.0"]


def test_none_or_two_different_ones_are_unknown() -> None:
    assert _looked().facts.version == "unknown"
    assert _looked("1.37.0", "1.44.0").facts.version == "unknown"


def test_what_may_not_be_read_is_unknown() -> None:
    cluster, subject = FakeCluster(), Installed()
    cluster.add(flagger_deployment())
    for plural in ("deployments", "leases", "canaries"):
        cluster.forbid("list", plural)
    asyncio.run(subject.look(cluster.client()))
    assert subject.facts.version == "unknown"


def test_one_of_ours_can_what_ours_can() -> None:
    subject = Installed()
    subject.meet([Controller("bundled", "Deployment a/b", "0.1.0", namespace="a")])
    assert (subject.facts.version, subject.facts.capabilities) == ("0.1.0", CAPABILITIES)


def test_it_gets_nothing_and_is_never_ended() -> None:
    told: list[str] = []
    subject = Installed()

    async def life() -> None:
        await subject.obtain(print)
        await subject.warm_up()
        access = Access(Path("/nowhere"), "n", Path("/nowhere"))
        await subject.start(access, lambda event, detail: told.append(f"{event}: {detail}"))
        await subject.kill()
        await subject.stop()

    asyncio.run(life())
    assert subject.service_account is None
    assert subject.cluster_objects() == subject.namespace_objects("n") == []
    assert told == ["started: installed unknown"]
