"""The proof that nothing is left: a listing of every resource type before and after, while the cluster still runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import ApiError, Forbidden, NotFound
from harness.run.identity import DRILL_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

_AT_ONCE: Final = 8
"""Requests under way; the whole listing takes some tenths of a second either way."""
_NOISE: Final = frozenset(
    {
        # Written by the control plane all the time, and by nobody on behalf of a drill in a namespace that is gone.
        ("", "events"),
        ("events.k8s.io", "events"),
        ("coordination.k8s.io", "leases"),
        # The node and Service controllers keep these, for other drills' nodes and Services too.
        ("", "nodes"),
        ("storage.k8s.io", "csinodes"),
        ("networking.k8s.io", "ipaddresses"),
        # Computed, not stored.
        ("", "componentstatuses"),
        ("metrics.k8s.io", "pods"),
        ("metrics.k8s.io", "nodes"),
    }
)

Key = tuple[str, str, str, str]
"""Group, plural, namespace ("" for cluster-scoped), name."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Every object of a cluster, as metadata."""

    objects: Mapping[Key, JSON]
    kinds: int
    """How many resource types were listed."""
    refused: tuple[str, ...]
    """Types that may not be listed; nothing is claimed about them."""


async def list_everything(client: KubeClient) -> Listing:
    """List all objects of all types that can be listed, metadata only.

    Raises KubeError when the API server cannot be asked at all.
    """
    limit = asyncio.Semaphore(_AT_ONCE)
    refused: list[str] = []
    objects: dict[Key, JSON] = {}
    resources = await client.discover()

    async def one(resource: Resource) -> None:
        async with limit:
            try:
                items, _ = await client.list(resource, metadata_only=True)
            except Forbidden:
                refused.append(resource.label)
                return
            except NotFound:
                return  # the type itself was removed meanwhile (a CRD)
        for item in items:
            metadata = item["metadata"]
            key = (
                resource.group,
                resource.plural,
                metadata.get("namespace", ""),
                metadata["name"],
            )
            objects[key] = {"kind": resource.kind, **metadata}

    async with asyncio.TaskGroup() as tasks:
        for resource in resources:
            tasks.create_task(one(resource))
    return Listing(objects, len(resources) - len(refused), tuple(sorted(refused)))


@dataclass(frozen=True, slots=True)
class Mine:
    """How to tell what a drill left from what is other people's, or other drills'."""

    drill: str
    """The drill's own label value."""
    namespace: str
    exclusive: bool
    """Whether the cluster was made for this run alone, so that anything new in it is ours."""
    others: Collection[str] = ()
    """Namespaces of the run's other drills, past and present."""
    accounted: Collection[Key] = ()
    """Objects of the run that stay until its last drill is over (its CRDs)."""


def left_behind(before: Listing, after: Listing, mine: Mine) -> list[JSON]:
    """Return what a drill left, each as `{kind, namespace, name, finalizers, why}`.

    That is what is in its namespace or carries its label, and, on an exclusive cluster, any object that was not there before.
    Elsewhere other people make objects too, so a new object without our label is theirs.
    """
    left: list[JSON] = []
    for key, metadata in sorted(after.objects.items()):
        why = _why(key, metadata, before, mine)
        if why:
            left.append(_item(metadata, key[2], why))
    return left


def _why(key: Key, metadata: JSON, before: Listing, mine: Mine) -> str:
    group, plural, namespace, name = key
    labels = metadata.get("labels") or {}
    if namespace == mine.namespace:
        return "in the drill's namespace"
    if (group, plural, name) == ("", "namespaces", mine.namespace):
        return "the drill's namespace"
    if labels.get(DRILL_LABEL) == mine.drill:
        return "carries the drill's label"
    new = mine.exclusive and key not in before.objects
    if not new or key in mine.accounted or _made_by_the_control_plane(key, labels):
        return ""
    if namespace in mine.others or (plural == "namespaces" and name in mine.others):
        return ""
    return "" if DRILL_LABEL in labels else "was not there before"


def _made_by_the_control_plane(key: Key, labels: Mapping[str, str]) -> bool:
    """Whether the control plane makes such an object whenever it pleases, some seconds after its start too."""
    group, plural, _, name = key
    return (
        (group, plural) in _NOISE
        or "kubernetes.io/bootstrapping" in labels
        or "kube-aggregator.kubernetes.io/automanaged" in labels
        or (plural, name) in {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")}
    )


def _item(metadata: JSON, namespace: str, why: str) -> dict[str, Any]:
    return {
        "kind": metadata["kind"],
        "namespace": namespace,
        "name": metadata["name"],
        "finalizers": list(metadata.get("finalizers") or []),
        "why": why,
    }


async def count_in_namespace(
    client: KubeClient, namespace: str
) -> tuple[dict[str, int], list[JSON]]:
    """Return how many objects of each kind are in `namespace`, and each of them as an item with its finalizers."""
    counts: dict[str, int] = {}
    items: list[JSON] = []
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(resource: Resource) -> None:
        async with limit:
            try:
                found, _ = await client.list(resource, namespace, metadata_only=True)
            except ApiError:
                return  # a mere count for the report; the proof is made by list_everything
        if found and (resource.group, resource.plural) not in _NOISE:
            counts[resource.kind] = len(found)
            items.extend(
                _item(
                    {"kind": resource.kind, **o["metadata"]}, namespace, "in the drill's namespace"
                )
                for o in found
            )

    async with asyncio.TaskGroup() as tasks:
        for resource in await client.discover():
            if resource.namespaced:
                tasks.create_task(one(resource))
    return counts, items
