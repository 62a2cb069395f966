"""The proof that nothing is left: a listing of every resource type before and after, while the cluster still runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import ApiError, Forbidden, NotFound
from harness.run.family import carries
from harness.run.identity import DRILL_LABEL
from harness.run.journal import ObjectKey
from harness.run.together import together

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

_AT_ONCE: Final = 8
"""Requests under way; the whole listing takes some tenths of a second either way."""
NOISE: Final = frozenset(
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

_IN_EVERY_NAMESPACE: Final = frozenset(
    {("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")}
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
    types: Mapping[tuple[str, str], Resource] = field(default_factory=dict)
    """By group and plural."""

    def key_of(self, key: Key) -> ObjectKey:
        """Return what the journal has for an object of the listing."""
        group, plural, namespace, name = key
        resource = self.types[group, plural]
        return ObjectKey(group, resource.version, plural, resource.kind, name, namespace or None)


NOTHING: Final = Listing({}, 0, ())
"""For where a comparison with what was there before proves nothing."""


async def list_everything(client: KubeClient, namespace: str | None = None) -> Listing:
    """List all objects of all types that can be listed, metadata only; with `namespace` those in it alone.

    Raises KubeError when the API server cannot be asked at all.
    """
    refused: list[str] = []
    objects: dict[Key, JSON] = {}
    resources = await client.discover()
    if namespace is not None:
        resources = [resource for resource in resources if resource.namespaced]

    async def one(resource: Resource) -> None:
        try:
            items, _ = await client.list(resource, namespace, metadata_only=True)
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

    await together(one, resources, _AT_ONCE)
    types = {(resource.group, resource.plural): resource for resource in resources}
    return Listing(objects, len(resources) - len(refused), tuple(sorted(refused)), types)


@dataclass(frozen=True, slots=True)
class Mine:
    """How to tell what a drill left from what is other people's, or other drills'."""

    run: str
    """The run's id: on a cluster that others use, another run may have a drill of the same name."""
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
    stuck = ("", "namespaces", "", mine.namespace) in after.objects
    for key, metadata in sorted(after.objects.items()):
        if stuck and key[2] == mine.namespace and _goes_along(key):
            continue
        why = _why(key, metadata, before, mine)
        if why:
            left.append(item(metadata, key[2], why))
    return left


def _why(key: Key, metadata: JSON, before: Listing, mine: Mine) -> str:
    group, plural, namespace, name = key
    labels = metadata.get("labels") or {}
    if namespace == mine.namespace:
        return "in the drill's namespace"
    if (group, plural, name) == ("", "namespaces", mine.namespace):
        return "the drill's namespace"
    if carries(metadata, mine.run, mine.drill):
        return "carries the drill's labels"
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
        (group, plural) in NOISE
        or "kubernetes.io/bootstrapping" in labels
        or "kube-aggregator.kubernetes.io/automanaged" in labels
        or (plural, name) in _IN_EVERY_NAMESPACE
    )


def _goes_along(key: Key) -> bool:
    """Whether an object holds no namespace back, so that it only hides among dozens what does."""
    return key[:2] in NOISE or (key[1], key[3]) in _IN_EVERY_NAMESPACE


def item(metadata: JSON, namespace: str, why: str) -> dict[str, Any]:
    """Return an object that is left, as the report has it."""
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

    async def one(resource: Resource) -> None:
        try:
            found, _ = await client.list(resource, namespace, metadata_only=True)
        except ApiError:
            return  # a mere count for the report; the proof is made by list_everything
        if found and (resource.group, resource.plural) not in NOISE:
            counts[resource.kind] = len(found)
            items.extend(
                item(
                    {"kind": resource.kind, **o["metadata"]}, namespace, "in the drill's namespace"
                )
                for o in found
            )

    types = [resource for resource in await client.discover() if resource.namespaced]
    await together(one, types, _AT_ONCE)
    return counts, items
