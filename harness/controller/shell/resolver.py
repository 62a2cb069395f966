"""Names looked up beside the event loop, one thread each.

The usual way shares a handful of threads among everything that the process does: a few names whose server does not answer would hold up
the webhooks and metrics of every other Canary, and the end of the process too, since those threads are waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

from aiohttp.abc import AbstractResolver, ResolveResult

if TYPE_CHECKING:
    from collections.abc import Callable


class Resolver(AbstractResolver):
    """Asks the system (hosts file, search domains, name servers). `lookup` is replaced in tests."""

    def __init__(self, lookup: Callable[..., list[Any]] = socket.getaddrinfo) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises OSError. Cancelled, it leaves the thread to end by itself."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()

        def settle(found: list[Any], error: OSError | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)

        def ask() -> None:
            found: list[Any] = []
            failed: OSError | None = None
            try:
                found = self._lookup(host, port, family=family, type=socket.SOCK_STREAM)
            except OSError as error:
                failed = error
            except UnicodeError:
                failed = OSError(None, "not a name")
            # The loop may be closed by now: nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, found, failed)

        threading.Thread(target=ask, name="resolve", daemon=True).start()
        return [_entry(host, one) for one in await answer]

    async def close(self) -> None:
        """Nothing is kept."""


def _entry(host: str, found: Any) -> ResolveResult:
    family, _, protocol, _, address = found
    return ResolveResult(
        hostname=host,
        host=address[0],
        port=address[1],
        family=family,
        proto=protocol,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
