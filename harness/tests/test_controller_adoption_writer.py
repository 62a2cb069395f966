"""Deleting one very object: only in the state that was judged, once, and known to be gone before the watch tells."""

from __future__ import annotations

import io
from typing import Any

import pytest

from harness.controller.core import Decision, Write
from harness.controller.shell import log as logs
from harness.controller.shell.cache import DEPLOYMENTS, Cache
from harness.controller.shell.writer import Writer
from harness.kube.errors import Conflict
from harness.kube.resource import DEPLOYMENT
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_sim import canary, deployment

JSON = dict[str, Any]


class Desk:
    """A cluster with one Deployment, a cache that has seen it, and a writer."""

    def __init__(self, *finalizers: str) -> None:
        self.cluster, self.cache = FakeCluster(), Cache()
        self.client = self.cluster.client()
        obj = deployment()
        obj["metadata"]["finalizers"] = list(finalizers)
        self.cluster.add(obj)
        self.writer = Writer(self.client, "n", self.cache, logs.to(io.StringIO()), lambda: 0)

    async def read(self) -> JSON:
        held = await self.client.get(DEPLOYMENT, "web", "n")
        self.cache.put(DEPLOYMENTS, held)
        return held

    async def delete(self, held: JSON, **other: str) -> None:
        meta = held["metadata"] | other
        write = Write(
            "delete", "deployments", "web", {}, str(meta["resourceVersion"]), uid=str(meta["uid"])
        )
        await self.writer.carry_out(canary(), Decision(writes=(write,)))


@pytest.mark.parametrize("other", [{"uid": "other"}, {"resourceVersion": "999"}], ids=str)
def test_another_object_or_another_state_of_it_stays(other: dict[str, str]) -> None:
    async def story() -> None:
        desk = Desk()
        held = await desk.read()
        with pytest.raises(Conflict):
            await desk.delete(held, **other)
        assert await desk.client.exists(DEPLOYMENT, "web", "n")
        assert desk.cache.get(DEPLOYMENTS, "web") is not None

    run_virtual(story())


def test_what_is_deleted_is_gone_for_the_next_pass_and_deleting_it_twice_is_no_fault() -> None:
    async def story() -> None:
        desk = Desk()
        held = await desk.read()
        await desk.delete(held)
        assert not await desk.client.exists(DEPLOYMENT, "web", "n")
        assert desk.cache.get(DEPLOYMENTS, "web") is None
        await desk.delete(held)

    run_virtual(story())


def test_what_a_finalizer_holds_is_known_to_be_on_its_way() -> None:
    async def story() -> None:
        desk = Desk("example.com/hold")
        await desk.delete(await desk.read())
        held = desk.cache.get(DEPLOYMENTS, "web")
        assert held is not None
        assert held["metadata"]["deletionTimestamp"]

    run_virtual(story())
