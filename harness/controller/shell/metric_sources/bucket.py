"""How fast one metrics provider may be asked: a token bucket that is paused for as long as the provider asks to be left alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

EASE_RATE: Final = 10.0
"""Queries a second after a pause where there is no other limit: everybody who was told to wait comes back in the same moment."""
EASE_FOR: Final = 60.0
"""Seconds after a pause for which that holds."""


class PausedError(Exception):
    """The provider wants to be left alone for another `rest` seconds."""

    def __init__(self, rest: float) -> None:
        super().__init__(f"paused for another {rest:g} s")
        self.rest = rest


class Bucket:
    """Turns for the queries to one provider. Use it inside one event loop; its time is the loop's.

    `rate`: queries per second, None: as many as there are. `burst`: how many may go at once after a rest.
    """

    def __init__(self, rate: float | None, burst: int = 1) -> None:
        self._line = asyncio.Lock()
        """First come, first served: the limiter alone would let a newcomer pass those who wait."""
        self._limited = rate is not None
        self._limiter = _limiter(rate or EASE_RATE, burst if self._limited else 1)
        self._paused_until = self._eased_until = 0.0

    async def turn(self) -> None:
        """Wait for a turn; a cancelled wait gives the place back. Raises PausedError, at once or when a pause begins meanwhile."""
        self._check()
        if not self._limited and _now() >= self._eased_until:
            return
        async with self._line:
            self._check()
            await self._limiter.acquire()
            self._check()

    def pause(self, seconds: float) -> bool:
        """Let nothing pass for that long; a pause that lasts longer already stays. Return whether it is a new one."""
        now = _now()
        new = now >= self._paused_until
        self._paused_until = max(self._paused_until, now + seconds)
        self._eased_until = self._paused_until + EASE_FOR
        return new

    def _check(self) -> None:
        rest = self._paused_until - _now()
        if rest > 0:
            raise PausedError(rest)


def _limiter(rate: float, burst: int) -> AsyncLimiter:
    from aiolimiter import AsyncLimiter

    return AsyncLimiter(burst, burst / rate)


def _now() -> float:
    return asyncio.get_running_loop().time()
