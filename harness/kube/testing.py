"""An API server in memory, for tests of everything that talks to one.

    cluster = FakeCluster()
    cluster.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}})
    client = cluster.client()                      # a KubeClient whose transport is the cluster
    ...
    cluster.break_watches()                        # connections break; what follows resumes them
    cluster.expire_watches()                       # 410: every watch must list again
    cluster.fail_next(503, times=2)                # the next two requests are refused
    cluster.requests                               # what was asked, as `Asked`

It behaves like the real one in what our code depends on: resourceVersions, generation, the status
subresource, preconditions, finalizers, owners, field managers, watches that resume, bookmarks and
expiry. It does not validate, default, schedule or run anything. With `run_virtual` (the clock of
`harness.kube.virtual_time`) no test has to wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from harness.kube.client import KubeClient
from harness.kube.errors import Unreachable
from harness.kube.fake_server import Server
from harness.kube.fake_storage import Refusal
from harness.kube.retry import Budget
from harness.kube.virtual_time import run_virtual

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from harness.kube.resource import Resource
    from harness.kube.transport import Request
    from harness.model.timeline import JSON

__all__ = ["Asked", "FakeCluster", "run_virtual"]

_METHODS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that arrived. `verb` is that of RBAC: get, list, watch, create, update, patch, delete."""

    verb: str
    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Failure:
    status: int
    reason: str
    message: str
    times: int
    headers: Mapping[str, str]
    match: Callable[[Asked], bool]


@dataclass(slots=True)
class _Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None

    async def read(self) -> bytes:
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.stream is None:
            yield self.body
            return
        async for chunk in self.stream:
            yield chunk


class FakeCluster:
    """See the module. `cluster.transport` is a `harness.kube.transport.Transport`.

    `resources` are served besides `harness.kube.resource.KNOWN`.
    """

    def __init__(self, *resources: Resource) -> None:
        self.server = Server(resources)
        self.requests: list[Asked] = []
        self.transport = self
        self.closed = 0
        """How many watch connections the client side has closed."""
        self._failures: list[_Failure] = []
        self._forbidden: set[tuple[str, str]] = set()

    def client(self, budget: Budget | None = None) -> KubeClient:
        """Return a client of this cluster."""
        return KubeClient(self, user_agent="rollout-drill/test", budget=budget or Budget())

    # ---- what a test does to the cluster, past every check of the API

    def add(self, obj: JSON) -> JSON:
        """Store an object as it is, status included, and return it with uid and version."""
        return self.server.put(obj)

    def update(self, kind: str, name: str, namespace: str | None, change: JSON) -> JSON:
        """Merge `change` into an object (status included) as some controller would."""
        return self.server.merge(kind, name, namespace, change)

    def remove(self, kind: str, name: str, namespace: str | None = None) -> None:
        """Remove an object at once, whatever its finalizers."""
        self.server.drop(kind, name, namespace)

    def get(self, kind: str, name: str, namespace: str | None = None) -> JSON | None:
        """Return an object, or None."""
        return self.server.find(kind, name, namespace)

    def objects(self, kind: str, namespace: str | None = None) -> list[JSON]:
        """Return the objects of a kind, by name."""
        return self.server.all(kind, namespace)

    def prune(self, kind: str, section: str, name: str) -> None:
        """Let a kind's schema not know a field: it is dropped from what is stored, and from every later write."""
        self.server.unknown.setdefault(kind, set()).add((section, name))
        for obj in self.objects(kind):
            self.server.put(obj)

    def unprune(self, kind: str) -> None:
        """Let a kind's schema know all fields from now on."""
        self.server.unknown.pop(kind, None)

    # ---- faults

    def break_watches(self) -> None:
        """Break every watch connection off, as a reset would."""
        self.server.break_off()

    def end_watches(self) -> None:
        """End every watch connection as the server does when its time is up."""
        self.server.end()

    def expire_watches(self) -> None:
        """Forget all earlier versions: open watches get 410 as an event, later ones as status."""
        self.server.expire()

    def forget(self) -> None:
        """Forget all earlier versions without touching open connections."""
        self.server.version += 1
        self.server.oldest = self.server.version

    def silence_watches(self) -> None:
        """Let every open watch connection stay open and deliver nothing any more.

        New connections work: a route that died, noticed by nobody but the client's own limit.
        """
        self.server.silence()

    def bookmark(self) -> None:
        """Send a bookmark with the present version on every watch."""
        self.server.bookmark()

    def fail_next(
        self,
        status: int,
        reason: str = "",
        message: str = "injected",
        *,
        times: int = 1,
        headers: Mapping[str, str] | None = None,
        match: Callable[[Asked], bool] = lambda _: True,
    ) -> None:
        """Refuse the next `times` requests that `match` with `status`.

        Status 0 refuses the connection, -1 breaks it after the request took effect.
        """
        self._failures.append(
            _Failure(status, reason or str(status), message, times, headers or {}, match)
        )

    def forbid(self, verb: str, plural: str) -> None:
        """Answer 403 to `verb` on a type from now on."""
        self._forbidden.add((verb, plural))

    def break_group(self, group: str) -> None:
        """Let a group answer discovery with 503, as behind a broken aggregated API."""
        self.server.broken_groups.add(group)

    def asked(self, verb: str, plural: str = "") -> list[Asked]:
        """Return the requests of one verb, and of one type if given."""
        return [
            a for a in self.requests if a.verb == verb and (not plural or f"/{plural}" in a.path)
        ]

    # ---- the transport

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[_Answer]:
        """Answer one request (see `Transport.open`)."""
        await asyncio.sleep(0)
        asked = self._record(request)
        failure = next((f for f in self._failures if f.times and f.match(asked)), None)
        if failure is not None:
            failure.times -= 1
        if failure is not None and failure.status >= 0:
            yield self._failed(failure)
            return
        answer = self._answer(asked, request)
        if failure is not None:
            msg = "the connection to the fake cluster broke: reset"
            raise Unreachable(msg)
        try:
            yield answer
        finally:
            if answer.stream is not None:
                self.closed += 1
                await answer.stream.aclose()  # type: ignore[attr-defined] # a generator

    async def renew(self) -> bool:
        """There are no credentials."""
        return False

    async def close(self) -> None:
        """There is nothing to close."""

    def _record(self, request: Request) -> Asked:
        url = urlsplit(request.path)
        params = dict(parse_qsl(url.query))
        verb = _METHODS.get(request.method, request.method.lower())
        if verb == "get" and self.server.names_collection(unquote(url.path)):
            verb = "watch" if params.get("watch") == "true" else "list"
        path = unquote(url.path)
        asked = Asked(verb, request.method, path, params, request.body, request.headers)
        self.requests.append(asked)
        return asked

    def _failed(self, failure: _Failure) -> _Answer:
        if failure.status == 0:
            msg = "no connection to the fake cluster: refused"
            raise Unreachable(msg, sent=False)
        refusal = Refusal(failure.status, failure.reason, failure.message)
        return _Answer(failure.status, _dump(refusal.status_object()), failure.headers)

    def _answer(self, asked: Asked, request: Request) -> _Answer:
        try:
            plural = self.server.plural(asked.path)
            if (asked.verb, plural) in self._forbidden:
                message = f"{plural} is forbidden: cannot {asked.verb} resource {plural!r}"
                raise Refusal(403, "Forbidden", message)  # noqa: TRY301
            if asked.verb == "watch":
                return _Answer(200, b"", stream=self._watch(asked, request.silence))
            answer = self.server.handle(asked.method, asked.path, asked.params, request)
        except Refusal as refusal:
            return _Answer(refusal.status, _dump(refusal.status_object()))
        return _Answer(201 if asked.verb == "create" else 200, _dump(answer))

    def _watch(self, asked: Asked, silence: float) -> AsyncIterator[bytes]:
        place = self.server.place(asked.path)
        subscription = self.server.subscribe(place.resource, place.namespace, asked.params)
        seconds = float(asked.params.get("timeoutSeconds", "3600"))

        async def lines() -> AsyncIterator[bytes]:
            loop = asyncio.get_running_loop()
            closing = loop.time() + seconds
            try:
                while True:
                    left = closing - loop.time()
                    wait = silence if subscription.dead else min(left, silence)
                    try:
                        async with asyncio.timeout(wait):
                            line = await subscription.queue.get()
                    except TimeoutError:
                        if not subscription.dead and left <= silence:
                            yield self.server.bookmark_line(subscription)
                            return
                        msg = f"no answer from the fake cluster in time: {silence} s of silence"
                        raise Unreachable(msg) from None
                    if line is None:
                        return
                    if isinstance(line, Exception):
                        raise line
                    yield line
            finally:
                self.server.unsubscribe(subscription)

        return lines()


def _dump(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()
