"""The sockets of one HTTP client, so that closing the client means that every one of them is closed.

A TLS connection that is left says goodbye and stays open until the other side has answered. Whoever ends the event
loop meanwhile leaves a socket behind, and on a busy machine the answer takes its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE: Final = 1.0
"""Seconds that the event loop gets to take note of sockets that were cut off; it needs a few rounds."""


class Sockets:
    """Makes sockets and remembers those that are still in use."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: Any) -> socket.socket:
        """Return a socket for an address as `getaddrinfo` describes it (aiohttp's `socket_factory`)."""
        family, kind, protocol, _, _ = address
        made = socket.socket(family=family, type=kind, proto=protocol)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """Cut off whatever is still open, and wait until the event loop has let go of it."""
        for one in self._open():
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                # No event says that a transport has closed its socket: it does so within a few rounds of the loop.
                while any(self._open()):  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(0.001)

    def _open(self) -> Iterator[socket.socket]:
        return (one for one in list(self._made) if one.fileno() != -1)
