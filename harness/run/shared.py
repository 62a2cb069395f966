"""What the drills of a run share on a cluster: the subject's CRDs."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Final

from harness.kube.errors import AlreadyExists, NotFound
from harness.kube.resource import CRD, NAMESPACE, Resource
from harness.kube.watch import Changed, Listed, watch
from harness.run.identity import FIELD_MANAGER, MANAGED_BY, RUN_LABEL
from harness.run.journal import ObjectKey
from harness.run.objects import RefusedError
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
    for crd in crds:
        name = str(crd["metadata"]["name"])
        if not await client.exists(CRD, name) and await _create(client, journal, crd, run):
            keys.add((CRD.group, CRD.plural, "", name))
        await established(client, name)
    if cluster_kind == "embedded":
        for entry in list(journal.entries):
            journal.gone(entry)
        keys.clear()
    return keys


async def _create(client: KubeClient, journal: Journal, crd: JSON, run: str) -> bool:
    """Create a CRD; False when another run was a moment faster, so that it is not ours to remove."""
    obj = copy.deepcopy(crd)
    labels = obj["metadata"].setdefault("labels", {})
    labels.update({RUN_LABEL: run, **MANAGED_BY})
    key = ObjectKey(CRD.group, CRD.version, CRD.plural, CRD.kind, str(obj["metadata"]["name"]))
    entry = journal.make(key)
    try:
        made = await client.create(CRD, obj, field_manager=FIELD_MANAGER)
    except AlreadyExists:
        journal.gone(entry)
        return False
    journal.made(entry, str(made["metadata"]["uid"]))
    return True


async def established(client: KubeClient, name: str) -> None:
    """Wait until a CRD is served. Raises RefusedError when it is not in time."""
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
    # One that another run is removing is served for a moment more, and then no longer.
    return "deletionTimestamp" not in crd["metadata"] and any(
        c["type"] == "Established" and c["status"] == "True" for c in conditions
    )


async def remove_shared(client: KubeClient, journal: Journal) -> list[str]:
    """Remove the run's CRDs, but none that anybody else still uses; return a sentence for each that stays."""
    problems: list[str] = []
    for entry in [e for e in journal.entries if e.key.plural == CRD.plural]:
        user = await _user(client, entry.key.name, journal.reach.run)
        if user:
            problems.append(f"{entry.key.label} stays: {user}")
            journal.gone(entry)  # in use by others now, so no longer ours to remove
    removal = await tear_down(client, journal)
    return problems + removal.problems


async def _user(client: KubeClient, name: str, run: str) -> str:
    """Return who still needs a CRD, in words; empty when nobody does."""
    objects = await _instances(client, name)
    if objects:
        return f"{objects} objects of it exist"
    selector = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
    namespaces, _ = await client.list(NAMESPACE, label_selector=selector, metadata_only=True)
    runs = {(ns["metadata"].get("labels") or {}).get(RUN_LABEL) for ns in namespaces}
    # A run that has begun may not have made its rollout object yet.
    return "another run is using it" if runs - {run, None} else ""


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
