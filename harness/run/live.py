"""The live side of a drill: each observation goes to the file and into the state, and wakes whoever waits."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

from harness.checks.state import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.model.timeline import Header, Observation
    from harness.run.timeline_file import TimelineFile

_LONG_LOOK: Final = 0.005
_LONGEST_BREAK: Final = 0.1
"""Seconds; a condition that holds for a moment only must not be missed."""


class Live:
    """What is known of a running drill right now."""

    def __init__(self, header: Header, file: TimelineFile, began: float) -> None:
        """`began` is the monotonic clock's value that belongs to the header's `started_at`."""
        self.header = header
        self.state = State(header)
        self.observations: list[Observation] = []
        """As they were written: redacted, and anonymised where that was asked for."""
        self._file = file
        self._began = began
        self._pulse = asyncio.Event()

    def now(self) -> float:
        """Return the seconds since the drill's time zero."""
        return time.monotonic() - self._began

    def observe(self, observation: Observation) -> None:
        """Record an observation; the callback of recorder, subject and runner alike."""
        # The verdict works on what was written, so that `drill judge` sees the very same.
        self.observations.append(self._file.append(observation))
        self.state.apply(observation)
        self._pulse.set()

    async def wait_for(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until `holds()`, which asks `state`; look again after every observation. False when `seconds` went by."""
        deadline = time.monotonic() + seconds
        while True:
            # Cleared before looking, so that an observation made meanwhile is not slept through.
            self._pulse.clear()
            began = time.monotonic()
            if holds():
                return True
            # Looking at hundreds of rollouts takes a while: two thirds of the time are left to everything else.
            spent = time.monotonic() - began
            if spent > _LONG_LOOK:
                await asyncio.sleep(min(2 * spent, _LONGEST_BREAK))
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._pulse.wait()
