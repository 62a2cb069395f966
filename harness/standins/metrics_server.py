"""The metrics server of a drill: a real Prometheus where one can be had, behind a port that can be taken away."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Final

from harness.model.standins import ABSENT, DOWN, RATE, SERVER_WORDS, THROTTLED
from harness.standins.doorman import QUERIES, Doorman
from harness.standins.exposition import Exposition, Metrics
from harness.standins.front import Front
from harness.standins.imitation import Imitation
from harness.standins.prometheus import Prometheus
from harness.standins.prometheus_program import version
from harness.standins.site import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from harness.standins.doorman import Asked

SEEN_WITHIN: Final = 15.0
"""Seconds until a changed value is told; it takes one, the time between two scrapes. The first ones take five: a Prometheus that has
just started waits so long before it looks at anything."""
_AGAIN: Final = 0.1


class NotSeenError(Exception):
    """A value was not told in time; the message says what was told last."""


class MetricsServer:
    """One drill's. `open` gives it its address at once, `start` takes a moment and may go on beside other things."""

    def __init__(
        self,
        values: Mapping[str, str],
        folder: Path,
        strange: Callable[[str], None],
        asked: Callable[[Asked], None],
    ) -> None:
        """`folder` is for a Prometheus' data; `strange` takes queries that a stand-in for it cannot answer, `asked` every one."""
        self.by = ""
        """Who answers, e.g. `Prometheus 2.42.0`; from `start` on."""
        self.exact = True
        self._values = dict(values)
        self._folder = folder
        self._strange = strange
        self._metrics = Metrics(values)
        self._front = Front()
        self._doorman = Doorman(asked)
        self._exposition = Exposition(self._metrics)
        self._prometheus: Prometheus | None = None
        self._imitation: Imitation | None = None
        self._own = 0
        """Queries that were ours, to see whether a value is told; they go past the doorman."""

    @property
    def address(self) -> str:
        """Its address; from `open` on."""
        return self._front.address

    async def open(self) -> None:
        """Take the port. Raises OSError."""
        await self._front.up()

    async def start(self, program: Path | None, namespace: str) -> None:
        """Start it, and return once it answers; without a program a stand-in answers simple queries. Raises ProgramError, OSError."""
        await self._doorman.open()
        if program is None:
            self.by, self.exact = "a stand-in that answers only plain names of series", False
            self._imitation = Imitation(self._metrics, self._strange)
            await self._imitation.open()
            self._doorman.behind = self._imitation.port
        else:
            self.by = f"Prometheus {await asyncio.to_thread(version, program)}".strip()
            await self._exposition.open()
            self._prometheus = Prometheus(program, self._folder)
            await self._prometheus.start(self._exposition.port, namespace)
            self._doorman.behind = self._prometheus.port
        self._front.behind = self._doorman.port

    async def told(self) -> None:
        """Wait until it tells the values that the series have. Raises NotSeenError."""
        await self._until_seen(self._values)

    async def change(self, values: Mapping[str, str]) -> str:
        """Change series, and return what they were once the new values are told. Raises NotSeenError, OSError."""
        now = time.monotonic()
        told = [f"{name} {self._values.get(name, ABSENT)} → {new}" for name, new in values.items()]
        new = {name: value for name, value in values.items() if value not in SERVER_WORDS}
        for name, value in new.items():
            self._metrics.set(name, value, now)
        self._values |= new
        self._doorman.throttled = THROTTLED in values.values()
        if DOWN in values.values():
            await self._front.down()
        else:
            await self._front.up()
        await self._until_seen(new)
        return f"{'; '.join(told)} (told after {time.monotonic() - now:.1f} s)"

    async def counted(self) -> int | None:
        """Return how many queries a real Prometheus says that it has answered, without ours; None when none can be asked."""
        if self._prometheus is None:
            return None
        own = self._own
        total = await self._prometheus.counted(QUERIES)
        return None if total is None else max(0, total - own)

    async def close(self) -> None:
        """End everything; closing twice does no harm."""
        await self._front.down()
        await self._doorman.close()
        if self._prometheus is not None:
            await self._prometheus.stop()
        if self._imitation is not None:
            await self._imitation.close()
        await self._exposition.close()

    async def _until_seen(self, values: Mapping[str, str]) -> None:
        import aiohttp

        deadline = time.monotonic() + SEEN_WITHIN
        # Asked behind the doorman, who may turn everybody away on purpose.
        url = f"http://{HOST}:{self._doorman.behind}/api/v1/query"
        async with aiohttp.ClientSession(trust_env=False) as http:
            for name, value in values.items():
                while True:
                    self._own += 1
                    last = await _told(http, url, name)
                    if _same(value, last):
                        break
                    if time.monotonic() > deadline:
                        msg = f"the metrics server did not tell {name} {value} within {SEEN_WITHIN:g} s; last told: {last or 'nothing'}"
                        raise NotSeenError(msg)
                    await asyncio.sleep(_AGAIN)


async def _told(http: object, url: str, name: str) -> str | None:
    """Return the value that a query for a series gives; None for none, and while it does not answer."""
    import aiohttp

    assert isinstance(http, aiohttp.ClientSession)  # noqa: S101 - typed loosely, since the import is slow
    limit = aiohttp.ClientTimeout(total=5)
    try:
        async with http.get(url, params={"query": name}, timeout=limit) as answer:
            body = await answer.json()
        rows = body["data"]["result"]
        return str(rows[0]["value"][1]) if rows else None
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError):
        return "no answer"


def _same(wanted: str, told: str | None) -> bool:
    """Whether what is told is what was set; of a counter any value is."""
    if wanted == ABSENT or told is None:
        return wanted == ABSENT and told is None
    try:
        number = float(told)
    except ValueError:
        return False
    if RATE.fullmatch(wanted):
        return True
    expected = float(wanted)
    return number == expected or (math.isnan(number) and math.isnan(expected))
