"""One worker per Canary: passes strictly one after the other, woken by watches, by writes and by time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import Note, decide
from harness.controller.shell.cache import CANARIES, Cache
from harness.kube.errors import Conflict, Invalid, KubeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Decision
    from harness.controller.core.decision import JSON
    from harness.controller.shell.writer import Writer

AFTER_CONFLICT: Final = 0.5
"""Seconds to wait for the watch after a conflict, in case it has nothing to bring."""
FIRST_RETRY: Final = 0.5
LONGEST_RETRY: Final = 30.0
"""Seconds; a refused write is tried again after 0.5, 1, 2 … 30 s, or when something moves."""
MAX_STRAIGHT: Final = 50
"""Passes in a row without a pause. A run needs a dozen; more means that a write does not stick."""


class Worker:
    """Drives one Canary until it is gone."""

    def __init__(
        self,
        name: str,
        cache: Cache,
        writer: Writer,
        log: Any,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self._cache = cache
        self._writer = writer
        self._log = log
        self._clock = clock
        self._wake = asyncio.Event()
        self._failures = 0
        self._straight = 0
        self._last_row = ""

    def wake(self) -> None:
        """Ask for a pass; several requests while one is under way give one more."""
        self._wake.set()

    async def run(self) -> None:
        """Make passes until the Canary is deleted."""
        self.wake()
        pause: float | None = None
        while True:
            await self._sleep(pause)
            canary = self._cache.get(CANARIES, self.name)
            if canary is None:
                return
            pause = await self._pass(canary)

    async def _sleep(self, pause: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wake.wait()
        self._wake.clear()

    async def _pass(self, canary: JSON) -> float | None:
        """Make one pass; return the seconds until the next one is due, None for when something moves."""
        try:
            decision = decide(self._cache.world(canary), canary, self._clock())
            self._log_row(canary, decision)
            await self._writer.carry_out(canary, decision)
        except Conflict:
            return AFTER_CONFLICT
        except KubeError as error:
            if isinstance(error, Invalid):
                await self._say_invalid(canary, error)
            return self._backoff()
        except Exception:  # noqa: BLE001 - a Canary that cannot be understood must not stop the others
            self._log.exception("pass failed", canary=self.name)
            return self._backoff()
        self._failures = 0
        if not decision.writes and decision.status is None:
            self._straight = 0
            return decision.requeue_after
        self._straight += 1
        if self._straight > MAX_STRAIGHT:
            self._log.error("not settling", canary=self.name, row=decision.row)
            self._straight = 0
            return LONGEST_RETRY
        return 0.0  # what was written is in the cache: go on at once

    def _backoff(self) -> float:
        self._failures += 1
        return float(min(FIRST_RETRY * 2 ** min(self._failures - 1, 10), LONGEST_RETRY))

    def _log_row(self, canary: JSON, decision: Decision) -> None:
        phase = (canary.get("status") or {}).get("phase") or ""
        busy = bool(decision.writes) or decision.status is not None
        if busy or decision.row != self._last_row:
            self._log.info("pass", canary=self.name, phase=phase, row=decision.row)
        self._last_row = decision.row

    async def _say_invalid(self, canary: JSON, error: Invalid) -> None:
        text = f"The API server refuses a write: {error.message}"
        await self._writer.note(canary, Note("Warning", text, f"invalid|{error.message}"))
