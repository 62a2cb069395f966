"""Probes and metrics over HTTP, and the process that they tell of."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.options import Options
from harness.controller.shell import log as logs
from harness.controller.shell import process
from harness.controller.shell.health import STANDBY, Health, ListenError, serving
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_sim import START, canary, deployment, merge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

LOOPBACK = "127.0.0.1"
CANARIES = "/apis/flagger.app/v1beta1/namespaces/n/canaries"
JSON = dict[str, Any]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_watch_that_is_never_opened_again_is_a_fault() -> None:
    clock = Clock()
    watches = {CANARIES: 1000.0}
    health = Health(watches, clock)
    clock.now += 179
    assert not health.ill()
    clock.now += 2
    assert health.ill() == f"the watch of {CANARIES} has been silent for 181 s"
    watches[CANARIES] = clock.now
    assert not health.ill()


def test_what_is_waited_for_is_unready_and_a_standby_is_ready() -> None:
    health = Health({})
    assert health.unready() == "starting"
    health.waits_for = lambda: "deployments is not listed yet"
    assert health.unready() == "deployments is not listed yet"
    for fine in (STANDBY, ""):
        health.waits_for = lambda fine=fine: fine  # type: ignore[misc]
        assert health.unready() == ""


async def ask(port: int, path: str) -> tuple[int, str, str]:
    """Return status, content type and text."""
    import aiohttp

    url = f"http://{LOOPBACK}:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


def test_answers_over_http() -> None:
    async def story() -> None:
        clock = Clock()
        watches = {CANARIES: clock.now}
        health = Health(watches, clock)
        async with serving(health, lambda: (b"a 1\n", "text/plain; v=1"), LOOPBACK, 0) as port:
            assert await ask(port, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
            assert (await ask(port, "/readyz"))[::2] == (503, "starting\n")
            health.waits_for = lambda: STANDBY
            assert (await ask(port, "/readyz"))[::2] == (200, "ok, standing by\n")
            assert await ask(port, "/metrics") == (200, "text/plain; v=1", "a 1\n")
            assert (await ask(port, "/debug"))[0] == 404
            clock.now += 1000
            status, _, text = await ask(port, "/healthz")
            assert status == 503
            assert CANARIES in text

    asyncio.run(story())


def test_a_port_that_is_taken_is_said() -> None:
    async def story(port: int) -> None:
        with pytest.raises(ListenError, match=f"cannot listen on {LOOPBACK} port {port}"):
            async with serving(Health({}), lambda: (b"", ""), LOOPBACK, port):
                pass

    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        asyncio.run(story(taken.getsockname()[1]))


class Process:
    """A controller as its process runs it, over a cluster in memory and in real time."""

    def __init__(self, cluster: FakeCluster, **more: Any) -> None:
        self.stream = io.StringIO()
        self.options = Options("n", metrics_port=0, **more)
        self._cluster = cluster

    def events(self, name: str) -> list[JSON]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == name]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        log = logs.to(self.stream)
        task = asyncio.create_task(process.serve(self.options, log, time.time, self._cluster))
        try:
            await until(lambda: bool(self.events("listening")), task)
            yield self.events("listening")[0]["port"]
        finally:
            task.cancel()
            await asyncio.wait({task})


async def until(holds: Callable[[], bool], *tasks: asyncio.Task[None], within: float = 20) -> None:
    async with asyncio.timeout(within):
        while not holds():
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.01)


def has(lines: str, parts: Sequence[str]) -> bool:
    return any(all(part in line for part in parts) for line in lines.splitlines())


def test_a_process_is_ready_when_every_kind_is_listed_and_counts_its_requests() -> None:
    async def story() -> None:
        cluster = FakeCluster()
        cluster.forbid("list", "deployments")
        running = Process(cluster)
        async with running.running() as port:
            status, _, why = await ask(port, "/readyz")
            assert status == 503
            assert "listed" in why
            assert (await ask(port, "/healthz"))[0] == 200
            cluster._forbidden.clear()
            await until(lambda: bool(running.events("ready")))
            assert (await ask(port, "/readyz"))[::2] == (200, "ok\n")
            text = (await ask(port, "/metrics"))[2]
            assert has(text, ["api_requests_total", 'resource="deployments"', 'code="403"'])
            assert has(text, ["rollout_drill_controller_leader 1.0"])
            assert has(text, ["process_resident_memory_bytes"])

    asyncio.run(story())


def test_of_two_processes_one_works_and_the_other_is_ready_to() -> None:
    async def story() -> None:
        cluster = FakeCluster()
        first = Process(cluster, leader_elect=True)
        second = Process(cluster, leader_elect=True)
        async with second.running() as port:
            await until(lambda: bool(second.events("ready")))
            assert (await ask(port, "/readyz"))[::2] == (200, "ok\n")
            async with first.running() as other:
                await until(lambda: bool(first.events("standby")))
                assert (await ask(other, "/readyz"))[::2] == (200, "ok, standing by\n")
                text = (await ask(other, "/metrics"))[2]
                assert has(text, ["rollout_drill_controller_leader 0.0"])
                assert not first.events("ready")
        assert not first.events("leading")

    asyncio.run(story())


def test_the_next_process_goes_on_where_the_first_one_ended() -> None:
    async def story() -> None:
        cluster = FakeCluster()
        for obj in (deployment(), canary()):
            cluster.add(merge(obj, {"metadata": {"generation": 1}}))
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(serve(cluster, loop))
        await phase(cluster, "Initializing")
        second = asyncio.create_task(serve(cluster, loop))
        await asyncio.sleep(5)
        first.cancel()
        await asyncio.wait({first})
        for obj in cluster.objects("Deployment", "n"):
            meta, count = obj["metadata"], obj["spec"]["replicas"]
            counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), count)
            change = {"status": {"observedGeneration": meta["generation"], **counts}}
            cluster.update("Deployment", meta["name"], "n", change)
        await phase(cluster, "Initialized")
        second.cancel()
        await asyncio.wait({second})
        assert not (cluster.objects("Lease", "n")[0]["spec"]["holderIdentity"])

    async def phase(cluster: FakeCluster, wanted: str) -> None:
        def found() -> str:
            return str((cluster.objects("Canary", "n")[0].get("status") or {}).get("phase"))

        await until(lambda: found() == wanted, within=60)

    async def serve(cluster: FakeCluster, loop: asyncio.AbstractEventLoop) -> None:
        options = Options("n", leader_elect=True)
        await process.serve(options, logs.to(io.StringIO()), lambda: START + loop.time(), cluster)

    run_virtual(story())
