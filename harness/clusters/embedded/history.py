"""What happened to objects while nobody could watch them, as etcd remembers it.

A new API server, and a changed CRD, answer every watch with 410: their cache begins later than where the watch was, although
nothing is lost. Etcd keeps each change for some minutes, so that the recorder can look up what it missed instead of having to say
that it does not know. Only which object changed at which version is read here; its content comes from the API server.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Final

from harness.clusters.base import Change

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harness.kube.resource import Resource

SECONDS: Final = 15.0
"""For reading it all; it takes some hundredths of one."""
_ANY: Final = base64.b64encode(b"\0").decode()
"""As the first key and as the end of the range: everything."""
_PLACES: Final = {("", "services"): "services/specs", ("", "nodes"): "minions"}
"""Built-in types that are not kept under their plural."""
_BUILT_IN: Final = frozenset({"", "apps", "autoscaling"})
"""Groups of the built-in types that a recorder watches; types of other groups with a dot come from CRDs."""

_OF_CRDS: Final = frozenset({"gateway.networking.k8s.io"})
"""Groups that are named like built-in ones, and come from CRDs all the same."""


async def missed(
    port: int, resource: Resource, namespace: str | None, after: int, until: int
) -> list[Change] | None:
    """Return all changes of a type behind version `after`, up to and with `until`, in order.

    None when etcd does not keep them any more, cannot be asked, or the type's place in it is not known.
    """
    place = prefix(resource, namespace)
    if place is None:
        return None
    if after >= until:
        return []
    import aiohttp

    found: list[Change] = []
    try:
        async with asyncio.timeout(SECONDS):
            async for key, change in _changes(port, after + 1, until):
                if key.startswith(place):
                    found.append(change)
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError, KeyError, ForgottenError):
        return None
    return found


class ForgottenError(Exception):
    """Etcd does not keep changes as old as that any more."""


def prefix(resource: Resource, namespace: str | None) -> str | None:
    """Return under which keys etcd keeps the objects of a type; None when that is not known here."""
    if resource.group in _BUILT_IN:
        place = _PLACES.get((resource.group, resource.plural), resource.plural)
    elif resource.group in _OF_CRDS or (
        "." in resource.group and not resource.group.endswith(".k8s.io")
    ):
        place = f"{resource.group}/{resource.plural}"
    else:
        return None
    return f"/registry/{place}/" + (f"{namespace}/" if namespace else "")


async def _changes(port: int, start: int, until: int) -> AsyncIterator[tuple[str, Change]]:
    """Yield key and change for everything from version `start` to `until`, which must be one that exists.

    Of all keys, since of some nothing would tell that there is no further change.
    """
    import aiohttp

    asked = {"create_request": {"key": _ANY, "range_end": _ANY, "start_revision": str(start)}}
    # The environment's proxies are for others: this is loopback.
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.post(f"http://127.0.0.1:{port}/v3/watch", json=asked) as answer,
    ):
        answer.raise_for_status()
        async for line in _lines(answer.content.iter_any()):
            result = json.loads(line)["result"]
            if result.get("canceled"):
                raise ForgottenError
            version = 0
            for event in result.get("events") or ():
                version = int(event["kv"]["mod_revision"])
                if version > until:
                    return
                key = base64.b64decode(event["kv"]["key"]).decode("utf-8", "replace")
                yield key, Change(key.rpartition("/")[2], version, event.get("type") == "DELETE")
            if version >= until:
                return


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    parts: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join([*parts, end])
            parts.clear()
        parts.append(rest)
