"""What the shell tells whoever counts. This one counts nothing; `harness.controller.shell.metrics` does.

Every method is a no-op, so that a controller without metrics pays for nothing but a call.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from harness.controller.core.decision import JSON
    from harness.controller.shell.line import Line


class Meter:
    """Told what happens. Seconds are durations; a Canary is named by its own name, not its target's."""

    def saw(self, canary: JSON) -> None:
        """Take a state of a Canary (raw, with its status); the same one twice changes nothing."""

    def forget(self, name: str) -> None:
        """A Canary is gone, and with it everything that is told of it."""

    def passed(self, name: str, seconds: float, row: str) -> None:
        """A pass has ended, carried out or refused; `row` is the row of the transition table, empty when none was reached."""

    def called(self, kind: str, seconds: float, *, ok: bool) -> None:
        """A call has been answered (`kind`: webhook, metric, alert)."""

    def measured(self, canary: JSON, metric: str, value: float) -> None:
        """A metric of an analysis has this value."""

    def queried(self, provider: str, result: str) -> None:
        """A metrics provider (host and port) was sent a query: `ok`, `failed`, `undecided` (429, time-outs) or `given up`."""

    def queued(self, provider: str, seconds: float) -> None:
        """A query waited for that long until its provider could be asked; only where the rate is limited."""

    def line(self, namespace: str, line: Line) -> None:
        """Analyses are limited in a namespace; the line tells who waits whenever it is asked."""

    def waiting(self, more: int) -> None:
        """So many more Canaries (fewer, when negative) wait for their turn to write."""

    def degraded(self, *, on: bool) -> None:
        """The installed CRD has no place for the fence, or has one."""

    def leading(self, *, on: bool) -> None:
        """This process works, or stands by."""

    def asked(self, verb: str, resource: str, code: str, seconds: float | None) -> None:
        """A request to the API server was answered, or not (`code`: "none"); no seconds for a watch."""


class Turns:
    """So many turns at a time, first come first served; tells how many wait. In place of `asyncio.Semaphore`."""

    def __init__(self, at_once: int, meter: Meter) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._meter = meter

    async def __aenter__(self) -> None:
        self._meter.waiting(1)
        try:
            await self._turns.acquire()
        finally:
            self._meter.waiting(-1)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._turns.release()
