"""A port on loopback that leads to another one, and can be taken away: then connections are refused as by a server that is down."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from typing import Final

from harness.standins.site import HOST, listening

_CHUNK: Final = 1 << 16
_AGAIN: Final = 0.05
_TRIES: Final = 40


class Front:
    """One such port. It has the same number every time it comes back."""

    def __init__(self) -> None:
        self.port = 0
        self.behind = 0
        """The port that it leads to; 0 while there is none: connections are closed at once."""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """Its address, e.g. `http://127.0.0.1:40123`; from the first `up` on."""
        return f"http://{HOST}:{self.port}"

    async def up(self) -> None:
        """Take connections. Raises OSError when somebody else has the port by now."""
        if self._server is not None:
            return
        for left in reversed(range(_TRIES)):
            try:
                sock = listening(self.port)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not left:
                    raise
            await asyncio.sleep(_AGAIN)
        self.port = int(sock.getsockname()[1])
        self._server = await asyncio.start_server(self._connected, sock=sock)

    async def down(self) -> None:
        """Refuse connections, and break those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a callback of a stream server runs in one
        self._open.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                inner, outer = await asyncio.open_connection(HOST, self.behind)
                try:
                    async with asyncio.TaskGroup() as both:
                        both.create_task(_pump(reader, outer))
                        both.create_task(_pump(inner, writer))
                except* OSError:
                    pass
                finally:
                    outer.close()
        finally:
            self._open.discard(task)
            writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK):
        sink.write(chunk)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()
