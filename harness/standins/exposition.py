"""The metrics of a drill in Prometheus' text format, and the endpoint that a Prometheus scrapes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.model.standins import ABSENT, RATE
from harness.standins.site import Site

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class _Series:
    value: str
    count: float = 0.0
    """Of a counter: what it had counted at `since`."""
    since: float = 0.0

    def at(self, now: float) -> str | None:
        """Return its value at a moment; None while it is absent."""
        if self.value == ABSENT:
            return None
        rate = RATE.fullmatch(self.value)
        if rate is None:
            return self.value
        return f"{self.count + float(rate[1]) * (now - self.since):.15g}"


class Metrics:
    """Series and their values. Pure: times are seconds of any clock, given by the caller."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._series = {name: _Series(value) for name, value in values.items()}

    def set(self, name: str, value: str, now: float) -> None:
        """Give a series another value; a counter goes on from where it was."""
        known = self._series.setdefault(name, _Series(ABSENT))
        before = known.at(now)
        counting = RATE.fullmatch(known.value) is not None
        self._series[name] = _Series(value, float(before) if counting and before else 0.0, now)

    def value(self, name: str, now: float) -> str | None:
        """Return the value of a series at a moment; None when it is absent. Raises KeyError for one that is not declared."""
        return self._series[name].at(now)

    def names(self) -> tuple[str, ...]:
        """Return all series that are declared, those that are absent too."""
        return tuple(self._series)

    def text(self, now: float) -> str:
        """Return them all in the text format."""
        rows = ((name, series.at(now)) for name, series in self._series.items())
        return "".join(f"{name} {value}\n" for name, value in rows if value is not None)


class Exposition:
    """The endpoint `/metrics` on loopback."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._site = Site()

    @property
    def port(self) -> int:
        """Its port; only while it is open."""
        return self._site.port

    async def open(self) -> None:
        """Begin to answer. Raises OSError."""
        from aiohttp import web

        application = web.Application()
        application.router.add_get("/metrics", self._answer)
        await self._site.open(application)

    async def close(self) -> None:
        """Answer nothing any more."""
        await self._site.close()

    async def _answer(self, _request: web.Request) -> web.Response:
        from aiohttp import web

        text = self._metrics.text(time.monotonic())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})
