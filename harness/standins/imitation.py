"""A stand-in for a Prometheus that cannot be had: it answers a query that is just the name of a series, and no other.

Whoever asks for more gets an error, and the drill is told: a made-up number would make a verdict worthless.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from harness.standins.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from harness.standins.exposition import Metrics

_VECTOR: Final = re.compile(r"vector\(\s*(-?\d+(?:\.\d+)?)\s*\)")
_SELECTOR: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(.*)\})?", re.DOTALL)
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\\n]*)"')
_BAD: Final = 422

Selector = tuple[str, frozenset[tuple[str, str]]]


def selector(text: str) -> Selector | None:
    """Return name and labels of a query that is one series; None for any other query."""
    found = _SELECTOR.fullmatch(text.strip())
    if found is None:
        return None
    inside = (found[2] or "").strip().rstrip(",")
    labels = _LABEL.findall(inside)
    rest = _LABEL.sub("", inside).replace(",", "").strip()
    return None if rest else (found[1], frozenset(labels))


def sample(query: str, metrics: Metrics, now: float) -> list[str] | None:
    """Return the values that a query gives, none or one, as Prometheus writes them; None for a query beyond this stand-in."""
    constant = _VECTOR.fullmatch(query.strip())
    if constant is not None:
        return [constant[1]]
    wanted = selector(query)
    for name in metrics.names():
        if wanted is not None and selector(name) == wanted:
            value = metrics.value(name, now)
            return [] if value is None else [value]
    return None


class Imitation:
    """It listens on loopback; `strange` takes every query that it cannot answer."""

    def __init__(self, metrics: Metrics, strange: Callable[[str], None]) -> None:
        self._metrics = metrics
        self._strange = strange
        self._site = Site()

    @property
    def port(self) -> int:
        """Its port; only while it is open."""
        return self._site.port

    async def open(self) -> None:
        """Begin to answer. Raises OSError."""
        from aiohttp import web

        application = web.Application()
        application.router.add_route("*", "/api/v1/query", self._query)
        await self._site.open(application)

    async def close(self) -> None:
        """Answer nothing any more."""
        await self._site.close()

    async def _query(self, request: web.Request) -> web.Response:
        from aiohttp import web

        given = await request.post() if request.method == "POST" else request.query
        query = str(given.get("query", ""))
        values = sample(query, self._metrics, time.monotonic())
        if values is None:
            self._strange(query)
            body = {"status": "error", "errorType": "bad_data", "error": "beyond this stand-in"}
            return web.json_response(body, status=_BAD)
        rows = [{"metric": {}, "value": [time.time(), value]} for value in values]
        return web.json_response(
            {"status": "success", "data": {"resultType": "vector", "result": rows}}
        )
