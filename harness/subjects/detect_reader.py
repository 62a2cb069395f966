"""Reading the traces that controllers leave in a cluster, as far as one may."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import Forbidden, NotFound
from harness.kube.resource import CANARY, DEPLOYMENT, LEASE
from harness.subjects.detect import LEASES, Seen, Traces, detected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

USUAL: Final = ("flagger-system", "flagger", "istio-system", "linkerd", "gateway-system")
"""Namespaces where Flagger is installed by its own instructions: looked at one by one where a list of all is refused."""


async def look_around(client: KubeClient, namespace: str = "") -> Seen:
    """Return the controllers of Canaries that a cluster has; `namespace`: one that may be read, if any. Raises KubeError."""
    near = tuple(filter(None, (namespace,)))
    deployments, whole = await _find(client, DEPLOYMENT, dict.fromkeys((*near, *USUAL)))
    leases: list[JSON] = []
    for name in LEASES:
        found, _ = await _find(client, LEASE, near, selector=f"metadata.name={name}")
        leases += found
    canaries, _ = await _find(client, CANARY, near, metadata_only=True)
    unseen = () if whole else ("Deployments of all namespaces",)
    return detected(Traces(deployments, leases, canaries, unseen), datetime.now(UTC))


async def _find(
    client: KubeClient,
    resource: Resource,
    near: Iterable[str],
    *,
    selector: str = "",
    metadata_only: bool = False,
) -> tuple[list[JSON], bool]:
    """Return the objects of a type and whether these are all; where all may not be listed, those of the namespaces `near`."""

    async def listed(namespace: str | None) -> list[JSON] | None:
        try:
            items, _ = await client.list(
                resource,
                namespace,
                field_selector=selector,
                metadata_only=metadata_only,
                # A cluster may have thousands of Deployments, of which a few fields matter.
                shape=_slim if resource == DEPLOYMENT else None,
            )
        except Forbidden:
            return None
        except NotFound:
            return []  # there is no such type
        return items

    everything = await listed(None)
    if everything is not None:
        return everything, True
    return [one for name in near for one in await listed(name) or ()], False


def _slim(obj: JSON) -> JSON:
    meta, spec = obj["metadata"], obj.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    keys = ("name", "image", "command", "args", "env")
    containers: list[dict[str, Any]] = [
        {key: one[key] for key in keys if key in one} for one in pod.get("containers") or ()
    ]
    return {
        "metadata": {key: meta[key] for key in ("name", "namespace") if key in meta},
        "spec": {
            "replicas": spec.get("replicas", 1),
            "template": {"spec": {"containers": containers}},
        },
    }
