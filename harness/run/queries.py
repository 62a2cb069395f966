"""What a drill's metrics server was asked, as observations: every query, a few times a second together, and the server's own count of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

from harness.model.timeline import PRECISION
from harness.model.timeline_outside import Queries, QueriesCounted

if TYPE_CHECKING:
    from harness.run.live import Live
    from harness.standins.doorman import Asked
    from harness.standins.metrics_server import MetricsServer

TOGETHER: Final = 0.25
"""Seconds for which queries are kept back: with a hundred rollouts there are hundreds in a second, and conditions are looked at after
every observation."""
EVERY: Final = 1.0
"""Seconds between two looks at the server's own count. A rate is the difference of two, so that they go on while nobody asks."""


class QueryLog:
    """Notes the queries of one drill. `asked` takes them from before there is a timeline; what was asked then is told first."""

    def __init__(self) -> None:
        self._kept: list[Asked] = []
        self._live: Live | None = None
        self._server: MetricsServer | None = None
        self._later: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._last: tuple[float, int] | None = None
        """When the server's own count was looked at last, and what it was."""
        self._one_look = asyncio.Lock()

    def asked(self, query: Asked) -> None:
        """Take a query that was answered, or given up."""
        self._kept.append(query)
        if self._live is not None and self._later is None:
            self._later = asyncio.get_running_loop().call_later(TOGETHER, self.flush)

    def attach(self, live: Live) -> None:
        """Record from now on."""
        self._live = live

    def follow(self, server: MetricsServer) -> None:
        """Look at a server's own count from now on."""
        self._server = server
        self._looking = asyncio.create_task(self._look_on())

    async def complete(self) -> None:
        """Tell what is kept back, and the count as it is now; for the end of what is judged."""
        self.flush()
        await self._look()

    async def close(self) -> None:
        """Record nothing any more; closing twice does no harm."""
        self._live = None
        if self._later is not None:
            self._later.cancel()
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    def flush(self) -> None:
        """Tell the queries that are kept back."""
        self._later = None
        live = self._live
        if live is None or not self._kept:
            return
        kept, self._kept = sorted(self._kept, key=lambda query: query.came), []
        now, moment = live.now(), time.monotonic()
        live.observe(
            Queries(
                now,
                tuple(round(now - (moment - query.came), PRECISION) for query in kept),
                tuple(query.status for query in kept),
                sum(query.passed for query in kept),
            )
        )

    async def _look_on(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(EVERY)

    async def _look(self) -> None:
        if self._server is None:
            return
        async with self._one_look:
            count = await self._server.counted()
            live = self._live
            if count is None or live is None:
                return
            now = live.now()
            before, self._last = self._last, (now, count)
            if before is None or count != before[1]:
                seconds = 0.0 if before is None else round(now - before[0], PRECISION)
                live.observe(QueriesCounted(now, count, seconds))
