"""No socket outlives its client, even when the other side never says goodbye."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from harness.kube.sockets import Sockets


def test_a_connection_that_nobody_closed_is_closed_with_the_client() -> None:
    async def scene() -> tuple[int, int]:
        async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        sockets = Sockets()
        address: Any = (socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))
        made = sockets.make(address)
        made.setblocking(False)  # noqa: FBT003 - the socket's own interface
        loop = asyncio.get_running_loop()
        await loop.sock_connect(made, (host, port))
        await loop.create_connection(asyncio.Protocol, sock=made)
        before = made.fileno()
        await sockets.close()
        server.close()
        await server.wait_closed()
        return before, made.fileno()

    before, after = asyncio.run(scene())
    assert before != -1
    assert after == -1
