"""The activator's part towards Knative's autoscaler: telling it of requests that wait for a first pod, by a websocket.

Nothing is sent while none wait, and nothing is connected before the first do. The connection then stays, as the real activator's does:
the autoscaler takes one that is closed for an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from harness.clusters.knative.stats import Stat, encode_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.clusters.knative.load import Key, Seconds

EVERY: Final = 1.0
"""Seconds between two statistics, as the real one sends them."""
AGAIN: Final = 1.0
"""Seconds until an autoscaler that is not there is tried again; it is on loopback, and a drill waits for it."""
ANSWERS_WITHIN: Final = 5.0
"""Seconds in which it has to take a connection."""
_POD: Final = "activator"
"""The autoscaler keeps apart who tells it something, by this name."""


class Activator:
    """Tells `autoscaler` (HOST:PORT) what `waiting` returns: requests by revision that no pod takes. `changed` is set by others when that may differ."""

    def __init__(
        self,
        autoscaler: str,
        waiting: Callable[[], Mapping[Key, float]],
        changed: asyncio.Event,
        say: Callable[[str], None],
        *,
        seconds: Seconds,
    ) -> None:
        self._autoscaler = autoscaler
        self._waiting = waiting
        self._changed = changed
        self._say = say
        self._seconds = seconds
        self._away = False
        self._began = time.monotonic()

    async def run(self) -> None:
        """Go on until cancelled, whatever becomes of the autoscaler."""
        async with aiohttp.ClientSession(trust_env=False) as session:
            while True:
                while not self._waiting():
                    await self._change()
                try:
                    async with asyncio.timeout(ANSWERS_WITHIN):
                        socket = await session.ws_connect(f"http://{self._autoscaler}/")
                    async with socket:
                        await self._tell(socket)
                except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
                    self._lost(error)
                    await asyncio.sleep(AGAIN)

    async def _tell(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Tell it of requests whenever some wait. Raises ClientError or OSError when it goes away."""
        # All that it ever says is that it ends; unread, that would be noticed after a statistic has got lost.
        ended = asyncio.create_task(socket.receive())
        try:
            while not ended.done():
                if not (waiting := self._waiting()):
                    await self._change(ended)
                    continue
                if stats := self._stats(waiting):
                    await socket.send_bytes(encode_all(stats))
                    self._found()
                await asyncio.wait({ended}, timeout=EVERY)
            msg = f"it has closed the connection ({socket.close_code})"
            raise ConnectionResetError(msg)
        finally:
            ended.cancel()
            with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError, OSError):
                await ended

    async def _change(self, *others: asyncio.Task[Any]) -> None:
        """Return at the next change, or when one of the others is done."""
        self._changed.clear()
        change = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({change, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()

    def _stats(self, waiting: Mapping[Key, float]) -> list[tuple[str, str, Stat]]:
        uptime, now = time.monotonic() - self._began, int(time.time())
        return [
            (*key, Stat(_POD, number, number, uptime, now))
            for key, number in waiting.items()
            if self._seconds.counts(key, _POD, now)
        ]

    def _lost(self, error: Exception) -> None:
        if not self._waiting():
            return  # nobody misses it
        if not self._away:
            self._say(
                f"the autoscaler at {self._autoscaler} takes no statistics, and is tried again: {error or type(error).__name__}"
            )
        self._away = True

    def _found(self) -> None:
        if self._away:
            self._say(f"the autoscaler at {self._autoscaler} takes statistics again")
        self._away = False
