"""What a watch could not deliver, looked up afterwards: every change in order, with the object as it was after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

from harness.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.clusters.base import Change
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.kube.watch import Listed
    from harness.model.timeline import JSON

Seen = tuple[Literal["ADDED", "MODIFIED", "DELETED"], "JSON"]
MOST: Final = 2000
"""States that are asked for one by one; with more, it is faster to admit a gap."""


class Missed(Protocol):
    """`Cluster.missed`."""

    async def __call__(
        self, resource: Resource, namespace: str | None, after: int, until: int
    ) -> Sequence[Change] | None:
        """Return all changes of a type behind version `after`, up to and with `until`; None: it cannot be known."""
        ...


async def changes_between(
    client: KubeClient,
    resource: Resource,
    namespace: str | None,
    listed: Listed,
    *,
    known: Mapping[str, JSON],
    missed: Missed,
) -> list[Seen] | None:
    """Return what happened before a list that follows a gap, as a watch would have delivered it; None: it cannot be known.

    `known` are the objects as they were seen last.
    """
    if not (listed.after.isdecimal() and listed.version.isdecimal()):
        return None
    changes = await missed(resource, namespace, int(listed.after), int(listed.version))
    if changes is None or len(changes) > MOST:
        return None
    final = {str(item["metadata"]["resourceVersion"]): item for item in listed.items}
    there = {str(obj["metadata"]["name"]): obj for obj in known.values()}
    seen: list[Seen] = []
    for change in changes:
        if change.deleted:
            if (gone := there.pop(change.name, None)) is not None:
                seen.append(("DELETED", gone))
            continue
        obj = final.get(str(change.version))
        obj = obj or await _as_it_was(client, resource, namespace, change)
        if obj is None:
            return None
        seen.append(("MODIFIED" if change.name in there else "ADDED", obj))
        there[change.name] = obj
    return seen


async def _as_it_was(
    client: KubeClient, resource: Resource, namespace: str | None, change: Change
) -> JSON | None:
    """Return an object in the state that a version gave it; None when the server does not know it any more."""
    params = {
        "fieldSelector": f"metadata.name={change.name}",
        "resourceVersion": str(change.version),
        "resourceVersionMatch": "Exact",
    }
    try:
        answer = await client.raw("GET", resource.path(namespace), params)
    except KubeError:
        return None
    for item in answer.get("items") or ():
        if str(item["metadata"].get("resourceVersion")) == str(change.version):
            return {"apiVersion": resource.api_version, "kind": resource.kind, **item}
    return None
