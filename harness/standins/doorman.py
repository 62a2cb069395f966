"""Stands before the metrics server, tells of every query, and passes it on; or refuses them all, as a server does that is asked too much."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.model.standins import RETRY_AFTER, TOO_MANY
from harness.standins.site import HOST, Site

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp
    from aiohttp import web

QUERIES: Final = frozenset({"/api/v1/query", "/api/v1/query_range"})
"""Paths that count: questions for values. Whoever asks for anything else is passed on and not told of."""
_GONE: Final = 502
_KEPT: Final = ("Content-Type", "Content-Encoding")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that was answered."""

    came: float
    """When it came in, on the monotonic clock."""
    status: int
    """What was answered; 0 when the caller went away before."""
    passed: bool
    """Whether the server behind got it; otherwise it was refused at the door."""


class Doorman:
    """An HTTP server on loopback. `tell` takes every query when it is over."""

    def __init__(self, tell: Callable[[Asked], None]) -> None:
        self.behind = 0
        """The port that queries are passed on to; 0 while there is none: they get 502."""
        self.throttled = False
        """Whether everything gets 429 with `Retry-After`, and nothing is passed on."""
        self._tell = tell
        self._site = Site()
        self._http: aiohttp.ClientSession | None = None

    @property
    def port(self) -> int:
        """Its port; only while it is open."""
        return self._site.port

    async def open(self) -> None:
        """Begin to answer. Raises OSError."""
        import aiohttp
        from aiohttp import web

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._http = aiohttp.ClientSession(
            trust_env=False,
            auto_decompress=False,
            # As many as ask: whoever waits here would look like a slow server.
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        await self._site.open(application)

    async def close(self) -> None:
        """Answer nothing any more; closing twice does no harm."""
        await self._site.close()
        if self._http is not None:
            http, self._http = self._http, None
            await http.close()

    async def _answer(self, request: web.Request) -> web.Response:
        from aiohttp import web

        came = time.monotonic()
        counts = request.path in QUERIES
        passed, status = not self.throttled, 0
        try:
            # Read even where it is not used: the connection stays usable for the next query.
            body = await request.read()
            if self.throttled:
                passed, status = False, TOO_MANY
                return web.Response(
                    status=TOO_MANY,
                    text="too many requests",
                    headers={"Retry-After": f"{RETRY_AFTER}"},
                )
            answer = await self._pass_on(request, body)
            status = answer.status
            return answer
        finally:
            if counts:
                self._tell(Asked(came, status, passed))

    async def _pass_on(self, request: web.Request, body: bytes) -> web.Response:
        import aiohttp
        from aiohttp import web

        assert self._http is not None  # noqa: S101 - open() came before the first request
        if not self.behind:
            return web.Response(status=_GONE, text="nothing to ask is there yet")
        wanted = ("Accept", "Accept-Encoding", "Content-Type")
        headers = {name: request.headers[name] for name in wanted if name in request.headers}
        url = f"http://{HOST}:{self.behind}{request.raw_path}"
        try:
            async with self._http.request(
                request.method, url, data=body or None, headers=headers
            ) as got:
                content = await got.read()
                kept = {name: got.headers[name] for name in _KEPT if name in got.headers}
                return web.Response(status=got.status, body=content, headers=kept)
        except aiohttp.ClientError as error:
            return web.Response(status=_GONE, text=f"the server behind failed: {error}")
