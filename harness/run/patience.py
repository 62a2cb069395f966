"""Waiting for an API server that is away: what ends a drill in an orderly way is not given up because of a restart."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from harness.kube.errors import ServerError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")
PATIENCE: Final = 120.0
"""Seconds; a control plane that is restarted or replaced is back in one minute, and a dead one would not be back in ten."""
_AGAIN: Final = 1.0
AWAY: Final = (Unreachable, ServerError)


async def patiently(act: Callable[[], Awaitable[_T]], seconds: float = PATIENCE) -> _T:
    """Return what `act()` returns; do it again, from its beginning, while the server is away, for that long.

    A client tries each request for half a minute itself. Raises what the last attempt raised.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return await act()
        except AWAY:
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(_AGAIN)
