"""Blocking work for a coroutine: in a thread that is told to stop, and waited for, when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")


async def in_thread(work: Callable[[threading.Event], _T]) -> _T:
    """Run `work(cancelled)` in a thread and return its result; what it raises is raised.

    When the caller is cancelled, `cancelled` is set, and the thread waited for: it cannot be interrupted, and must not go on alone.
    """
    cancelled = threading.Event()
    return await to_the_end(asyncio.to_thread(work, cancelled), cancelled)


async def to_the_end(work: Awaitable[_T], cancelled: threading.Event | None = None) -> _T:
    """Wait for work in a thread to end even when this task is cancelled, and only then pass that on."""
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            interrupted = error
            if cancelled is not None:
                cancelled.set()
        except Exception:  # noqa: BLE001, S110 - it is the task's, and raised below
            pass
    if interrupted is not None:
        task.exception()
        raise interrupted
    return task.result()
