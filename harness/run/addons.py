"""Add-ons of a cluster that drills are about to run on: installed on one of ours, looked for on another.

A cluster that is not ours is left as it is. What it lacks makes a drill that requires it `unsupported`.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Final

from harness.clusters.addons import KNATIVE, chosen, crds
from harness.clusters.knative import programs
from harness.clusters.knative.manifests import manifests
from harness.kube.client import KubeClient
from harness.kube.errors import AlreadyExists, NotFound
from harness.kube.resource import CRD
from harness.run.identity import FIELD_MANAGER, MANAGED_BY
from harness.run.objects import RefusedError
from harness.run.shared import established
from harness.run.together import together

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

    from harness.clusters.addons import AddOn
    from harness.clusters.base import Cluster, Progress
    from harness.model.timeline import JSON

PUBLISHED_WITHIN: Final = 20.0
"""Seconds until the API server publishes the schema of a new type; it takes about one."""
_LOOK_SECONDS: Final = 0.1
"""Published schemas cannot be watched."""

Type = tuple[str, str, str]
"""Group, version, kind."""


def needed(
    addons: Sequence[AddOn], progress: Progress, cancelled: threading.Event | None = None
) -> dict[str, list[JSON]]:
    """Return the CRDs of each add-on by its name, once all that an embedded cluster needs for it is at hand: programs too.

    Blocks, for minutes where something has to be built. Raises ClusterError.
    """
    found: dict[str, list[JSON]] = {}
    for addon in addons:
        if addon.name == KNATIVE:
            programs.obtain(progress, cancelled)
            manifests(progress, cancelled)
        found[addon.name] = crds(addon, progress, cancelled)
    return found


async def furnish(
    cluster: Cluster, addons: Mapping[str, Sequence[JSON]], progress: Progress
) -> Cluster:
    """Return a cluster of ours with add-ons, of which `needed` gave the CRDs. Raises as `provide` does."""
    types = [one for some in addons.values() for one in some]
    async with await KubeClient.connect(
        cluster.kubeconfig, cluster.context, user_agent=FIELD_MANAGER
    ) as client:
        return await provide(client, cluster, list(addons), types, progress)


async def provide(
    client: KubeClient,
    cluster: Cluster,
    names: Sequence[str],
    types: Sequence[JSON],
    progress: Progress,
) -> Cluster:
    """Return `cluster` with those of the add-ons `names` among its facts that it has; an embedded one has them all by then.

    `types` are all of their CRDs. On an embedded cluster they belong to the cluster and go with it. Raises ClusterError, KubeError or
    RefusedError.
    """
    if not names:
        return cluster
    wanted = chosen(names)
    if cluster.facts.kind == "embedded":
        await _install(client, types)
        return await cluster.with_addons([one.name for one in wanted], progress)
    # Types, not CRDs: reading those takes rights that whoever drills in a namespace need not have.
    served = {f"{one.plural}.{one.group}" for one in await client.discover()}
    there = [one.name for one in wanted if served.issuperset(one.crds)]
    return await cluster.with_addons(there, progress)


async def _install(client: KubeClient, crds: Sequence[JSON]) -> None:
    """Create those CRDs that are missing, and return when all are served, with their schemas."""
    made: list[JSON] = []

    async def one(crd: JSON) -> None:
        obj = copy.deepcopy(crd)
        obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **MANAGED_BY}
        if await client.exists(CRD, str(obj["metadata"]["name"])):
            return
        try:
            await client.create(CRD, obj, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            return
        made.append(crd)

    await together(one, crds)
    for crd in crds:
        await established(client, str(crd["metadata"]["name"]))
    # Whoever works with types that he does not know, like kwok, reads their schemas; those are published a moment later.
    await _published(client, {_stored(crd) for crd in made})


def _stored(crd: JSON) -> Type:
    spec = crd["spec"]
    version = next(one["name"] for one in spec["versions"] if one["storage"])
    return str(spec["group"]), str(version), str(spec["names"]["kind"])


async def _published(client: KubeClient, types: set[Type]) -> None:
    left = set(types)
    try:
        async with asyncio.timeout(PUBLISHED_WITHIN):
            while left:
                for group, version in {(group, version) for group, version, _ in left}:
                    left -= await _kinds(client, group, version)
                if left:
                    await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        names = ", ".join(f"{kind} ({group}/{version})" for group, version, kind in sorted(left))
        msg = f"the schemas of {names} were not published within {PUBLISHED_WITHIN:g} s"
        raise RefusedError(msg) from None


async def _kinds(client: KubeClient, group: str, version: str) -> set[Type]:
    try:
        answer = await client.raw("GET", f"/openapi/v3/apis/{group}/{version}")
    except NotFound:
        return set()
    schemas = (answer.get("components") or {}).get("schemas") or {}
    return {
        (one["group"], one["version"], one["kind"])
        for schema in schemas.values()
        for one in schema.get("x-kubernetes-group-version-kind") or ()
    }
