"""One light watch on the rollout objects, and waiting for what it brings."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from harness.bench.board import Board
from harness.kube.resource import Resource
from harness.kube.watch import Listed, watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.kube.client import KubeClient
    from harness.model.timeline import RolloutKind

TELL_SECONDS: Final = 5.0
"""How often a waiting person is told where things stand."""


class Following:
    """The board, kept up to date."""

    def __init__(self, kind: RolloutKind) -> None:
        self.board = Board(kind)
        self.listed = False
        """Whether the watch has begun: what happens from then on is seen."""
        self._kind = kind
        self._pulse = asyncio.Event()
        self._failed: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """Let every wait end with `error`."""
        self._failed = self._failed or error
        self._pulse.set()

    async def until(
        self,
        holds: Callable[[], bool],
        seconds: float,
        tell: Callable[[], None],
        every: float = TELL_SECONDS,
    ) -> bool:
        """Wait until `holds()`, asked after all that the watch brings and `every` so many seconds; False when `seconds` went by.

        `tell` is called every few seconds. Raises what ended the watch, or was given to `fail`.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        told = clock()
        while True:
            self._pulse.clear()
            if holds():
                return True
            if self._failed is not None:
                raise self._failed
            now = clock()
            if now >= deadline:
                return False
            if now - told >= TELL_SECONDS:
                told = now
                tell()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(deadline, told + TELL_SECONDS, now + every) - now):
                    await self._pulse.wait()

    async def rest(self, seconds: float, calm: float | None = None) -> None:
        """Let `seconds` go by, or fewer when the watch has brought nothing for `calm` seconds. Raises as `until` does."""
        clock = asyncio.get_running_loop().time
        began = clock()

        def over() -> bool:
            return calm is not None and clock() - max(self.board.moved, began) >= calm

        await self.until(over, seconds, lambda: None, calm or seconds)

    @contextlib.asynccontextmanager
    async def watching(self, client: KubeClient, namespace: str) -> AsyncIterator[None]:
        """Follow the rollout objects of a namespace for as long as the block lasts."""
        task = asyncio.create_task(self._follow(client, namespace))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, client: KubeClient, namespace: str) -> None:
        clock = asyncio.get_running_loop().time
        group, _, version = self._kind.api_version.rpartition("/")
        resource = Resource(group, version, self._kind.plural, self._kind.kind)
        try:
            async with contextlib.aclosing(watch(client, resource, namespace)) as events:
                async for event in events:
                    now = clock()
                    if isinstance(event, Listed):
                        self.listed = True
                        if event.gap:
                            self.board.gaps.append(now)
                        for obj in event.items:
                            self.board.take(obj, now)
                    elif event.type != "DELETED":
                        self.board.take(event.object, now)
                    self._pulse.set()
        except Exception as error:  # noqa: BLE001 - raised to whoever waits
            self.fail(error)
