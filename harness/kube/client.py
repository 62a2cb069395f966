"""The one client of an API server: raw JSON in, raw JSON out.

Objects are never parsed into models, so that a field this harness knows nothing about survives
every read and write.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import urlencode

from harness.kube import config
from harness.kube.decode import decode
from harness.kube.errors import (
    ApiError,
    Forbidden,
    Gone,
    NotFound,
    ServerError,
    Unauthorized,
    Unreachable,
    from_answer,
)
from harness.kube.retry import Budget, repeated
from harness.kube.transport import HttpTransport, Request, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

if TYPE_CHECKING:
    # Inside the class, `list` is its method.
    Objects = list[JSON]
    Shape = Callable[[JSON], JSON]
    Types = list[Resource]

READING_ROLES: Final = 20.0
"""Seconds that an API server which was away may take to read its roles; on a busy machine it takes some."""
PAGE: Final = 500
"""Objects per page of a list; what kubectl asks for, too."""
PatchKind = Literal["merge", "json", "strategic"]
_PATCH_TYPES: Final[Mapping[str, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_APPLY_TYPE: Final = "application/apply-patch+yaml"
_METADATA_LIST: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
_BAD: Final = 400


class KubeClient:
    """Requests to one API server.

    Every method raises a subclass of ApiError for a refusal and Unreachable when there is no
    answer; both only after the retries of `Budget`, and saying what was seen last.
    """

    def __init__(
        self, transport: Transport, *, user_agent: str, budget: Budget | None = None
    ) -> None:
        self._transport = transport
        self._user_agent = user_agent
        self.budget = budget or Budget()
        self._away = -math.inf
        """When the server last gave no answer, or said that it cannot: the loop's time."""

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path,
        context: str | None = None,
        *,
        user_agent: str,
        transport: Transport | None = None,
        budget: Budget | None = None,
    ) -> KubeClient:
        """Return a client for a context of a kubeconfig; see `harness.kube.config.load`.

        With `transport` the file is not read. Sends nothing yet. Raises ConfigError.
        """
        if transport is None:
            transport = HttpTransport(await config.load(kubeconfig, context))
        return cls(transport, user_agent=user_agent, budget=budget)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    async def get(self, res: Resource, name: str, namespace: str | None = None) -> JSON:
        """Return one object. Raises NotFound."""
        return await self.raw("GET", res.path(namespace, name))

    async def list(
        self,
        res: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        shape: Shape | None = None,
    ) -> tuple[Objects, str]:
        """Return all objects of a type with apiVersion and kind, and the list's resourceVersion.

        Without `namespace` those of all namespaces. With `metadata_only` they hold only
        apiVersion, kind and metadata. `shape` is applied to each as it comes, so that a long list
        never is in memory as a whole with what the caller does not keep.
        """
        params = {"labelSelector": label_selector, "fieldSelector": field_selector}
        accept = _METADATA_LIST if metadata_only else "application/json"
        path = res.path(namespace)
        try:
            return await self._pages(res, path, {**params, "limit": str(PAGE)}, accept, shape)
        except Gone:
            # The list was compacted away between two pages: take it in one piece.
            return await self._pages(res, path, params, accept, shape)

    async def create(
        self, res: Resource, obj: JSON, namespace: str | None = None, *, field_manager: str
    ) -> JSON:
        """Create an object and return it as stored. Raises AlreadyExists (a Conflict)."""
        params = {"fieldManager": field_manager}
        return await self.raw("POST", res.path(_namespace(obj, namespace)), params, obj)

    async def apply(
        self,
        res: Resource,
        obj: JSON,
        namespace: str | None = None,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
    ) -> JSON:
        """Server-side apply; return the object as stored.

        Raises Conflict when another manager owns a field of it and `force` is not set.
        """
        params = {"fieldManager": field_manager, "force": "true" if force else "false"}
        path = res.path(_namespace(obj, namespace), obj["metadata"]["name"], subresource)
        full = {"apiVersion": res.api_version, "kind": res.kind, **obj}
        return await self.raw("PATCH", path, params, full, content_type=_APPLY_TYPE)

    async def patch(
        self,
        res: Resource,
        name: str,
        namespace: str | None,
        patch: Any,
        *,
        field_manager: str,
        subresource: str | None = None,
        kind: PatchKind = "merge",
    ) -> JSON:
        """Patch an object and return it as stored.

        A JSON patch is not repeated after an answer that got lost: it may not be idempotent.
        """
        path = res.path(namespace, name, subresource)
        params = {"fieldManager": field_manager}
        return await self.raw("PATCH", path, params, patch, content_type=_PATCH_TYPES[kind])

    async def replace(
        self,
        res: Resource,
        obj: JSON,
        namespace: str | None = None,
        *,
        field_manager: str,
        subresource: str | None = None,
    ) -> JSON:
        """Replace an object; Conflict when its resourceVersion is no longer the present one."""
        path = res.path(_namespace(obj, namespace), obj["metadata"]["name"], subresource)
        return await self.raw("PUT", path, {"fieldManager": field_manager}, obj)

    async def delete(
        self,
        res: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        version: str | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> JSON:
        """Delete an object; return it, or a Status, as the server answers.

        With `uid` only that very object: Conflict when another one has taken its name. With `version`
        only in that state: Conflict when it was changed since. Raises NotFound when there is none.
        """
        body: JSON = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        wanted = {"uid": uid, "resourceVersion": version}
        if only := {key: value for key, value in wanted.items() if value}:
            body["preconditions"] = only
        return await self.raw("DELETE", res.path(namespace, name), None, body)

    async def raw(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> JSON:
        """Send any request and return its JSON answer; an empty answer is `{}`."""
        text = await self.text(method, path, params, body, content_type=content_type, accept=accept)
        try:
            answer = decode(text or "{}")
        except ValueError as error:
            shown = " ".join(text.split())[:200]
            raise ApiError(
                200, "NotJson", f"not an API server's answer: {shown}", request=f"{method} {path}"
            ) from error
        return answer if isinstance(answer, dict) else {"items": answer}

    async def text(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "*/*",
    ) -> str:
        """Send any request and return its answer as text, e.g. `/readyz` or a pod's log."""
        request = self._request(method, path, params, body, content_type, accept)

        async def send() -> str:
            async with self._answered(request) as response:
                body: bytes = await response.read()
                return body.decode("utf-8", "replace")

        idempotent = _idempotent(request)
        return await repeated(
            send, idempotent=idempotent, budget=self.budget, passing=self.is_passing
        )

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        silence: float,
        accept: str = "application/json",
    ) -> AsyncIterator[AsyncIterator[JSON]]:
        """Open a watch, or follow a log of JSON lines; within the context its events, or lines, come as JSON objects.

        Not repeated here (see `harness.kube.watch`). Raises Unreachable after `silence` seconds
        without a byte, and from the iterator when the connection breaks off.
        """
        request = self._request("GET", path, params, accept=accept, limit=None, silence=silence)
        async with self._answered(request) as response:
            yield self._noted(_lines(response.chunks()))

    @contextlib.asynccontextmanager
    async def follow(
        self, path: str, params: Mapping[str, str], *, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a text that grows, such as a pod's log; within the context its lines come, without their ends.

        Not repeated here. Raises Unreachable after `silence` seconds without a byte, and from the iterator when the
        connection breaks off.
        """
        request = self._request("GET", path, params, accept="*/*", limit=None, silence=silence)
        async with self._answered(request) as response:
            yield _cut(response.chunks())

    async def discover(self) -> Types:
        """Return every type that can be listed, each in one version, without subresources.

        A group that a broken aggregated API serves is left out;
        `harness.kube.discovery.discover` names those.
        """
        from harness.kube import discovery

        return list((await discovery.discover(self)).resources)

    async def version(self) -> str:
        """Return the version of the API server, e.g. `v1.35.4`."""
        return str((await self.raw("GET", "/version")).get("gitVersion", ""))

    async def exists(self, res: Resource, name: str, namespace: str | None = None) -> bool:
        """Return whether an object exists."""
        try:
            await self.get(res, name, namespace)
        except NotFound:
            return False
        return True

    def is_passing(self, error: BaseException) -> bool:
        """Whether a refusal is one that passes: of an API server that was away a moment ago, and has not read its roles yet.

        Until it has, it refuses everything to everybody whose rights are in a role; nothing was done then.
        """
        away = asyncio.get_running_loop().time() - self._away
        return isinstance(error, Forbidden) and away < READING_ROLES

    async def _noted(self, events: AsyncIterator[JSON]) -> AsyncIterator[JSON]:
        """Pass events on, and note when the connection breaks off."""
        try:
            async for event in events:
                yield event
        except Unreachable:
            self._away = asyncio.get_running_loop().time()
            raise

    def _request(  # noqa: PLR0917 - what a request consists of
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        **limits: Any,
    ) -> Request:
        query = urlencode({k: v for k, v in (params or {}).items() if v})
        headers = {"User-Agent": self._user_agent, "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        return Request(method, f"{path}?{query}" if query else path, headers, body, **limits)

    @contextlib.asynccontextmanager
    async def _answered(self, request: Request) -> AsyncIterator[Any]:
        """Open `request`; a refusal is raised, after new credentials were tried for a 401."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._opened(request))
            except Unauthorized:
                if not await self._transport.renew():
                    raise
                response = await stack.enter_async_context(self._opened(request))
            yield response

    @contextlib.asynccontextmanager
    async def _opened(self, request: Request) -> AsyncIterator[Any]:
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._transport.open(request))
                if response.status >= _BAD:
                    what = f"{request.method} {request.path.partition('?')[0]}"
                    body = await response.read()
                    raise from_answer(response.status, body, response.headers, request=what)
            except (Unreachable, ServerError):
                self._away = asyncio.get_running_loop().time()
                raise
            yield response

    async def _pages(
        self,
        res: Resource,
        path: str,
        params: Mapping[str, str],
        accept: str,
        shape: Shape | None,
    ) -> tuple[Objects, str]:
        items: Objects = []
        token = ""
        while True:
            page = await self.raw("GET", path, {**params, "continue": token}, accept=accept)
            found = _typed(page.get("items") or (), res)
            items += found if shape is None else map(shape, found)
            metadata = page.get("metadata") or {}
            token = metadata.get("continue") or ""
            if not token:
                return items, str(metadata.get("resourceVersion", ""))
            await asyncio.sleep(0)


def _typed(items: Iterable[JSON], res: Resource) -> list[JSON]:
    # Items of a list come without apiVersion and kind, those of a metadata list with its own.
    return [{**item, "apiVersion": res.api_version, "kind": res.kind} for item in items]


def _namespace(obj: JSON, namespace: str | None) -> str | None:
    return namespace or obj["metadata"].get("namespace")


def _idempotent(request: Request) -> bool:
    kind = request.headers.get("Content-Type")
    return request.method != "POST" and kind != _PATCH_TYPES["json"]


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[JSON]:
    """Yield one JSON object per line of a body."""
    async for line in _cut(chunks):
        if line.strip():
            yield decode(line)


async def _cut(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the whole lines of a body that comes cut anywhere, of any length, without their ends."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            parts.append(end)
            line = b"".join(parts)
            parts.clear()
            yield line
        if rest:
            parts.append(rest)
