"""Knative's stand-in and the API server: what is followed, what holds while it is away, and that nothing is done without a change."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.clusters.knative import dataplane
from harness.clusters.knative.activator import Activator
from harness.clusters.knative.load import Seconds
from harness.kube.testing import run_virtual
from harness.tests.knative_stand_in import cluster, pod, routed, service

NEXT = "web-00002"


def test_nothing_is_sent_and_nothing_tried_without_load() -> None:
    """An hour, with pods and without any: every wait is for a change."""
    made = cluster(concurrency=None)
    said: list[str] = []

    async def act() -> None:
        plane = dataplane.DataPlane(made.client(), said.append)
        tried = 0

        def waiting() -> Any:
            nonlocal tried
            tried += 1
            return plane.waiting()

        # Nobody listens there: it would be said.
        tells = Activator("127.0.0.1:9", waiting, plane.changed, said.append, seconds=plane.seconds)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(plane.follow_all()), tasks.create_task(tells.run())]
            await asyncio.sleep(1800)
            pod(made, "quiet", "quiet-00001", "10.0.0.1")
            await asyncio.sleep(1800)
            for task in running:
                task.cancel()
        assert plane.informed
        assert tried < 10

    run_virtual(act())
    assert said == []


def test_nothing_is_concluded_before_pods_services_and_ingresses_were_seen_once() -> None:
    """What has load and pods would else be told as waiting, by whoever lists pods last."""
    made = cluster()
    pod(made, "a", "web-00001", "10.0.0.1")
    made.forbid("list", "pods")
    said: list[str] = []

    async def act() -> None:
        plane = dataplane.DataPlane(made.client(), said.append)
        task = asyncio.create_task(plane.follow_all())
        await asyncio.sleep(60)
        assert plane.picture.load
        assert not plane.informed
        assert plane.waiting() == {}
        made._forbidden.clear()
        await asyncio.sleep(dataplane.FOLLOWED_AGAIN + 1)
        assert plane.informed
        assert plane.waiting() == {}
        task.cancel()

    run_virtual(act())
    assert [text.partition(",")[0] for text in said] == [
        "pods cannot be followed",
        "pods are followed again",
    ]


def test_an_api_server_that_is_away_for_minutes_is_followed_again_and_what_was_seen_holds() -> None:
    made = cluster()
    said: list[str] = []

    async def act() -> None:
        plane = dataplane.DataPlane(made.client(), said.append)
        task = asyncio.create_task(plane.follow_all())
        await asyncio.sleep(1)
        before = plane.waiting()
        assert before == {("shop", "web-00001"): 20.0}
        made.fail_next(0, times=10**6)
        made.break_watches()
        await asyncio.sleep(300)
        assert plane.waiting() == before
        assert len(made.requests) < 2000
        made._failures.clear()
        routed(made, web_00002=100)
        await asyncio.sleep(dataplane.FOLLOWED_AGAIN + 40)
        assert plane.waiting() == {("shop", NEXT): 20.0}
        service(made, "web", "0")
        await asyncio.sleep(1)
        assert plane.waiting() == {}
        task.cancel()

    run_virtual(act())
    assert len([text for text in said if "cannot be followed" in text]) == 3
    assert len([text for text in said if "followed again" in text]) == 3


def test_a_load_that_is_no_number_is_said_once_and_counts_as_none() -> None:
    made = cluster(concurrency="plenty")
    said: list[str] = []

    async def act() -> None:
        plane = dataplane.DataPlane(made.client(), said.append)
        task = asyncio.create_task(plane.follow_all())
        await asyncio.sleep(1)
        service(made, "web", "plenty", app="web")
        made.expire_watches()
        await asyncio.sleep(10)
        assert plane.waiting() == {}
        task.cancel()

    run_virtual(act())
    assert len(said) == 1
    assert "'plenty'" in said[0]


class _Socket:
    """A connection to an autoscaler that says nothing."""

    close_code = None

    def __init__(self) -> None:
        self.sent = 0

    async def send_bytes(self, _: bytes) -> None:
        self.sent += 1

    async def receive(self) -> Any:
        await asyncio.sleep(10**6)


def test_what_waits_is_told_every_second() -> None:
    socket: Any = _Socket()

    async def act() -> None:
        waiting = {("shop", NEXT): 5.0}
        tells = Activator("", lambda: waiting, asyncio.Event(), print, seconds=Seconds())
        task = asyncio.create_task(tells._tell(socket))
        await asyncio.sleep(59.5)
        task.cancel()

    run_virtual(act())
    assert socket.sent == 60
