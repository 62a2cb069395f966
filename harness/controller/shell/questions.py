"""The calls of one Canary: which are under way, and what has come back (see `core/calls.py`).

A call runs beside the watches. The pass after its answer goes on from there; a call that a pass no longer asks for is given up at once, so
a hook that hangs holds up neither a new revision nor a deletion.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from harness.controller.core.calls import Answer, Call

KEPT: Final = 200
"""Answers that are remembered at most: a gate that stays closed is asked again and again, and only the newest matter."""


class Questions:
    """What one Canary has asked."""

    def __init__(self, ask: Callable[[Call], Awaitable[Answer]], wake: Callable[[], None]) -> None:
        self._ask = ask
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    @property
    def answers(self) -> Mapping[str, Answer]:
        """Return what has come back since the last status write, by key."""
        return dict(self._answers)

    def asked(self, calls: Sequence[Call]) -> None:
        """Start what is asked and not under way, and give up what is no longer asked."""
        keys = {call.key for call in calls}
        for key in [key for key in self._tasks if key not in keys]:
            self._tasks.pop(key).cancel()
        for call in calls:
            if call.key not in self._tasks and call.key not in self._answers:
                self._tasks[call.key] = asyncio.create_task(self._run(call), name=call.name)

    def forget(self) -> None:
        """Drop all answers: the status has been written, and what was counted must not count again."""
        self._answers.clear()

    async def close(self) -> None:
        """Give up everything, and wait until it has ended."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self, call: Call) -> None:
        answer = await self._ask(call)
        if self._tasks.pop(call.key, None) is None:
            return  # given up meanwhile
        self._answers[call.key] = answer
        while len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        self._wake()
