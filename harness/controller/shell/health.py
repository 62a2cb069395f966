"""What a probe and a Prometheus ask over HTTP: `/healthz`, `/readyz`, `/metrics`.

An answer at all shows that the event loop is alive. Nothing here can change anything, and nothing it says is secret; it still listens on loopback
unless told otherwise.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aiohttp import web

STUCK_AFTER: Final = 180.0
"""Seconds. A watch is opened anew about once a minute and tried again within seconds: three minutes of neither is a fault of ours."""
STANDBY: Final = "standby"
STARTING: Final = "starting"


class ListenError(Exception):
    """The address cannot be listened on; the message is one sentence."""


class Health:
    """Whether this process is alive and of use.

    `watches`: by path, when each watch was last opened, by `clock` (see `harness.controller.shell.counting`).
    """

    def __init__(
        self,
        watches: Mapping[str, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.waits_for: Callable[[], str] = lambda: STARTING
        """Says what the controller still waits for before it can work; STANDBY while another process leads; nothing when it works."""
        self._watches = watches
        self._clock = clock

    def ill(self) -> str:
        """Return why this process should be started again; empty when it should not. An API server that is away is no reason."""
        now = self._clock()
        for path, opened in sorted(self._watches.items()):
            if now - opened > STUCK_AFTER:
                return f"the watch of {path} has been silent for {now - opened:.0f} s"
        return ""

    def unready(self) -> str:
        """Return why it cannot work yet; empty when it works, or would at once if the leader were gone."""
        waits = self.waits_for()
        return "" if waits == STANDBY else waits


@contextlib.asynccontextmanager
async def serving(
    health: Health, text: Callable[[], tuple[bytes, str]], host: str, port: int
) -> AsyncIterator[int]:
    """Answer requests within the context; yields the port, which is a free one for port 0. `text` gives the metrics and their content type.

    Raises ListenError.
    """
    from aiohttp import web

    async def healthz(_: web.Request) -> web.Response:
        return _answer(health.ill(), "ok")

    async def readyz(_: web.Request) -> web.Response:
        standby = health.waits_for() == STANDBY
        return _answer(health.unready(), "ok, standing by" if standby else "ok")

    async def metrics(_: web.Request) -> web.Response:
        body, kind = text()
        return web.Response(body=body, headers={"Content-Type": kind})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            msg = f"cannot listen on {host} port {port} for metrics and probes: {error.strerror or error}"
            raise ListenError(msg) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _answer(problem: str, fine: str) -> web.Response:
    from aiohttp import web

    return web.Response(text=f"{problem or fine}\n", status=503 if problem else 200)
