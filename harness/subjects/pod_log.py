"""Follows a Deployment's pod from outside: how it stands, and its log, over restarts and broken connections."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from harness.kube.errors import ApiError, Forbidden, NotFound, Unreachable
from harness.kube.resource import DEPLOYMENT, POD, Resource
from harness.kube.watch import Changed, Listed, watch
from harness.subjects import pod_status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

SILENCE: Final = 3600.0
"""Seconds for which a controller may have nothing to say. A connection that is gone breaks; one to a node that is gone is not noticed."""
AGAIN: Final = 1.0
"""Seconds between two looks for a log that ended, unless the pod changes before."""
FETCHED_WITHIN: Final = 3.0
"""Seconds for the last lines of a pod that is gone."""


class Follower:
    """One Deployment of one pod. `run` until cancelled; `until` waits for something that it may notice."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        *,
        log: Path,
        on_line: Callable[[bytes], None],
        on_exit: Callable[[str], None],
    ) -> None:
        """`name` is the Deployment's, and the value of its pods' label `app.kubernetes.io/name`.

        `on_line` gets each line of the log without its end, `on_exit` how a container ended that nobody of us has ended.
        """
        self.pods: dict[str, JSON] = {}
        """Those that exist, by uid."""
        self.ending = False
        """Whether it is being ended by us, so that an end needs no telling."""
        self.last_end = ""
        """How the last container ended, in words."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._log = log
        self._on_line = on_line
        self._on_exit = on_exit
        self._pulse = asyncio.Event()
        self._refused = ""
        self._broken = ""
        self._told: set[tuple[str, int]] = set()
        self._logs: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start to follow."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Read what is left of the logs, and end."""
        if self._logs:
            await asyncio.wait(self._logs.values(), timeout=FETCHED_WITHIN)
        tasks = [*self._logs.values(), *filter(None, [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()`; look again after every change of a pod and every line of a log."""
        while True:
            self._pulse.clear()
            if holds():
                return
            await self._pulse.wait()

    @property
    def trouble(self) -> str:
        """Why it will not run without somebody's help, in words; empty when it may."""
        for pod in self.pods.values():
            if found := pod_status.trouble(pod):
                return found
        # Its service account is made a moment before it, and may not be seen yet.
        passing = "service account" in self._refused or "forbidden" not in self._refused
        return self._broken or ("" if passing else f"no pod could be made: {self._refused}")

    @property
    def standing(self) -> str:
        """How it stands, in words."""
        if pod := next(iter(self.pods.values()), None):
            return pod_status.standing(pod)
        return f"no pod could be made: {self._refused}" if self._refused else "there is no pod yet"

    # ---- what happens

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(POD, f"app.kubernetes.io/name={self._name}", ""))
                group.create_task(self._follow(DEPLOYMENT, "", f"metadata.name={self._name}"))
        except BaseExceptionGroup as several:
            self._broke(str(several.exceptions[0]))

    def _broke(self, why: str) -> None:
        self._broken = self._broken or why
        self._pulse.set()

    async def _follow(self, resource: Resource, labels: str, fields: str) -> None:
        stream = watch(
            self._client, resource, self._namespace, label_selector=labels, field_selector=fields
        )
        try:
            async for event in stream:
                match event:
                    case Listed(items=items):
                        gone = set(self.pods) - {item["metadata"]["uid"] for item in items}
                        for item in items:
                            self._seen(resource, item)
                        if resource == POD:
                            for uid in gone:
                                self._gone(uid)
                    case Changed(type="DELETED", object=obj) if resource == POD:
                        self._seen(resource, obj)
                        self._gone(obj["metadata"]["uid"])
                    case Changed(object=obj):
                        self._seen(resource, obj)
                self._pulse.set()
        finally:
            await stream.aclose()

    def _seen(self, resource: Resource, obj: JSON) -> None:
        if resource != POD:
            self._refused = pod_status.refused(obj)
            return
        uid = obj["metadata"]["uid"]
        self.pods[uid] = obj
        for number, how in pod_status.ends(obj).items():
            if (uid, number) not in self._told:
                self._told.add((uid, number))
                self._ended(how)
        if pod_status.has_begun(obj) and uid not in self._logs:
            self._logs[uid] = asyncio.create_task(self._read(uid, obj["metadata"]["name"]))

    def _gone(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None and not any(told == uid for told, _ in self._told):
            self._ended(f"pod {pod['metadata']['name']} was deleted")

    def _ended(self, how: str) -> None:
        self.last_end = how
        if not self.ending:
            self._on_exit(how)

    # ---- its log

    async def _read(self, uid: str, name: str) -> None:
        """Read the log of a pod to its end, that of each start of its container."""
        last = ""
        with self._log.open("ab") as sink:
            while True:
                seen = uid in self.pods
                try:
                    async for stamp, line in self._lines(name, last):
                        last = stamp
                        sink.write(line + b"\n")
                        sink.flush()
                        self._on_line(line)
                        self._pulse.set()
                except NotFound:
                    return
                except Forbidden as error:
                    self._broke(f"its log cannot be read: {error}")
                    return
                except (ApiError, Unreachable):
                    pass  # the container waits for its next start, or the connection broke
                if not seen:
                    return  # and that was the last of it
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(AGAIN):
                        await self.until(lambda: uid not in self.pods)

    async def _lines(self, name: str, after: str) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the lines of a log behind a moment, each with its own moment (RFC 3339, of one length)."""
        params = {"follow": "true", "timestamps": "true"}
        if after:
            # The API cuts it to a whole second, so that the first lines may be known already.
            params["sinceTime"] = after
        path = POD.path(self._namespace, name, "log")
        async with self._client.follow(path, params, silence=SILENCE) as lines:
            async for line in lines:
                stamp, _, text = line.partition(b" ")
                moment = stamp.decode("ascii", "replace")
                if moment > after:
                    yield moment, text
