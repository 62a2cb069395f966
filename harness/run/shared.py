"""What the drills of a run share on a cluster: the subject's CRDs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from harness.kube.errors import NotFound
from harness.kube.resource import CRD, Resource
from harness.kube.watch import Changed, Listed, watch
from harness.run.identity import MANAGED_BY, RUN_LABEL
from harness.run.objects import Maker, RefusedError
from harness.run.teardown import tear_down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.run.journal import Journal
    from harness.run.leftovers import Key

ESTABLISHED_WITHIN: Final = 15.0
"""Seconds until the API server serves a new CRD; it takes about one."""


async def install_shared(
    client: KubeClient, journal: Journal, crds: Sequence[JSON], run: str, cluster_kind: str
) -> set[Key]:
    """Install those CRDs that are missing and return the keys of what the run has to remove again.

    A CRD that is there is used as it is, never altered. On an embedded cluster they belong to the cluster: the next run on a warm
    one finds them there. Raises RefusedError when a CRD is not served in time.
    """
    keys: set[Key] = set()
    maker = Maker(client, journal, {RUN_LABEL: run, **MANAGED_BY})
    for crd in crds:
        name = str(crd["metadata"]["name"])
        if not await client.exists(CRD, name):
            await maker.apply(crd, None)
            keys.add((CRD.group, CRD.plural, "", name))
        await _established(client, name)
    if cluster_kind == "embedded":
        for entry in list(journal.entries):
            journal.gone(entry)
        keys.clear()
    return keys


async def _established(client: KubeClient, name: str) -> None:
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN):
            stream = watch(client, CRD, field_selector=f"metadata.name={name}")
            try:
                async for event in stream:
                    match event:
                        case Listed(items=[crd, *_]) | Changed(object=crd) if _is_established(crd):
                            return
                        case _:
                            pass
            finally:
                await stream.aclose()
    except TimeoutError:
        msg = f"CustomResourceDefinition {name} was not served within {ESTABLISHED_WITHIN:g} s"
        raise RefusedError(msg) from None


def _is_established(crd: JSON) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def remove_shared(client: KubeClient, journal: Journal) -> list[str]:
    """Remove the run's CRDs, but none of which anybody still has an object; return a sentence for each that stays."""
    problems: list[str] = []
    for entry in [e for e in journal.entries if e.key.plural == CRD.plural]:
        users = await _instances(client, entry.key.name)
        if users:
            problems.append(f"{entry.key.label} stays: {users} objects of it exist")
            journal.gone(entry)  # in use by others now, so no longer ours to remove
    removal = await tear_down(client, journal)
    return problems + removal.problems


async def _instances(client: KubeClient, name: str) -> int:
    try:
        crd = await client.get(CRD, name)
    except NotFound:
        return 0
    spec = crd["spec"]
    version = next(v["name"] for v in spec["versions"] if v["storage"])
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    resource = Resource(spec["group"], version, names["plural"], names["kind"], namespaced)
    items, _ = await client.list(resource, metadata_only=True)
    return len(items)
