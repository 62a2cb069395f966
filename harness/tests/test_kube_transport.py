"""The transport over HTTP, against a small server on loopback: what each failure means."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from harness.kube.client import KubeClient
from harness.kube.errors import Unreachable
from harness.kube.resource import POD
from harness.kube.retry import Budget
from harness.kube.watch import Listed, watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NO_RETRY = Budget(total=0.0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def served(
    path: Path, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KubeClient]:
    """Run a server, and yield a client of it in an environment whose proxies lead nowhere."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    app = web.Application(client_max_size=2**25)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with await connect(path, port) as client:
            yield client
    finally:
        await runner.cleanup()


def write_config(path: Path, port: int) -> Path:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "abc"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


async def connect(path: Path, port: int) -> KubeClient:
    config = write_config(path, port)
    return await KubeClient.connect(config, user_agent="rollout-drill/t", budget=NO_RETRY)


async def stream(request: web.Request, *lines: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for line in lines:
        await response.write(line)
    return response


def test_requests_carry_user_agent_token_and_body_and_spare_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        kept = {name: request.headers[name] for name in ("User-Agent", "Authorization", "Accept")}
        body = json.loads(await request.text())
        return web.json_response({**kept, "body": body, "query": dict(request.query)})

    async def scenario() -> None:
        async with served(tmp_path / "k", echo, monkeypatch) as client:
            selector = {"labelSelector": "a in (b,c),d=e+f"}
            answer = await client.raw("PATCH", "/x", selector, [{"op": "test"}])
        assert answer == {
            "User-Agent": "rollout-drill/t",
            "Authorization": "Bearer abc",
            "Accept": "application/json",
            "body": [{"op": "test"}],
            "query": selector,
        }

    asyncio.run(scenario())


def test_refused_connection_was_not_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await connect(tmp_path / "k", free_port()) as client:
            with pytest.raises(
                Unreachable, match=r"no connection to http://127\.0\.0\.1"
            ) as raised:
                await client.version()
        assert not raised.value.sent

    asyncio.run(scenario())


def test_connection_that_breaks_may_have_been_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def scenario() -> None:
        async with served(tmp_path / "k", hang_up, monkeypatch) as client:
            with pytest.raises(Unreachable, match="broke") as raised:
                await client.create(POD, {"metadata": {"name": "p"}}, "ns", field_manager="m")
        assert raised.value.sent

    asyncio.run(scenario())


def test_stream_that_falls_silent_or_breaks_off_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = await stream(request, b'{"type": "BOOKMARK"}\n{"ty')
        if request.query["how"] == "silent":
            await asyncio.sleep(5)
        assert request.transport is not None
        request.transport.abort()
        return response

    async def scenario() -> None:
        async with served(tmp_path / "k", half, monkeypatch) as client:
            for how, problem in (("silent", "in time"), ("breaks", "broke")):
                seen = []
                with pytest.raises(Unreachable, match=problem):
                    async with client.stream("/w", {"how": how}, silence=0.2) as events:
                        seen += [event async for event in events]
                assert seen == []

    asyncio.run(scenario())


def test_many_watches_on_one_client_do_not_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_now = 0
    gone = asyncio.Event()

    async def server(request: web.Request) -> web.StreamResponse:
        nonlocal open_now
        if request.query.get("watch") != "true":
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        open_now += 1
        event = {"type": "ADDED", "object": {"metadata": {"name": "p", "resourceVersion": "2"}}}
        response = await stream(request, json.dumps(event).encode() + b"\n")
        try:
            while True:
                await asyncio.sleep(0.01)
                await response.write(b"\n")
        except (ConnectionError, asyncio.CancelledError):
            open_now -= 1
            if open_now == 0:
                gone.set()
            raise
        return response

    async def scenario() -> None:
        async with served(tmp_path / "k", server, monkeypatch) as client:
            watches = [watch(client, POD, "ns") for _ in range(110)]
            firsts = await asyncio.gather(*(anext(w) for w in watches))
            assert all(isinstance(first, Listed) for first in firsts)
            await asyncio.gather(*(anext(w) for w in watches))
            assert open_now == 110
            await client.list(POD, "ns")
            await asyncio.gather(*(w.aclose() for w in watches))
            async with asyncio.timeout(5):
                await gone.wait()

    asyncio.run(scenario())
