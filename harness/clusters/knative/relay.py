"""Bytes carried between two network namespaces: connections are accepted in one and go on in the other.

A socket stays in the namespace in which it was made, whoever holds it. So a process that was given a listener of another namespace
accepts there, and connects in its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from harness.clusters.knative.names import HOST

if TYPE_CHECKING:
    import socket

_CHUNK: Final = 1 << 16


async def relay(listener: socket.socket, port: int) -> asyncio.Server:
    """Return a server that connects whoever connects to `listener` with `port` of this process' own loopback, until it is closed."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            their_reader, their_writer = await asyncio.open_connection(HOST, port)
        except OSError:
            # Nobody is there yet: to the caller it is as if this listener were not there either.
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_carry(reader, their_writer))
                directions.create_task(_carry(their_reader, writer))
        except* OSError:
            # One side is gone, so what the other still says is for nobody.
            their_writer.transport.abort()
            writer.transport.abort()
        finally:
            their_writer.close()
            writer.close()

    return await asyncio.start_server(connected, sock=listener)


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Carry one direction, its end included; the other goes on."""
    while data := await source.read(_CHUNK):
        target.write(data)
        await target.drain()
    target.write_eof()
