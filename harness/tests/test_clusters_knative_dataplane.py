"""Knative's stand-in as a process sees it: an HTTP proxy on loopback, and a websocket that it opens to the autoscaler."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from harness.clusters.embedded import ports
from harness.clusters.knative import activator, dataplane
from harness.clusters.knative.names import HOST
from harness.tests.knative_stand_in import cluster, endpoints, pod, routed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from harness.kube.testing import FakeCluster

WITHIN = 20.0
NEXT = "web-00002"


class Said(list[str]):
    """What was said, and a way to wait for the next."""

    def __init__(self) -> None:
        super().__init__()
        self._fresh: asyncio.Queue[str] = asyncio.Queue()

    def append(self, text: str) -> None:
        super().append(text)
        self._fresh.put_nowait(text)

    async def next(self) -> str:
        return await self._fresh.get()


class Autoscaler:
    """A websocket that takes statistics, as Knative's autoscaler has one."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[bytes] = asyncio.Queue()
        self._open: set[web.WebSocketResponse] = set()
        self.port = ports.free((), names=("autoscaler",))["autoscaler"]
        self._runner: web.ServerRunner | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self.port).start()

    async def stop(self) -> None:
        """End as it does: those that are connected are told to come again."""
        for socket in tuple(self._open):
            await socket.close(code=1012, message=b"Restarting")
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._open.add(socket)
        async for message in socket:
            self.told.put_nowait(message.data)
        self._open.discard(socket)
        return socket


@contextlib.asynccontextmanager
async def served(made: FakeCluster) -> AsyncIterator[tuple[Any, Autoscaler, Said]]:
    """The whole stand-in: how to ask it as a proxy, an autoscaler that is not there until it is started, and what it has said."""
    said = Said()
    autoscaler = Autoscaler()
    port = ports.free([autoscaler.port], names=("stand-in",))["stand-in"]
    task = asyncio.create_task(
        dataplane.serve(made.client(), port, autoscaler.address, said.append)
    )

    async with aiohttp.ClientSession() as session:

        async def ask(url: str, *, until: int = 0, **headers: str) -> tuple[int, bytes]:
            """Ask; with `until` again until that is the status."""
            while True:
                with contextlib.suppress(aiohttp.ClientConnectorError):
                    proxy = f"http://{HOST}:{port}"
                    async with session.get(url, headers=headers, proxy=proxy) as response:
                        assert response.status != HTTPStatus.INTERNAL_SERVER_ERROR
                        if until in {0, response.status}:
                            return response.status, await response.read()
                assert not task.done(), task.exception()
                await asyncio.sleep(0)

        try:
            yield ask, autoscaler, said
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await autoscaler.stop()


def real(act: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WITHIN):
            await act()

    asyncio.run(bounded())


def fields(data: bytes) -> dict[int, list[Any]]:
    """Return values by number of a protobuf message."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        size = {0: 0, 1: 8}.get(kind, -1)
        if size == 0:
            found.setdefault(number, []).append(varint())
            continue
        size = varint() if size < 0 else size
        part, at = data[at : at + size], at + size
        found.setdefault(number, []).append(struct.unpack("<d", part)[0] if kind == 1 else part)
    return found


def stat(data: bytes) -> tuple[str, float]:
    """Return who says how many requests are under way."""
    read = fields(data)
    assert read.get(2) == read.get(4)
    assert abs(read[7][0] - time.time()) < 60
    return read[1][0].decode(), read.get(2, [0.0])[0]


def told(data: bytes) -> dict[str, tuple[str, float]]:
    """Return what was told of revisions."""
    messages = [fields(one) for one in fields(data)[1]]
    return {f"{m[1][0].decode()}/{m[2][0].decode()}": stat(m[3][0]) for m in messages}


def test_a_pods_statistics_are_its_part_of_the_load() -> None:
    made = cluster()
    pod(made, "a", "web-00001", "10.0.0.1")
    pod(made, "b", "web-00001", "10.0.0.2")
    pod(made, "idle", "quiet-00001", "10.0.0.3")
    pod(made, "late", "web-00001", "10.0.0.4", ready="False")

    async def act() -> None:
        async with served(made) as (ask, _, said):
            _, body = await ask("http://10.0.0.1:9090/metrics", until=HTTPStatus.OK)
            assert stat(body) == ("a", 10.0)
            _, body = await ask("http://10.0.0.3:9090/metrics")
            assert stat(body) == ("idle", 0.0)
            for nobody in ("10.0.0.4", "10.0.0.9"):
                status, _ = await ask(f"http://{nobody}:9090/metrics")
                assert status == HTTPStatus.NOT_FOUND
            pod(made, "late", "web-00001", "10.0.0.4")
            _, body = await ask("http://10.0.0.4:9090/metrics", until=HTTPStatus.OK)
            assert stat(body) == ("late", 20 / 3)
            assert said == []

    real(act)


def test_a_probe_is_answered_by_who_stands_behind_the_service_now() -> None:
    made = cluster(concurrency=None)
    endpoints(made, "shop", "web-00001", "10.0.0.1")
    url = "http://web-00001.shop.svc.cluster.local:80/healthz"

    async def act() -> None:
        async with served(made) as (ask, _, said):
            status, _ = await ask(url, **{"K-Network-Probe": "activator"})
            assert status == HTTPStatus.BAD_REQUEST
            endpoints(made, "shop", "web-00001", "10.1.0.1")
            answer = await ask(url, **{"K-Network-Probe": "activator"})
            assert answer == (HTTPStatus.OK, b"activator")
            gone = "http://gone.shop.svc.cluster.local/healthz"
            status, _ = await ask(gone, **{"K-Network-Probe": "activator"})
            assert status == HTTPStatus.SERVICE_UNAVAILABLE
            assert said == []
            made.forbid("get", "endpoints")
            for _ in range(2):
                status, _ = await ask(url, **{"K-Network-Probe": "activator"})
                assert status == HTTPStatus.SERVICE_UNAVAILABLE
            assert len(said) == 1
            assert "probe of shop/web-00001 has no answer" in said[0]

    real(act)


def test_what_only_a_container_could_answer_is_not_found_and_said_once() -> None:
    async def act() -> None:
        async with served(cluster(concurrency=None)) as (ask, _, said):
            for url in (
                "http://10.0.0.1:8080/",
                "http://10.0.0.1:8080/",
                "http://web-00001.shop.svc.cluster.local/healthz",
                "http://registry.example/v2/",
            ):
                assert (await ask(url))[0] == HTTPStatus.NOT_FOUND
            assert [text.removeprefix("nobody answers GET ") for text in said] == [
                "10.0.0.1:8080/",
                "web-00001.shop.svc.cluster.local:80/healthz",
                "registry.example:80/v2/",
            ]

    real(act)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, and the activator quicker than by seconds."""
    monkeypatch.setattr(activator, "EVERY", 0.01)
    monkeypatch.setattr(activator, "AGAIN", 0.01)
    now = [1764550000.5]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_requests_that_wait_are_told_to_an_autoscaler_that_comes_late_and_comes_again(
    clock: list[float],
) -> None:
    made = cluster(web_00001=75, web_00002=25)
    pod(made, "a", "web-00001", "10.0.0.1")
    waiting = {"shop/web-00002": ("activator", 5.0)}

    async def act() -> None:
        async with served(made) as (ask, autoscaler, said):
            assert "takes no statistics" in await said.next()
            await autoscaler.start()
            assert told(await autoscaler.told.get()) == waiting
            assert "takes statistics again" in await said.next()
            await autoscaler.stop()
            assert "takes no statistics" in await said.next()
            await autoscaler.start()
            assert "takes statistics again" in await said.next()
            # Once for every time that it went away, however often it was tried meanwhile.
            assert len(said) == 4
            # The first pod is there. Of the second that the activator has told of, it tells nothing.
            pod(made, "b", NEXT, "10.0.0.2")
            metrics = "http://10.0.0.2:9090/metrics"
            assert stat((await ask(metrics, until=HTTPStatus.OK))[1]) == ("b", 0.0)
            clock[0] += 1
            assert stat((await ask(metrics))[1]) == ("b", 5.0)
            # All requests go to a revision without pods; what it gets counts, not what it got.
            routed(made, web_00003=100)
            while (heard := told(await autoscaler.told.get())) == waiting:
                pass  # sent before
            assert heard == {"shop/web-00003": ("activator", 20.0)}
            assert len(said) == 4

    real(act)


def test_an_autoscaler_that_ends_while_nothing_waits_is_not_missed_until_something_does(
    clock: list[float],
) -> None:
    made = cluster()

    async def act() -> None:
        async with served(made) as (ask, autoscaler, said):
            await said.next()  # it is not there at first
            await autoscaler.start()
            heard = told(await autoscaler.told.get())
            await said.next()
            pod(made, "a", "web-00001", "10.0.0.1")
            await ask("http://10.0.0.1:9090/metrics", until=HTTPStatus.OK)
            await autoscaler.stop()
            await autoscaler.start()
            while not autoscaler.told.empty():
                autoscaler.told.get_nowait()
            clock[0] += 1
            made.remove("Pod", "a", "shop")
            assert told(await autoscaler.told.get()) == heard
            assert len(said) == 2

    real(act)


def test_a_port_that_is_taken_is_an_error() -> None:
    async def act() -> None:
        autoscaler = Autoscaler()
        await autoscaler.start()
        with pytest.raises(OSError, match=str(autoscaler.port)):
            await dataplane.serve(
                cluster().client(), autoscaler.port, autoscaler.address, lambda _: None
            )
        await autoscaler.stop()

    real(act)
