"""The running controller: one watch per kind, the cache they feed, and the workers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harness.controller.shell.cache import CANARIES, DEPLOYMENTS, SERVICES, Cache
from harness.controller.shell.fence_field import FenceField
from harness.controller.shell.reader import Reader
from harness.controller.shell.slim import slim
from harness.controller.shell.worker import AT_ONCE, Tools, Worker
from harness.controller.shell.writer import Writer
from harness.kube.errors import KubeError
from harness.kube.resource import CANARY, DEPLOYMENT, SERVICE
from harness.kube.watch import Listed, WatchEvent, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource

_WATCHED: Final[Mapping[str, Resource]] = {
    CANARIES: CANARY,
    DEPLOYMENTS: DEPLOYMENT,
    SERVICES: SERVICE,
}
FIRST_RETRY: Final = 0.2
LONGEST_RETRY: Final = 5.0
"""Seconds between attempts to watch a kind that cannot be watched (CRD or roles missing, server away)."""


class Engine:
    """Everything for one namespace. `run()` ends only when it is cancelled."""

    def __init__(
        self, client: KubeClient, namespace: str, log: Any, clock: Callable[[], float]
    ) -> None:
        self.cache = Cache()
        self.ready = asyncio.Event()
        """Set when every kind has been listed once."""
        self._client = client
        self._namespace = namespace
        self._log = log
        self._fence_field = FenceField(client, namespace, self.cache, log, self._wake_all)
        self._writer = Writer(
            client, namespace, self.cache, log, clock, saw_status=self._fence_field.saw
        )
        self._tools = Tools(
            cache=self.cache,
            writer=self._writer,
            reader=Reader(client, namespace, log),
            fence_field=self._fence_field,
            turns=asyncio.Semaphore(AT_ONCE),
            log=log,
            clock=clock,
        )
        self._workers: dict[str, Worker] = {}
        self._unsynced = set(_WATCHED)

    async def run(self) -> None:
        """Watch and work. Cancelling ends every task before it returns.

        Raises what a watch did not expect: better to end loudly and be started again than to go on blind.
        """
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for plural in _WATCHED:
                    group.create_task(self._follow(plural), name=f"watch {plural}")
                group.create_task(self._fence_field.watch(), name="fence field")
        finally:
            self._workers.clear()

    async def _follow(self, plural: str) -> None:
        failures = 0
        resource = _WATCHED[plural]
        while True:
            try:
                following = watch(
                    self._client, resource, self._namespace, shape=partial(slim, plural)
                )
                async with aclosing(following) as events:
                    async for event in events:
                        failures = 0
                        await self._take(plural, event)
            except KubeError as error:
                self._writer.log_refusal(error, "watch", resource.path(self._namespace))
            failures += 1
            await asyncio.sleep(min(FIRST_RETRY * 2 ** min(failures - 1, 10), LONGEST_RETRY))

    async def _take(self, plural: str, event: WatchEvent) -> None:
        if isinstance(event, Listed):
            self.cache.replace(plural, event.items)
            await self._synced(plural)
            self._wake_all()
        elif event.type == "DELETED":
            self._wake(self.cache.remove(plural, event.object))
        else:
            self._wake(self.cache.put(plural, event.object))

    async def _synced(self, plural: str) -> None:
        """Note that a kind is listed; with the last one the passes may begin."""
        self._unsynced.discard(plural)
        if self._unsynced or self.ready.is_set():
            return
        await self._fence_field.ask_if_suspect()
        self.ready.set()
        self._log.info("ready", canaries=len(self.cache.names(CANARIES)))

    def _wake_all(self) -> None:
        self._wake(set(self.cache.names(CANARIES)) | set(self._workers))

    def _wake(self, canaries: set[str]) -> None:
        if not self.ready.is_set():
            return  # no pass on half a picture
        for name in canaries:
            worker = self._workers.get(name)
            if worker is not None:
                worker.wake()
            elif self.cache.get(CANARIES, name) is not None:
                self._start(name)

    def _start(self, name: str) -> None:
        worker = Worker(name, self._tools)
        self._workers[name] = worker
        task = self._group.create_task(worker.run(), name=f"canary {name}")
        task.add_done_callback(lambda ended: self._ended(name, ended))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._workers.pop(name, None)
        # It may have been made again between the worker's last look and now.
        again = self.cache.get(CANARIES, name) is not None
        if again and not task.cancelled() and task.exception() is None:
            self._start(name)
