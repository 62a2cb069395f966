"""Watches: what is there, then every change, without polling.

A watch lists, follows from the list's version, and moves that version on with every event and
bookmark. A connection that breaks, ends or falls silent is resumed there, and nothing is lost. Only
when the server no longer keeps that version (410, as HTTP status or as an event) is there a gap:
everything is listed again and delivered as `Listed(gap=True)`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from harness.kube.errors import ApiError, Gone, Unreachable, from_status
from harness.kube.retry import repeatable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON


@dataclass(frozen=True, slots=True)
class Timing:
    """Limits of a watch, in seconds.

    `server`: after this the server ends the connection, with a bookmark shortly before, so that
    the version of a quiet type stays young enough to be resumed. `silence`: a connection without a
    byte for this long is dead; it must exceed `server`, since a quiet type sends nothing before its
    bookmark. So a dead connection is noticed within 60 s. `patience`: how long resuming may fail
    before the watch gives up. `longest`: the longest wait between two attempts.
    """

    server: int = 50
    silence: float = 60.0
    patience: float = 60.0
    first: float = 0.05
    longest: float = 5.0


DEFAULT: Final = Timing()
SHORT_LIVED: Final = 1.0
"""A connection that ended sooner, in seconds, and brought nothing counts as a failure."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything there is: once at the start, and again after a gap.

    After a gap (`reason` says why) changes may be missing, from `since` on: the loop's time
    (`asyncio` clock, seconds) when the server was last heard. What is no longer in `items` is gone.
    Such changes lie behind version `after`, up to and with `version`.
    """

    items: list[JSON]
    gap: bool = False
    reason: str = ""
    since: float | None = None
    version: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """One change; a deleted object is in its last state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: JSON


WatchEvent = Listed | Changed


class _Follower:
    """Where a watch stands: the version to resume at, and how its connections fare."""

    def __init__(
        self, client: KubeClient, path: str, params: dict[str, str], timing: Timing
    ) -> None:
        self.client = client
        self.path = path
        self.params = params
        self.timing = timing
        self.version = ""
        self.heard = self.failing_since = _now()
        self.opened: float | None = None
        self.brought = False
        self.failures = 0

    def listed(self, version: str) -> None:
        self.version = version
        self.heard = _now()

    async def connection(self) -> AsyncGenerator[JSON, None]:
        """Yield the events of one connection, bookmarks taken in. Raises Gone, ApiError."""
        params = {
            **self.params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version,
            "timeoutSeconds": str(self.timing.server),
        }
        self.opened, self.brought = None, False
        async with self.client.stream(self.path, params, silence=self.timing.silence) as events:
            self.opened = _now()
            async for event in events:
                obj = event.get("object") or {}
                if event.get("type") == "ERROR":
                    raise from_status(obj, request=f"watch of {self.path}")
                self.heard = _now()
                self.brought = True
                self.failures = 0
                self.version = obj.get("metadata", {}).get("resourceVersion") or self.version
                if event.get("type") != "BOOKMARK":
                    yield event

    def fared(self, problem: Exception | None) -> bool:
        """Return whether the next connection may follow at once, and forget failures if so.

        Only after one that ended as it should: the server's time was up, or it brought something.
        """
        lived = 0.0 if self.opened is None else _now() - self.opened
        good = self.brought or lived >= SHORT_LIVED
        if good and (problem is None or isinstance(problem, Gone)):
            self.failures = 0
        return good and problem is None

    async def pause(self, error: Exception | None) -> None:
        """Wait before the next connection; raise `error` when it has failed for too long."""
        if self.failures == 0:
            self.failing_since = _now()
        self.failures += 1
        asked = error.retry_after if isinstance(error, ApiError) else None
        wait = min(self.timing.first * 2 ** min(self.failures - 1, 20), self.timing.longest)
        wait = max(wait, asked or 0.0)
        spent = _now() - self.failing_since
        if spent + wait > self.timing.patience:
            error = error or Unreachable(f"watch of {self.path}: every connection ends at once")
            error.args = (f"{error} (seen last; failing for {spent:.0f} s)",)
            raise error
        await asyncio.sleep(wait)


async def watch(
    client: KubeClient,
    res: Resource,
    namespace: str | None = None,
    *,
    label_selector: str = "",
    field_selector: str = "",
    timing: Timing = DEFAULT,
    shape: Callable[[JSON], JSON] | None = None,
) -> AsyncGenerator[WatchEvent, None]:
    """Yield `Listed` first, then every `Changed`; never ends by itself. `shape` is applied to what is listed.

    Cancelling it, or closing the generator, closes the connection at once. Raises ApiError for a
    refusal that waiting does not cure (Forbidden, NotFound when the type is not served, …), and
    Unreachable or ServerError after `timing.patience` seconds without success.
    """
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    follower = _Follower(client, res.path(namespace), selectors, timing)
    items, version = await client.list(
        res,
        namespace,
        label_selector=label_selector,
        field_selector=field_selector,
        shape=shape,
    )
    follower.listed(version)
    yield Listed(items, version=version)
    while True:
        problem: Exception | None = None
        try:
            connection = follower.connection()
            try:
                async for event in connection:
                    yield Changed(event["type"], _typed(event["object"], res))
            finally:
                await connection.aclose()
        except Gone as error:
            since, after = follower.heard, follower.version
            items, version = await client.list(
                res,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                shape=shape,
            )
            follower.listed(version)
            yield Listed(
                items, gap=True, reason=error.message, since=since, version=version, after=after
            )
            # Another 410 at once would be a server that forgets faster than we can ask.
            problem = error
        except (ApiError, Unreachable, ValueError) as error:
            # ValueError: a line that is no JSON, cut off by a proxy. It was never delivered.
            passing = repeatable(error, idempotent=True) or client.is_passing(error)
            if not isinstance(error, ValueError) and not passing:
                raise
            problem = error
        if not follower.fared(problem):
            await follower.pause(problem)


def _typed(obj: JSON, res: Resource) -> JSON:
    return {"apiVersion": res.api_version, "kind": res.kind, **obj}


def _now() -> float:
    return asyncio.get_running_loop().time()
