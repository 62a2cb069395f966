"""What stands outside the cluster in tests: HTTP servers on loopback, a log that is kept, and a sleep that only writes down."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import shutil
import socket
import ssl
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from harness.controller.core.analysis import metrics, webhooks
from harness.controller.shell import log as logs
from harness.controller.shell.calls import Calls
from harness.controller.shell.http import Http
from harness.kube.testing import FakeCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from harness.controller.core.calls import Answer

JSON = dict[str, Any]
NOW = 1_800_000_000.0
PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")


def canary(**analysis: Any) -> JSON:
    """A Canary of a Deployment `web`; `analysis` goes over the defaults."""
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "n", "uid": "u1"},
        "spec": {
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "service": {"port": 80},
            "analysis": {"interval": "1m", "threshold": 2, "iterations": 3, **analysis},
        },
        "status": {"phase": "Progressing", "lastAppliedSpec": "v2:2941eab5be2776bc"},
    }


@dataclass
class Seen:
    """One request that came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """A server that answers each request with the next of `script`, and the last one for ever."""

    script: list[Any]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        body = json.loads(text) if text else None
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.seen.append(Seen(request.method, request.path, dict(request.query), headers, body))
        given = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if given == "hang":
            await self.release.wait()
            return web.Response()
        if given == "break":
            transport = request.transport
            assert transport is not None
            transport.abort()
            return web.Response()
        status, text, extra = (*given, {})[:3] if isinstance(given, tuple) else (given, "", {})
        if isinstance(text, dict | list):
            return web.json_response(text, status=status, headers=extra)
        return web.Response(status=status, text=text, headers=extra)


@contextlib.asynccontextmanager
async def served(*script: Any, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run a server. An item of `script`: a status, (status, text or JSON, headers), "hang" or "break"."""
    server = Server(list(script))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        server.release.set()
        await runner.cleanup()


def refused() -> str:
    """Return an address on loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class NoNames(AbstractResolver):
    """Resolves nothing, so that no test asks a name server."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise OSError(None, f"no such name {host}:{port} {family}")

    async def close(self) -> None:
        return None


class Sleeps(list[float]):
    """Waits for nothing, and keeps how long it was asked to."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


class Log:
    """A log of the controller, and what was written to it."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.to = logs.to(self._stream)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[JSON]:
        return [json.loads(line) for line in self.text.splitlines()]


def running(story: Callable[[], Awaitable[Any]]) -> Any:
    """Run a story in a loop of its own, at most ten seconds; nothing of it may be left afterwards."""

    async def all_of_it() -> Any:
        async with asyncio.timeout(10):
            result = await story()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    return asyncio.run(all_of_it())


class World:
    """Calls with everything they need, and what they left behind."""

    def __init__(
        self, metrics_server: str = "http://127.0.0.1:9", timeout: float = 5.0, **more: Any
    ) -> None:
        self.cluster = FakeCluster()
        self.log = Log()
        self.sleeps = Sleeps()
        self.http = Http(user_agent="test", resolver=NoNames())
        self.calls = Calls(
            self.cluster.client(),
            self.log.to,
            lambda: NOW,
            metrics_server=metrics_server,
            http=self.http,
            sleep=self.sleeps,
            metric_timeout=timeout,
            **more,
        )

    async def hook(self, url: str, **entry: Any) -> Answer:
        hook = {"name": "gate", "type": "pre-rollout", "url": url, **entry}
        given = canary(webhooks=[hook])
        call = webhooks.call(given, hook, "Progressing", "o")
        try:
            return await self.calls.carry_out(call, given)
        finally:
            await self.http.close()

    async def metric(self, *, server: str = "", **entry: Any) -> Answer:
        given = canary(metrics=[{"name": "m", **entry}])
        if server:
            given["spec"]["metricsServer"] = server
        (check,) = metrics.entries(given)
        try:
            return await self.calls.carry_out(metrics.call(given, check, "o"), given)
        finally:
            await self.http.close()


def own_certificate(folder: Path) -> ssl.SSLContext:
    """Return a server's TLS with a certificate that nobody knows."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    made: list[str] = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    names = ["-subj", "/CN=localhost", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *made, *names], check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
