"""Watches of `harness.kube.watch`, against a fake API server on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from harness.kube.errors import Forbidden, NotFound, Unreachable
from harness.kube.resource import CONFIGMAP, NODE, POD, Resource
from harness.kube.testing import FakeCluster, run_virtual
from harness.kube.watch import Changed, Listed, Timing, WatchEvent, watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harness.model.timeline import JSON


def pod(name: str, namespace: str = "ns") -> JSON:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {}}


class Watching:
    """A watch whose events can be waited for one by one."""

    def __init__(self, cluster: FakeCluster, timing: Timing) -> None:
        self.events: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self.source = watch(cluster.client(), POD, "ns", timing=timing)

    async def run(self) -> None:
        async for event in self.source:
            self.events.put_nowait(event)

    async def next(self) -> WatchEvent:
        async with asyncio.timeout(600):
            return await self.events.get()

    async def changed(self) -> str:
        event = await self.next()
        assert isinstance(event, Changed)
        return f"{event.type} {event.object['metadata']['name']}"


@contextlib.asynccontextmanager
async def watching(
    cluster: FakeCluster,
    timing: Timing = Timing(),  # noqa: B008 - frozen
) -> AsyncIterator[Watching]:
    """Run a watch of the pods in `ns` past its first list."""
    watched = Watching(cluster, timing)
    task = asyncio.create_task(watched.run())
    try:
        first = await watched.next()
        assert isinstance(first, Listed)
        assert not first.gap
        await opened(cluster)
        yield watched
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def opened(cluster: FakeCluster, count: int = 1) -> None:
    async with asyncio.timeout(600):
        while cluster.server.watching < count:  # noqa: ASYNC110 - the fake has no event for it
            await asyncio.sleep(0.01)


def test_lists_first_then_delivers_every_change_with_apiversion_and_kind() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.add(pod("a"))
        source = watch(cluster.client(), POD, "ns")
        first = await anext(source)
        assert isinstance(first, Listed)
        assert [(p["apiVersion"], p["kind"]) for p in first.items] == [("v1", "Pod")]
        cluster.add(pod("b"))
        cluster.add(pod("elsewhere", "other"))
        cluster.update("Pod", "b", "ns", {"status": {"phase": "Running"}})
        cluster.remove("Pod", "a", "ns")
        seen = [await anext(source) for _ in range(3)]
        await source.aclose()
        assert [(e.type, e.object["metadata"]["name"]) for e in seen if isinstance(e, Changed)] == [
            ("ADDED", "b"),
            ("MODIFIED", "b"),
            ("DELETED", "a"),
        ]

    run_virtual(scenario())


def test_broken_connection_resumes_without_a_gap_and_without_a_loss() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            cluster.break_watches()
            cluster.add(pod("while-away"))
            assert await watched.changed() == "ADDED while-away"
        assert len(cluster.asked("list")) == 1

    run_virtual(scenario())


def test_refused_connections_are_tried_again_until_the_server_is_back() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            cluster.fail_next(0, times=6, match=lambda a: a.verb == "watch")
            cluster.break_watches()
            cluster.add(pod("a"))
            assert await watched.changed() == "ADDED a"
        assert len(cluster.asked("list")) == 1

    run_virtual(scenario())


def test_a_server_that_is_back_and_has_not_read_its_roles_is_waited_for() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            cluster.fail_next(0, times=2, match=lambda a: a.verb == "watch")
            cluster.fail_next(403, times=3, match=lambda a: a.verb == "watch")
            cluster.break_watches()
            cluster.add(pod("a"))
            assert await watched.changed() == "ADDED a"

    run_virtual(scenario())


@pytest.mark.parametrize("how", ["event", "status"])
def test_expired_version_lists_again_and_says_gap_since_when_and_why(how: str) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            cluster.add(pod("a"))
            await watched.changed()
            heard = asyncio.get_running_loop().time()
            await asyncio.sleep(7)
            if how == "event":
                cluster.expire_watches()
            else:
                cluster.forget()
                cluster.break_watches()
            again = await watched.next()
            assert isinstance(again, Listed)
            assert again.gap
            assert again.since == pytest.approx(heard, abs=0.1)
            assert "too old resource version" in again.reason
            assert [p["metadata"]["name"] for p in again.items] == ["a"]
            await opened(cluster)
            cluster.add(pod("b"))
            assert await watched.changed() == "ADDED b"

    run_virtual(scenario())


def test_bookmark_moves_the_version_so_that_a_quiet_watch_survives_expiry() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            for number in range(5):  # other types move the cluster's version on
                cluster.add({"kind": "Node", "metadata": {"name": f"n{number}"}})
            cluster.bookmark()
            await asyncio.sleep(0)
            cluster.server.oldest = cluster.server.version
            await asyncio.sleep(1)
            cluster.break_watches()
            cluster.add(pod("a"))
            assert await watched.changed() == "ADDED a"
        assert len(cluster.asked("list")) == 1
        assert all(a.params["allowWatchBookmarks"] == "true" for a in cluster.asked("watch"))

    run_virtual(scenario())


def test_silent_connection_is_noticed_and_resumed_within_its_limit() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        timing = Timing()
        async with watching(cluster, timing) as watched:
            cluster.silence_watches()
            cluster.add(pod("unheard"))
            began = asyncio.get_running_loop().time()
            assert await watched.changed() == "ADDED unheard"
            waited = asyncio.get_running_loop().time() - began
            assert waited <= timing.silence + 1
        assert len(cluster.asked("list")) == 1

    run_virtual(scenario())


def test_quiet_watch_goes_on_for_hours_without_listing_again() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            await asyncio.sleep(7200)
            cluster.add(pod("late"))
            assert await watched.changed() == "ADDED late"
        assert len(cluster.asked("list")) == 1
        assert len(cluster.asked("watch")) < 200

    run_virtual(scenario())


def test_rare_gaps_do_not_add_up_to_giving_up() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster) as watched:
            for _ in range(8):
                await asyncio.sleep(600)
                cluster.expire_watches()
                again = await watched.next()
                assert isinstance(again, Listed)
                await opened(cluster)

    run_virtual(scenario())


def test_gives_up_after_its_patience_and_says_what_was_seen_last() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail_next(0, times=1000, match=lambda a: a.verb == "watch")
        source = watch(cluster.client(), POD, "ns", timing=Timing(patience=20))
        await anext(source)
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable, match=r"refused \(seen last; failing for \d+ s\)"):
            await anext(source)
        assert 10 < asyncio.get_running_loop().time() - began <= 21

    run_virtual(scenario())


@pytest.mark.parametrize(
    ("resource", "error"),
    [(NODE, Forbidden), (Resource("no.such", "v1", "things", "Thing"), NotFound)],
)
def test_refusals_that_waiting_does_not_cure_are_raised(
    resource: Resource, error: type[Exception]
) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.forbid("watch", "nodes")
        source = watch(cluster.client(), resource)
        with pytest.raises(error):
            _ = [event async for event in source]

    run_virtual(scenario())


def test_cancelling_closes_the_connection_at_once() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with watching(cluster):
            assert cluster.server.watching == 1
        assert cluster.server.watching == 0
        assert cluster.closed == 1

    run_virtual(scenario())


def test_lines_cut_anywhere_and_longer_than_any_buffer_are_put_together() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        big = {**pod("big"), "metadata": {"name": "big", "namespace": "ns", "annotations": {}}}
        big["metadata"]["annotations"]["text"] = "é\n" * 2_000_000
        async with watching(cluster) as watched:
            cluster.add(big)
            event = await watched.next()
            assert isinstance(event, Changed)
            assert event.object["metadata"]["annotations"]["text"] == "é\n" * 2_000_000

    run_virtual(scenario())


def test_selectors_make_objects_appear_and_disappear() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        source = watch(cluster.client(), CONFIGMAP, "ns", label_selector="app in (a,b),tier!=x")
        await anext(source)
        row: JSON = {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}}
        cluster.add(row)
        cluster.update("ConfigMap", "c", "ns", {"metadata": {"labels": {"app": "b"}}})
        cluster.update("ConfigMap", "c", "ns", {"metadata": {"labels": {"tier": "x"}}})
        seen = [await anext(source) for _ in range(2)]
        await source.aclose()
        assert [e.type for e in seen if isinstance(e, Changed)] == ["ADDED", "DELETED"]

    run_virtual(scenario())
