"""The same thing done to many objects, some of them at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

_T = TypeVar("_T")
AT_ONCE: Final = 16
"""Requests under way: enough that 500 take seconds, few enough that the API server still answers everybody else."""


async def together(
    act: Callable[[_T], Awaitable[object]], items: Iterable[_T], at_once: int = AT_ONCE
) -> None:
    """Await `act(item)` for every item, `at_once` at a time, begun in their order.

    Raises what the first of them that fails raises; the others under way are cancelled then, and no further one is begun.
    """
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await act(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(worker())
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
