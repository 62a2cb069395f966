"""A transport that tells what it was asked: verb, resource and answer of every request, and when each watch was last opened."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from harness.kube.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.controller.shell.meter import Meter
    from harness.kube.transport import Request, Response, Transport

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_BAD: Final = 400
NO_ANSWER: Final = "none"


class Counting:
    """A `Transport`. `clock` counts seconds."""

    def __init__(
        self, transport: Transport, meter: Meter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.watches: dict[str, float] = {}
        """By path, when a watch of it was last opened or tried, or its objects listed. A watch that works is opened anew every minute; one that the
        server refuses (no CRD, no permission) is no watch, and not in here."""
        self._transport = transport
        self._meter = meter
        self._clock = clock

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Response]:
        """Send one request (see `Transport.open`). It is counted when its answer has been read, a watch when it is answered."""
        verb, resource, path = _meaning(request)
        began = self._clock()
        if verb == "watch" or path in self.watches:
            self.watches[path] = began
        code, counted = NO_ANSWER, False
        try:
            async with self._transport.open(request) as response:
                code = str(response.status)
                if response.status >= _BAD:
                    self.watches.pop(path, None)
                if verb == "watch":
                    self._meter.asked(verb, resource, code, None)
                    counted = True
                yield response
        except Unreachable:
            code = NO_ANSWER
            raise
        finally:
            if not counted:
                spent = None if verb == "watch" else self._clock() - began
                self._meter.asked(verb, resource, code, spent)

    async def renew(self) -> bool:
        """Renew the credentials."""
        return await self._transport.renew()

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()


def _meaning(request: Request) -> tuple[str, str, str]:
    """Return verb (as in RBAC), resource (`deployments`, `canaries/status`) and path of a request."""
    url = urlsplit(request.path)
    parts = url.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    if parts[:1] == ["namespaces"] and len(parts) > 2:  # noqa: PLR2004 - namespaces/NAME/PLURAL
        parts = parts[2:]
    resource = "/".join([*parts[:1], *parts[2:3]]) or "other"
    verb = _VERBS.get(request.method, "get")
    if verb == "get" and len(parts) == 1:
        verb = "watch" if "watch=true" in url.query.split("&") else "list"
    return verb, resource, url.path
