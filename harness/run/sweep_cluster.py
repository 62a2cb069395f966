"""The part of `drill sweep` that looks on a cluster: for objects with the label of a run that no living process here knows.

Whether such a run lives on another machine cannot be seen from here, so that only what is old enough is taken. What carries no label of ours
is never looked at twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harness.kube.errors import Forbidden, NotFound
from harness.kube.resource import NAMESPACE
from harness.run.family import owners
from harness.run.identity import DRILL_LABEL, MANAGED_BY, RUN_LABEL, token
from harness.run.journal import Entry, Journal, ObjectKey
from harness.run.leftovers import NOISE, list_everything
from harness.run.marks import marked, users
from harness.run.scoped import remove_family
from harness.run.shared import SHARED, in_use, remove_shared, runs_seen
from harness.run.stuck_look import why_stuck
from harness.run.teardown import tear_down

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.clusters.base import Cluster
    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON


@dataclass(slots=True)
class Found:
    """What a sweep found, one sentence each."""

    removed: list[str] = field(default_factory=list)
    """In a dry run: what would be removed."""
    problems: list[str] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    """What may belong to a run that lives on another machine."""
    stays: list[str] = field(default_factory=list)
    """What others need."""
    explained: list[str] = field(default_factory=list)
    """Why what is among the problems does not go."""


@dataclass(frozen=True, slots=True)
class _Sweeping:
    client: KubeClient
    cluster: Cluster
    living: Collection[str]
    result: Found
    older_than: float
    dry_run: bool

    def journal(self, run: str) -> Journal:
        """Open a journal for what is found of a run, so that a sweep that is killed can be swept, too."""
        name = f"swept-{token(3)}"
        return Journal.open(run, name, self.cluster.kubeconfig, self.cluster.context)


async def sweep_labelled(
    client: KubeClient,
    cluster: Cluster,
    living: Collection[str],
    result: Found,
    older_than: float,
    *,
    dry_run: bool,
    namespace: str = "",
) -> None:
    """Remove labelled objects of runs that are not `living` from a cluster, those older than `older_than` seconds.

    With `namespace` only what is in that one, and nothing cluster-wide is asked. Raises KubeError.
    """
    sweeping = _Sweeping(client, cluster, living, result, older_than, dry_run)
    if namespace:
        await _inside(sweeping, namespace)
        return
    await _namespaces(sweeping)
    for resource in SHARED:
        await _shared(sweeping, resource)


def age(metadata: JSON, at: datetime | None = None) -> float:
    """Return the seconds since an object was made."""
    made = datetime.fromisoformat(metadata["creationTimestamp"])
    return ((at or datetime.now(UTC)) - made).total_seconds()


def _selector() -> str:
    return ",".join([*(f"{key}={value}" for key, value in MANAGED_BY.items()), RUN_LABEL])


async def _namespaces(sweeping: _Sweeping) -> None:
    client, result = sweeping.client, sweeping.result
    found, _ = await client.list(NAMESPACE, label_selector=_selector())
    for namespace in found:
        metadata = namespace["metadata"]
        run = metadata["labels"][RUN_LABEL]
        if run in sweeping.living:
            continue
        key = ObjectKey("", "v1", "namespaces", "Namespace", metadata["name"])
        if age(metadata) < sweeping.older_than:
            result.spared.append(f"{key.label} (run {run}), {age(metadata) / 60:.0f} min old")
            continue
        if not sweeping.dry_run:
            journal = sweeping.journal(run)
            drill = metadata["labels"].get(DRILL_LABEL, "")
            journal.made(journal.make(key, drill or "swept"), metadata["uid"])
            removal = await tear_down(client, journal)
            journal.close()
            if removal.problems:
                result.problems += removal.problems
                result.explained += await why_stuck(client, key.name)
                continue
        result.removed.append(f"{key.label} (run {run})")


async def _shared(sweeping: _Sweeping, resource: Resource) -> None:
    """Remove objects that runs shared and no run uses any more."""
    client, result = sweeping.client, sweeping.result
    try:
        found, _ = await client.list(resource, label_selector=_selector())
    except (Forbidden, NotFound):
        return
    for obj in found:
        name = str(obj["metadata"]["name"])
        key = ObjectKey(resource.group, resource.version, resource.plural, resource.kind, name)
        seen = {*sweeping.living, *await runs_seen(client)}
        using = users(obj, me="", at=datetime.now(UTC), seen=seen, stale=sweeping.older_than)
        if using and set(using) <= set(sweeping.living):
            continue
        if using:
            result.spared.append(f"{key.label} (run {using[0]})")
            continue
        if why := await in_use(client, key, obj):
            result.stays.append(f"{key.label} stays: {why}")
            continue
        run = next(iter(marked(obj)), obj["metadata"]["labels"][RUN_LABEL])
        if not sweeping.dry_run:
            journal = sweeping.journal(f"sweep-{token(3)}")
            journal.made(journal.make(key), str(obj["metadata"]["uid"]))
            left = await remove_shared(client, journal, stale=sweeping.older_than)
            journal.close()
            result.problems += left.problems
            result.stays += left.stays
            if not left.removed:
                continue
        result.removed.append(f"{key.label} (run {run})")


async def _inside(sweeping: _Sweeping, namespace: str) -> None:
    """Remove what dead runs left in a namespace that stays, with what that owns."""
    client, result = sweeping.client, sweeping.result
    listing = await list_everything(client, namespace)
    drills: dict[tuple[str, str], list[tuple[str, ObjectKey, JSON]]] = {}
    for key, metadata in listing.objects.items():
        labels = metadata.get("labels") or {}
        ours = all(labels.get(name) == value for name, value in MANAGED_BY.items())
        # What has an owner goes with it; Endpoints carry the labels of their Service.
        if not ours or RUN_LABEL not in labels or owners(metadata) or key[:2] in NOISE:
            continue
        if key[1] == "endpoints" or labels[RUN_LABEL] in sweeping.living:
            continue
        whose = labels[RUN_LABEL], str(labels.get(DRILL_LABEL, ""))
        row: tuple[str, ObjectKey, Any] = (
            metadata["creationTimestamp"],
            listing.key_of(key),
            metadata,
        )
        drills.setdefault(whose, []).append(row)
    for (run, drill), rows in drills.items():
        rows.sort(key=lambda row: row[0])
        youngest = min(age(metadata) for _, _, metadata in rows)
        names = [f"{key.label} (run {run})" for _, key, _ in rows]
        if youngest < sweeping.older_than:
            result.spared += [f"{name}, {youngest / 60:.0f} min old" for name in names]
            continue
        if not sweeping.dry_run:
            journal = sweeping.journal(run)
            entries = journal.make_all([key for _, key, _ in rows], drill)
            for entry, (_, _, metadata) in zip(entries, rows, strict=True):
                journal.made(entry, str(metadata["uid"]))
            gone = await remove_family(
                client, journal, namespace, list(entries), run, first_kinds=("Canary",)
            )
            names = [f"{e.key.label} (run {run})" for e in _gone(entries, journal)]
            journal.close()
            result.problems += [*gone.removal.problems, *gone.sentences]
            result.explained += gone.explained
        result.removed += names


def _gone(entries: list[Entry], journal: Journal) -> list[Entry]:
    return [entry for entry in entries if entry not in journal.entries]
