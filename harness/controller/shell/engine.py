"""The running controller: one watch per kind, the cache they feed, and the workers."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import line
from harness.controller.core.needs import optional
from harness.controller.shell.alerting import Alerting
from harness.controller.shell.cache import CANARIES, Cache
from harness.controller.shell.calls import Calls
from harness.controller.shell.fence_field import FenceField
from harness.controller.shell.kinds import ALWAYS, served
from harness.controller.shell.line import Line
from harness.controller.shell.meter import Meter, Turns
from harness.controller.shell.reader import Reader
from harness.controller.shell.schema import Schema
from harness.controller.shell.worker import Tools, Worker
from harness.controller.shell.writer import Writer
from harness.kube.errors import Forbidden, KubeError, NotFound
from harness.kube.watch import Listed, WatchEvent, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.controller.core.decision import JSON, Note
    from harness.controller.options import Options
    from harness.kube.client import KubeClient

FIRST_RETRY: Final = 0.2
LONGEST_RETRY: Final = 5.0
"""Seconds between attempts to watch a kind that cannot be watched (CRD or roles missing, server away)."""
ABSENT_RETRY: Final = 30.0
"""The same for a kind that only some Canaries need, and that is not there."""
SHARED_RETRY: Final = 300.0
"""The same for configs that may not be read: everything works without them, and it is probably meant."""


class Engine:
    """Everything for one namespace. `run()` ends only when it is cancelled."""

    def __init__(
        self,
        client: KubeClient,
        options: Options,
        log: Any,
        clock: Callable[[], float],
        *,
        meter: Meter | None = None,
    ) -> None:
        self.cache = Cache(configs=options.config_tracking, policy=options.policy)
        self.ready = asyncio.Event()
        """Set when every kind that is always watched has been listed once."""
        self._client = client
        self._namespace = options.namespace
        self._resources = served(options.api_group)
        canaries = self._resources[CANARIES]
        self._log = log
        meter = meter or Meter()
        self._calls = Calls(
            client,
            log,
            clock,
            metrics_server=options.metrics_server,
            metrics_rate=options.metrics_rate,
            metrics_burst=options.metrics_burst,
            meter=meter,
            api_group=options.api_group,
        )
        self._alerting = Alerting(
            client,
            log,
            clock,
            cluster_name=options.cluster_name,
            event_webhook=options.event_webhook,
            api_group=options.api_group,
        )
        self._fence_field = FenceField(
            client,
            self._namespace,
            self.cache,
            log,
            self._wake_all,
            meter=meter,
            canaries=canaries,
        )
        self._schema = Schema(client, self._namespace, log, canaries=canaries)
        self._writer = Writer(
            client,
            self._namespace,
            self.cache,
            log,
            clock,
            resources=self._resources,
            saw_status=self._fence_field.saw,
            tell=self._tell,
        )
        limit = line.limit_of(options.policy)
        self._line = None if limit is None else Line(*limit, self._call)
        if self._line is not None:
            meter.line(self._namespace, self._line)
        self._tools = Tools(
            cache=self.cache,
            writer=self._writer,
            reader=Reader(client, self._namespace, log, canaries=canaries),
            calls=self._calls,
            fence_field=self._fence_field,
            schema=self._schema,
            meter=meter,
            turns=Turns(options.workers, meter),
            line=self._line,
            log=log,
            clock=clock,
        )
        self._workers: dict[str, Worker] = {}
        self._watched: set[str] = set()
        self.unsynced = set(ALWAYS)
        """Kinds that are always watched and have not been listed yet."""

    async def run(self) -> None:
        """Watch and work. Cancelling ends every task before it returns.

        Raises what a watch did not expect: better to end loudly and be started again than to go on blind.
        """
        async with self._calls, self._alerting:
            try:
                async with asyncio.TaskGroup() as group:
                    self._group = group
                    for plural in ALWAYS:
                        self._begin(plural)
                    group.create_task(self._fence_field.watch(), name="fence field")
                    group.create_task(self._schema.look(), name="schema")
            finally:
                self._workers.clear()

    def _tell(self, canary: JSON, note: Note) -> None:
        self._alerting.tell(canary, note)

    def _begin(self, plural: str) -> None:
        if plural not in self._watched:
            self._watched.add(plural)
            self._group.create_task(self._follow(plural), name=f"watch {plural}")

    async def _follow(self, plural: str) -> None:
        failures = 0
        resource = self._resources[plural]
        longest, said = LONGEST_RETRY, ""
        while True:
            try:
                following = watch(
                    self._client,
                    resource,
                    self._namespace,
                    shape=partial(self.cache.shape, plural),
                )
                async with aclosing(following) as events:
                    async for event in events:
                        failures, longest, said = 0, LONGEST_RETRY, ""
                        await self._take(plural, event)
            except KubeError as error:
                told, said = said, str(error)
                lasting = isinstance(error, NotFound | Forbidden)
                if not lasting or told != said:
                    self._writer.log_refusal(error, "watch", resource.path(self._namespace))
                if lasting and plural not in ALWAYS:
                    if plural not in self.cache.wanted():
                        self.cache.abandon(plural)
                        self._watched.discard(plural)
                        return
                    longest = SHARED_RETRY if optional(plural) else ABSENT_RETRY
                    why = "its CRD is not installed" if isinstance(error, NotFound) else "forbidden"
                    self._wake(self.cache.cannot(plural, f"{resource.label}: {why}"))
                    self._begin_each(self.cache.all_due())
            failures += 1
            await asyncio.sleep(min(FIRST_RETRY * 2 ** min(failures - 1, 20), longest))

    async def _take(self, plural: str, event: WatchEvent) -> None:
        if isinstance(event, Listed):
            self.cache.replace(plural, event.items)
            if plural == CANARIES and self._line is not None:
                self._line.load(event.items)
            self._begin_each(self.cache.all_due())
            await self._synced(plural)
            self._wake_all()
        elif event.type == "DELETED":
            concerned = self.cache.remove(plural, event.object)
            self._told(plural, event.object)
            self._wake(concerned)
        else:
            concerned = self.cache.put(plural, event.object)
            if concerned:
                self._told(plural, event.object)
            if plural == CANARIES:
                self._begin_each(self.cache.due(event.object))
            self._wake(concerned)

    def _told(self, plural: str, obj: JSON) -> None:
        """Tell the line of a Canary that has changed, by what is known of it now."""
        if plural != CANARIES or self._line is None:
            return
        name = str(obj["metadata"]["name"])
        canary = self.cache.get(CANARIES, name)
        if canary is None:
            self._line.gone(name)
        else:
            self._line.saw(canary)

    def _call(self, name: str) -> bool:
        """Wake one whose turn may have come. False where nothing can be decided about it now."""
        if not self.ready.is_set():
            return True  # everybody is woken when it is
        canary = self.cache.get(CANARIES, name)
        if canary is None or self.cache.missing(canary):
            return False
        self._wake({name})
        return True

    def _begin_each(self, kinds: Iterable[str]) -> None:
        """Begin to watch the kinds that a Canary needs and nobody needed before."""
        for plural in sorted(set(kinds) - self._watched):
            self._begin(plural)

    async def _synced(self, plural: str) -> None:
        """Note that a kind is listed; with the last one the passes may begin."""
        self.unsynced.discard(plural)
        if self.unsynced or self.ready.is_set():
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
            canary = self.cache.get(CANARIES, name)
            if canary is not None and self.cache.missing(canary):
                continue  # the list of what it needs is on its way, and wakes it
            if worker is not None:
                worker.wake()
            elif canary is not None:
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
