"""Asking a cluster why what was deleted is still there (the sentences are made by `harness.run.stuck`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.kube import discovery
from harness.kube.errors import ApiError, KubeError
from harness.kube.resource import NAMESPACE, NODE, POD
from harness.run.stuck import explained
from harness.run.together import together

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

_AT_ONCE: Final = 8
_NOISE: Final = frozenset({"events", "leases", "endpoints", "endpointslices"})
"""What goes by itself, or keeps nothing."""


async def why_stuck(
    client: KubeClient,
    namespace: str,
    mine: Callable[[JSON], bool] = lambda _: True,
    *,
    stays: bool = False,
) -> tuple[str, ...]:
    """Return why a namespace, or those objects in it that are `mine`, are still there; what cannot be asked is left out.

    `stays`: the namespace is not to be removed, so that nothing is said about it. `mine` gets metadata.
    """
    try:
        return await _ask(client, namespace, mine, stays=stays)
    except KubeError:
        return ()


async def _ask(
    client: KubeClient, namespace: str, mine: Callable[[JSON], bool], *, stays: bool
) -> tuple[str, ...]:
    found = await discovery.discover(client)
    remaining: list[JSON] = []

    async def one(resource: Resource) -> None:
        try:
            # Pods whole, since their node may be the reason.
            items, _ = await client.list(resource, namespace, metadata_only=resource != POD)
        except ApiError:
            return
        remaining.extend(
            {**item, "kind": resource.kind} for item in items if mine(item["metadata"])
        )

    types = [r for r in found.resources if r.namespaced and r.plural not in _NOISE]
    await together(one, types, _AT_ONCE)
    remaining.sort(key=lambda obj: (obj["kind"], obj["metadata"]["name"]))
    obj = None if stays else await _namespace(client, namespace)
    if obj is None and not remaining:
        return ()
    nodes = await _nodes(client) if any(o["kind"] == "Pod" for o in remaining) else []
    return explained(obj, remaining, nodes, broken=found.broken)


async def _namespace(client: KubeClient, name: str) -> JSON | None:
    try:
        return await client.get(NAMESPACE, name)
    except ApiError:
        return None


async def _nodes(client: KubeClient) -> list[JSON] | None:
    try:
        nodes, _ = await client.list(NODE)
    except ApiError:
        return None
    return nodes
