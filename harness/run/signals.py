"""SIGINT and SIGTERM: the first one ends the drills in an orderly way, the next ones say so."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

_T = TypeVar("_T")


@dataclass(slots=True)
class Stop:
    """Set once a signal came; a drill races against it."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    signal_name: str = ""


async def unless_stopped(stop: Stop, work: Coroutine[None, None, _T]) -> _T | None:
    """Return what `work` gives; None when a signal came first, once `work` was cancelled and has cleaned up."""
    task = asyncio.create_task(work)
    signalled = asyncio.create_task(stop.event.wait())
    try:
        await asyncio.wait((task, signalled), return_when=asyncio.FIRST_COMPLETED)
    finally:
        signalled.cancel()
        if not task.done():
            task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        if not stop.event.is_set():
            raise
        return None


@contextmanager
def handled(stop: Stop, say: Callable[[str], None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM of the running loop for as long as the block lasts."""
    loop = asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        if stop.event.is_set():
            say(
                f"{number.name} again: still removing what the run made; `drill sweep` would finish it after a kill."
            )
            return
        stop.signal_name = number.name
        say(f"{number.name}: ending the drills, then removing what they made.")
        stop.event.set()

    watched = (signal.SIGINT, signal.SIGTERM)
    for number in watched:
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in watched:
            loop.remove_signal_handler(number)
