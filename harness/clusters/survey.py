"""One look at a cluster that is not ours, before anything is made on it: read only, and what may not be read is noted.

`harness.clusters.health` makes sentences of what was seen.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.clusters.rights import EVERYTHING, Right
from harness.kube.errors import ApiError, Forbidden, NotFound
from harness.kube.resource import (
    CONFIGMAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    PRIORITY_CLASS,
    RESOURCEQUOTA,
    Resource,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

_AT_ONCE: Final = 16
_ADMISSION: Final = "admissionregistration.k8s.io"
LIMITRANGE: Final = Resource("", "v1", "limitranges", "LimitRange")
NETWORKPOLICY: Final = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
MUTATING: Final = Resource(
    _ADMISSION,
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING: Final = Resource(
    _ADMISSION,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
POLICIES: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
)
"""Plurals in the group of admission; the versions in which a cluster serves them differ."""
AUTOSCALER_STATUS: Final = ("kube-system", "cluster-autoscaler-status")
"""Where a cluster autoscaler says what it does, also one that the cloud runs out of sight."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen of a cluster."""

    kubernetes: str
    namespace: str
    """The one that drills are to use; empty: each makes one of its own."""
    served: frozenset[str]
    """API groups."""
    objects: Mapping[str, Sequence[JSON]]
    """Plural (`nodes`) -> what could be read; a type that is missing here was refused, or is not served."""
    refused: tuple[str, ...] = ()
    """Types that may not be read."""
    allowed: Mapping[Right, bool] = field(default_factory=dict)

    def seen(self, plural: str) -> Sequence[JSON] | None:
        """Return the objects of a type; None when it may not be read."""
        return None if plural in self.refused else self.objects.get(plural, ())


class _Reader:
    """Collects objects; what may not be read is noted, what is not served is left out."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.found: dict[str, list[JSON]] = {}
        self.refused: set[str] = set()

    async def every(
        self, resource: Resource, where: str | None = None, *, brief: bool = False
    ) -> None:
        """Read all objects of a type, with `brief` their metadata only."""
        await self._read(resource, self._list(resource, where, brief=brief))

    async def one(self, resource: Resource, name: str, where: str | None = None) -> None:
        """Read one object."""
        await self._read(resource, self._get(resource, name, where))

    async def _list(self, resource: Resource, where: str | None, *, brief: bool) -> list[JSON]:
        items, _ = await self._client.list(resource, where, metadata_only=brief)
        return items

    async def _get(self, resource: Resource, name: str, where: str | None) -> list[JSON]:
        return [await self._client.get(resource, name, where)]

    async def _read(self, resource: Resource, reading: Coroutine[Any, Any, list[JSON]]) -> None:
        try:
            objects = await reading
        except Forbidden:
            self.refused.add(resource.plural)
        except NotFound:
            pass
        else:
            self.found.setdefault(resource.plural, []).extend(objects)


async def take_survey(
    client: KubeClient, namespace: str = "", *, crds: Sequence[str] = (), priority: str = ""
) -> Survey:
    """Read everything that matters for drills, without changing anything.

    Args:
        client: For the cluster.
        namespace: The one that drills are to use; empty: each makes one of its own.
        crds: Names of the CRDs that are looked for.
        priority: Name of the PriorityClass that is looked for.

    Raises KubeError when the API server cannot be asked at all.
    """
    kubernetes, resources = await asyncio.gather(client.version(), client.discover())
    served = frozenset(resource.group for resource in resources)
    policies = {r.plural: r for r in resources if r.group == _ADMISSION and r.plural in POLICIES}
    reader = _Reader(client)
    every, one = reader.every, reader.one
    reads = [
        every(NODE),
        every(DEPLOYMENT, brief=True),
        every(MUTATING),
        every(VALIDATING),
        *(every(resource) for resource in policies.values()),
        *(one(CRD, name) for name in crds),
        one(CONFIGMAP, AUTOSCALER_STATUS[1], AUTOSCALER_STATUS[0]),
    ]
    if priority:
        reads.append(one(PRIORITY_CLASS, priority))
    if namespace:
        reads.append(one(NAMESPACE, namespace))
        reads += [every(kind, namespace) for kind in (RESOURCEQUOTA, LIMITRANGE, NETWORKPOLICY)]
    await asyncio.gather(*reads)
    return Survey(kubernetes, namespace, served, reader.found, tuple(sorted(reader.refused)))


async def ask(client: KubeClient, rights: Iterable[Right]) -> dict[Right, bool]:
    """Return which of `rights` the client's user has; those for which there was no answer are missing.

    Raises Unreachable.
    """
    limit = asyncio.Semaphore(_AT_ONCE)
    answers: dict[Right, bool] = {}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    async def one(right: Right) -> None:
        async with limit:
            try:
                answer = await client.raw("POST", path, None, right.review())
            except ApiError:
                return
        answers[right] = bool((answer.get("status") or {}).get("allowed"))

    await one(EVERYTHING)
    wanted = list(rights)
    if answers.get(EVERYTHING):
        return dict.fromkeys(wanted, True)
    await asyncio.gather(*(one(right) for right in wanted))
    return answers
