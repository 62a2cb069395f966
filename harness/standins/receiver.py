"""The receiver: an HTTP server that answers webhooks and alerts as the scenario says, and tells of each call.

`/gate/NAME` and `/alerts/NAME` (and paths below them) are answered by what is declared under that name, everything else with 404.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.model.standins import HANG, status_of
from harness.standins.kept import kept
from harness.standins.site import HOST, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp import web

    from harness.model.standins import GateAnswer
    from harness.model.standins import Receiver as Declared

NOT_FOUND: Final = 404
_LARGEST: Final = 1 << 20
"""Bytes of a body."""
Sort = Literal["gate", "alert", "other"]


@dataclass(frozen=True, slots=True)
class Called:
    """A call that was answered (status 0: given up by the caller)."""

    sort: Sort
    gate: str
    status: int
    seconds: float
    fields: Mapping[str, str]
    """What was kept of its body: `harness.standins.kept.kept`."""


@dataclass(slots=True)
class _Gate:
    sort: Sort
    answer: GateAnswer
    calls: int = 0
    """Since the answer was given."""

    def next(self) -> str:
        """Return what the next call gets."""
        first = self.answer.first
        given = first[self.calls] if self.calls < len(first) else self.answer.answer
        self.calls += 1
        return given


class Receiver:
    """One drill's receiver. `tell` takes every call when it is over."""

    def __init__(self, declared: Declared, tell: Callable[[Called], None]) -> None:
        self._gates = {name: _Gate("gate", given) for name, given in declared.gates.items()}
        self._gates |= {name: _Gate("alert", given) for name, given in declared.alerts.items()}
        self._tell = tell
        self._site = Site()
        self._closed = False

    @property
    def address(self) -> str:
        """Its address, e.g. `http://127.0.0.1:40123`; only while it is open."""
        return f"http://{HOST}:{self._site.port}"

    async def open(self) -> None:
        """Begin to answer. Raises OSError."""
        from aiohttp import web

        application = web.Application(client_max_size=_LARGEST)
        application.router.add_route("*", "/{path:.*}", self._answer)
        await self._site.open(application)

    async def close(self) -> None:
        """Answer nothing any more; calls that hang are given up and not told of."""
        self._closed = True
        await self._site.close()

    def change(self, name: str, answer: GateAnswer) -> GateAnswer:
        """Let a gate answer differently from the next call on; return what it answered before. Raises KeyError."""
        gate = self._gates[name]
        before, gate.answer, gate.calls = gate.answer, answer, 0
        return before

    async def _answer(self, request: web.Request) -> web.Response:
        from aiohttp import web

        began = time.monotonic()
        group, _, rest = request.match_info["path"].partition("/")
        name = rest.partition("/")[0]
        gate = self._gates.get(name)
        sort: Sort = {"gate": "gate", "alerts": "alert"}.get(group, "other")  # type: ignore[assignment]
        if gate is None or gate.sort != sort:
            gate, name, sort = None, "", "other"
        fields: Mapping[str, str] = {}
        status = 0
        try:
            body = await request.read()
            fields = {} if gate is None else kept(body, alert=sort == "alert")
            given = str(NOT_FOUND) if gate is None else gate.next()
            if gate is not None and gate.answer.delay:
                await asyncio.sleep(gate.answer.delay)
            if given == HANG:
                await asyncio.Event().wait()
            status = status_of(given)
            text = gate.answer.body if gate is not None else "there is no such gate"
            return web.Response(status=status, text=text)
        finally:
            if not self._closed:
                seconds = time.monotonic() - began
                self._tell(Called(sort, name, status, seconds, fields))
