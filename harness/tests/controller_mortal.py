"""A controller on a real API server that is killed right after its k-th write, and started again.

Killed means: the write has reached the server, its answer never reaches the controller, and nothing it does afterwards reaches anybody.
That is what SIGKILL does, but it can be aimed at every single write.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.options import Options
from harness.controller.shell import log as logs
from harness.controller.shell.engine import Engine
from harness.kube import config
from harness.kube.client import KubeClient
from harness.kube.transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from harness.kube.transport import Request, Response, Transport

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
REFUSED = 400


@dataclass
class Life:
    """How many writes a controller has left; None: it is immortal."""

    left: int | None = None
    writes: int = 0

    def __post_init__(self) -> None:
        self.over = asyncio.Event()

    def wrote(self) -> None:
        """Count a write that the server has carried out."""
        self.writes += 1
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.over.set()


class Mortal:
    """A transport that ends with the life of its controller."""

    def __init__(self, inner: Transport, life: Life) -> None:
        self._inner = inner
        self._life = life

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Response]:
        await self._alive()
        async with self._inner.open(request) as response:
            if request.method in WRITES and response.status < REFUSED:
                self._life.wrote()
            await self._alive()
            yield response

    async def renew(self) -> bool:
        return await self._inner.renew()

    async def close(self) -> None:
        await self._inner.close()

    async def _alive(self) -> None:
        if self._life.over.is_set():
            await asyncio.Event().wait()  # the dead do nothing, until they are taken away


async def controlled(kubeconfig: Path, context: str | None, namespace: str, life: Life) -> None:
    """Run a controller for a namespace until cancelled; killed at the end of its life, another one takes over, which is immortal."""
    while True:
        transport = Mortal(HttpTransport(await config.load(kubeconfig, context)), life)
        client = KubeClient(transport, user_agent="rollout-drill/test")
        engine = Engine(client, Options(namespace), logs.to(io.StringIO(), "error"), time.time)
        running = asyncio.create_task(engine.run())
        over = asyncio.create_task(life.over.wait())
        try:
            await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
        finally:
            over.cancel()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await client.close()
        life = Life(writes=life.writes)
