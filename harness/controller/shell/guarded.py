"""A transport that lets no write out while this process is not the leader."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from harness.kube.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.kube.transport import Request, Response, Transport


class Guarded:
    """A `Transport`. Reading is always allowed; a write is refused as Unreachable when `allowed()` says no.

    Asked at the last moment: a process that was frozen may come to itself in the middle of a pass, long after another one took over.
    """

    def __init__(self, transport: Transport, allowed: Callable[[], bool]) -> None:
        self._transport = transport
        self._allowed = allowed

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Response]:
        """Send one request (see `Transport.open`)."""
        if request.method != "GET" and not self._allowed():
            msg = f"{request.method} is not sent: this process does not hold the lease any more"
            raise Unreachable(msg, sent=False, final=True)
        async with self._transport.open(request) as response:
            yield response

    async def renew(self) -> bool:
        """Renew the credentials."""
        return await self._transport.renew()

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()
