"""Many requests at the same time, as many as an API server takes with pleasure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

AT_A_TIME: Final = 32
"""Each has a connection, and a handshake costs more than a request."""


async def each(items: Iterable[str], act: Callable[[str], Awaitable[None]]) -> None:
    """Await `act` for every item, `AT_A_TIME` at the same time. The first error ends the others and is raised."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await act(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_A_TIME):
                group.create_task(work())
    except* Exception as several:  # noqa: BLE001 - raised again, alone
        raise several.exceptions[0] from None
