"""An HTTP server of ours on loopback, in the harness' own process."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp import web

HOST: Final = "127.0.0.1"
_GRACE: Final = 0.05
"""Seconds for calls under way when it is closed; with 0 the library would wait for ever for one that hangs."""


def listening(port: int = 0) -> socket.socket:
    """Return a listening socket on loopback; without `port` the kernel chooses one that is free. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
        sock.listen(128)
        sock.settimeout(0)
    except OSError:
        sock.close()
        raise
    return sock


class Site:
    """Serves an application until it is closed."""

    def __init__(self) -> None:
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def open(self, application: web.Application) -> None:
        """Begin to serve; a handler is cancelled when its caller goes away. Raises OSError."""
        from aiohttp import web

        sock = listening()
        self.port = int(sock.getsockname()[1])
        self._runner = web.AppRunner(
            application, access_log=None, handler_cancellation=True, shutdown_timeout=_GRACE
        )
        await self._runner.setup()
        await web.SockSite(self._runner, sock).start()

    async def close(self) -> None:
        """End it, and every call that is under way; closing twice does no harm."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
