"""What a watch could not deliver is looked up where the storage remembers it, and is a gap otherwise."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from harness.clusters.base import Change
from harness.kube.testing import FakeCluster, run_virtual
from harness.model.timeline import ObjectSeen, Observation, WatchState
from harness.run.recorder import Recorder
from harness.run.redact import Redactor
from harness.tests.test_run_recorder import HEADER, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.kube.resource import Resource


class Story:
    """A recording over an outage that the API server's cache does not bridge."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.seen: list[Observation] = []
        self.hide: Callable[[Change], bool] = lambda _: False

    async def missed(
        self, resource: Resource, namespace: str | None, after: int, until: int
    ) -> list[Change] | None:
        found = self.cluster.server.changes(resource, namespace, after, until)
        return [change for change in (Change(*each) for each in found) if not self.hide(change)]

    def pods(self) -> list[tuple[str, str, str]]:
        return [
            (
                o.change,
                o.object["metadata"]["name"],
                (o.object.get("status") or {}).get("phase", ""),
            )
            for o in self.seen
            if isinstance(o, ObjectSeen) and o.object["kind"] == "Pod"
        ]

    def gaps(self) -> set[str]:
        return {o.kind for o in self.seen if isinstance(o, WatchState) and o.state == "gap"}


def outage(change: Callable[[Story], None], *, missed: Any = "the cluster's") -> Story:
    """Record, let `change` act while nobody watches, and go on; return what was recorded."""

    async def scenario() -> Story:
        story = Story(FakeCluster())
        cluster = story.cluster
        cluster.add(row("Pod", "stays", status={"phase": "Pending"}))
        cluster.add(row("Pod", "goes"))
        recorder = Recorder(
            cluster.client(),
            HEADER,
            story.seen.append,
            Redactor("salt"),
            asyncio.get_running_loop().time,
            missed=story.missed if missed == "the cluster's" else missed,
        )
        task = asyncio.create_task(recorder.run())
        await recorder.synced()
        await asyncio.sleep(5)
        cluster.break_watches()
        change(story)
        cluster.forget()
        await asyncio.sleep(20)
        cluster.add(row("Pod", "later"))
        await asyncio.sleep(1)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return story

    return run_virtual(scenario())


def everything(story: Story) -> None:
    cluster = story.cluster
    for phase in ("Running", "Failed"):
        cluster.update("Pod", "stays", "ns", {"status": {"phase": phase}})
    cluster.remove("Pod", "goes", "ns")
    cluster.add(row("Pod", "short"))
    cluster.remove("Pod", "short", "ns")
    cluster.add(row("Pod", "comes"))


def test_every_change_is_recorded_in_order_and_there_is_no_gap() -> None:
    story = outage(everything)
    assert story.pods()[2:] == [
        ("MODIFIED", "stays", "Running"),
        ("MODIFIED", "stays", "Failed"),
        ("DELETED", "goes", ""),
        ("ADDED", "short", ""),
        ("DELETED", "short", ""),
        ("ADDED", "comes", ""),
        ("ADDED", "later", ""),
    ]
    assert story.gaps() == set()


def test_without_such_a_memory_it_is_a_gap() -> None:
    story = outage(everything, missed=None)
    assert "Pod" in story.gaps()
    assert ("ADDED", "short", "") not in story.pods()


def test_a_memory_that_does_not_go_back_far_enough_leaves_a_gap() -> None:
    async def forgotten(*_: Any) -> None:
        return None

    assert "Pod" in outage(everything, missed=forgotten).gaps()


def test_a_memory_that_does_not_explain_what_is_there_leaves_a_gap() -> None:
    def change(story: Story) -> None:
        story.hide = lambda change: change.name == "comes"
        everything(story)

    story = outage(change)
    assert story.gaps() == {"Pod"}
    # What is there is recorded all the same.
    assert ("ADDED", "comes", "") in story.pods()


def test_a_state_that_the_server_does_not_give_any_more_leaves_a_gap() -> None:
    def change(story: Story) -> None:
        story.cluster.fail_next(
            410, times=9, match=lambda asked: asked.params.get("resourceVersionMatch") == "Exact"
        )
        everything(story)

    assert outage(change).gaps() == {"Pod"}
