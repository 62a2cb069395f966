"""Virtual time for tests: an event loop that never sleeps, it moves its clock instead."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
TICK: Final = 1e-9
"""Seconds by which time moves at least."""


class _Selector(selectors.DefaultSelector):
    """Looks for input without waiting; time that would pass is added to the loop's clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            # Nothing is scheduled: only another thread could still wake the loop.
            return super().select(5.0) or self._stuck()
        self.now += max(timeout, 0.0)
        return ready

    @staticmethod
    def _stuck() -> list[tuple[selectors.SelectorKey, int]]:
        msg = "virtual time: every task waits for something that no timer will bring"
        raise RuntimeError(msg)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` starts at 0 and jumps to the next timer when all tasks wait."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a call, at the earliest a tick from now: a real clock moves on, and who sets a timer anew until it is late enough gets there."""
        return super().call_at(max(when, self.time() + TICK), callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, _T]) -> _T:
    """Run `main` like `asyncio.run`, on virtual time.

    `asyncio.sleep(3600)` takes no time at all, and happens in order with every other timer.
    Raises RuntimeError when everything waits and no timer is left.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
