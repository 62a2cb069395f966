"""Asking metrics providers: each in its own time, as many queries as it may get, and what it answers when it has too much to do.

Providers are told apart by scheme, host and port of their address: two MetricTemplates of one server share what it may get.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness.controller.shell.metric_sources import SOURCES
from harness.controller.shell.metric_sources.base import (
    Query,
    UndecidedError,
)
from harness.controller.shell.metric_sources.bucket import Bucket, PausedError
from harness.controller.shell.posting import retry_after
from harness.controller.shell.wording import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.shell.http import Http
    from harness.controller.shell.meter import Meter

SHORTEST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
"""Seconds; who asks by Retry-After for less or more gets this."""
_PORTS: Final = {"http": 80, "https": 443}


class Providers:
    """All providers that this controller asks. `rate` and `burst` hold for each of them (see Bucket). `clock`: seconds since the epoch."""

    def __init__(
        self,
        http: Http,
        log: Any,
        clock: Callable[[], float],
        meter: Meter,
        *,
        rate: float | None = None,
        burst: int = 1,
    ) -> None:
        self._http = http
        self._log = log
        self._clock = clock
        self._meter = meter
        self._rate = rate
        self._burst = burst
        self._buckets: dict[tuple[str, str, int | None], Bucket] = {}

    async def ask(self, kind: str, query: Query) -> float | None:
        """Ask when it is this query's turn; its time-out counts from then.

        Returns what a Source does. Raises QueryFailedError, and UndecidedError with `retry_after` in seconds.
        """
        address = str(query.provider.get("address") or "")
        host, bucket = host_of(address), self._bucket(address)
        await self._turn(host, bucket)
        if self._rate is not None:
            query = replace(query, once=True)
        result = "failed"
        try:
            value = await SOURCES[kind](self._http, query)
            result = "ok"
        except UndecidedError as error:
            result = "undecided"
            asked = retry_after(error.headers, self._clock())
            if asked is not None:
                error.retry_after = min(max(asked, SHORTEST_PAUSE), LONGEST_PAUSE)
                if bucket.pause(error.retry_after):
                    self._log.warning("provider paused", provider=host, seconds=error.retry_after)
            raise
        except asyncio.CancelledError:
            result = "given up"
            raise
        finally:
            self._meter.queried(host, result)
        return value

    async def _turn(self, host: str, bucket: Bucket) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            await bucket.turn()
        except PausedError as paused:
            msg = f"{host} has asked to be left alone for a while (Retry-After)"
            error = UndecidedError(msg, "TooManyRequests")
            error.retry_after = max(paused.rest, SHORTEST_PAUSE)
            raise error from paused
        if self._rate is not None:
            self._meter.queued(host, loop.time() - begin)

    def _bucket(self, address: str) -> Bucket:
        key = _key(address)
        if key not in self._buckets:
            self._buckets[key] = Bucket(self._rate, self._burst)
        return self._buckets[key]


def _key(address: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port; an address that is none gets its failure from its source, and shares a bucket with its like."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None
    return parts.scheme, parts.hostname or "", port
