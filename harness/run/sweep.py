"""`drill sweep`: remove what a run left that was killed before it could clean up.

Two sources: the journals of runs whose process is gone, and, on a cluster that is named, objects with the label of a run that no living
process on this machine knows (`harness.run.sweep_cluster`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.clusters.base import ClusterError
from harness.clusters.embedded.cluster import abandoned, reap
from harness.clusters.local import cluster as local
from harness.kube.client import KubeClient
from harness.kube.errors import ApiError, KubeError
from harness.run.identity import FIELD_MANAGER
from harness.run.journal import Entry, Journal, all_journals, state_dir
from harness.run.marks import STALE
from harness.run.scoped import remove_family
from harness.run.shared import remove_shared
from harness.run.stuck_look import why_stuck
from harness.run.sweep_cluster import Found, sweep_labelled
from harness.run.teardown import Removal, tear_down

if TYPE_CHECKING:
    from harness.clusters.base import Cluster

UNREACHABLE_HINT: Final = "if that cluster is gone for good, delete the file"
FINALIZED_WITHIN: Final = 10.0
"""Seconds for a controller that still lives (in the cluster) to be done with a rollout object that is being deleted."""
CONTROLLERS: Final = "finalizer.flagger.app"
"""What controllers of Canaries put on those that they would restore a workload from; nobody takes it off when they were killed too."""
FINALIZING: Final = ("Canary",)
"""Kinds that go before anything else, since their finalizers may need it."""


async def sweep(
    *,
    dry_run: bool,
    cluster: Cluster | None = None,
    older_than: float = STALE,
    namespace: str = "",
) -> Found:
    """Remove (or, in a dry run, list) what dead runs left; never what a living run still uses.

    With `cluster`, also look there for labelled objects that no journal of this machine knows, and take those that were made
    more than `older_than` seconds ago: namespaces, and what runs shared, or with `namespace` only what is in that one.
    """
    result = Found()
    living = {journal.reach.run for journal in all_journals() if journal.reach.alive()}
    for journal in all_journals():
        if not journal.reach.alive():
            await _journal(journal, result, dry_run=dry_run)
    # What is in a journal still was told already.
    told = living | {journal.reach.run for journal in all_journals()}
    if cluster is not None:
        agent = f"rollout-drill/{__version__} sweep"
        client = await KubeClient.connect(cluster.kubeconfig, cluster.context, user_agent=agent)
        async with client:
            await sweep_labelled(
                client, cluster, told, result, older_than, dry_run=dry_run, namespace=namespace
            )
    _clusters(result, dry_run=dry_run)
    _private(living, result, dry_run=dry_run)
    return result


async def _journal(journal: Journal, result: Found, *, dry_run: bool) -> None:
    reach = journal.reach
    if journal.pointless():
        if not dry_run:
            journal.discard()
        return
    if dry_run:
        result.removed += [f"{entry.key.label} (run {reach.run})" for entry in journal.entries]
        return
    agent = f"rollout-drill/{__version__} sweep"
    before = list(journal.entries)
    try:
        client = await KubeClient.connect(Path(reach.kubeconfig), reach.context, user_agent=agent)
        async with client:
            await _remove(client, journal, result)
            shared = [entry for entry in journal.entries if not entry.drill]
            left = await remove_shared(client, journal)
            result.problems += left.problems
            result.stays += left.stays
    except KubeError as error:
        where = f"{reach.cluster} of run {reach.run}"
        result.problems.append(
            f"{where} cannot be reached ({error}); {UNREACHABLE_HINT}: {journal.path}"
        )
        return
    gone = [e for e in before if e not in journal.entries and e not in shared]
    labels = [*(entry.key.label for entry in gone), *left.removed]
    result.removed += [f"{label} (run {reach.run})" for label in labels]
    journal.close()


async def _remove(client: KubeClient, journal: Journal, result: Found) -> None:
    """Remove what the drills of a run made, each drill's in its turn: in namespaces of their own, or in one that stays."""
    # With what goes first, since what that owned is known by it.
    own = [entry for entry in journal.entries if entry.drill]
    rollouts = [entry for entry in own if entry.key.kind in FINALIZING]
    if rollouts:
        await tear_down(client, journal, only=rollouts, within=FINALIZED_WITHIN)
        for entry in rollouts:
            if entry in journal.entries:
                result.stays += await _release(client, entry)
    namespaces = {entry.key.name for entry in own if entry.key.plural == "namespaces"}
    visiting: dict[tuple[str, str], list[Entry]] = {}
    for entry in own:
        if entry.key.namespace and entry.key.namespace not in namespaces:
            visiting.setdefault((entry.key.namespace, entry.drill), []).append(entry)
    for (namespace, _), entries in visiting.items():
        gone = await remove_family(
            client, journal, namespace, entries, journal.reach.run, first_kinds=FINALIZING
        )
        result.problems += gone.removal.problems
        result.problems += gone.sentences
        result.explained += gone.explained
    rest = [entry for entry in own if entry in journal.entries]
    removal = await tear_down(client, journal, only=[e for e in rest if not _visits(e, visiting)])
    await explain(client, removal, [e for e in rest if e in journal.entries], result)


async def _release(client: KubeClient, entry: Entry) -> list[str]:
    """Take the finalizer of a controller that is gone off an object of ours that waits for it; return what was done."""
    key = entry.key
    try:
        obj = await client.get(key.resource, key.name, key.namespace)
        metadata = obj["metadata"]
        held = metadata.get("finalizers") or []
        deleted = metadata["uid"] == entry.uid and "deletionTimestamp" in metadata
        if not deleted or CONTROLLERS not in held:
            return []
        kept = [name for name in held if name != CONTROLLERS]
        only = {name: metadata[name] for name in ("uid", "resourceVersion")}
        patch = {"metadata": {**only, "finalizers": kept}}
        await client.patch(
            key.resource, key.name, key.namespace, patch, field_manager=FIELD_MANAGER
        )
    except ApiError:
        return []
    return [f"{key.label}: finalizer {CONTROLLERS} was taken off, since its controller was killed"]


def _visits(entry: Entry, visiting: dict[tuple[str, str], list[Entry]]) -> bool:
    return (entry.key.namespace or "", entry.drill) in visiting


async def explain(client: KubeClient, removal: Removal, left: list[Entry], result: Found) -> None:
    """Add the problems of a removal, and why the namespaces among them do not go."""
    result.problems += removal.problems
    for entry in left:
        if entry.key.plural == "namespaces":
            result.explained += await why_stuck(client, entry.key.name)


def _clusters(result: Found, *, dry_run: bool) -> None:
    names = abandoned() if dry_run else reap(lambda _line: None)
    result.removed += [f"embedded cluster {name}" for name in names]
    for record in local.abandoned():
        try:
            if not dry_run:
                local.remove(record)
        except ClusterError as error:
            result.problems.append(str(error))
        else:
            result.removed.append(f"cluster {record.title}")


def _private(living: set[str], result: Found, *, dry_run: bool) -> None:
    """Remove tokens and raw logs of runs that are gone."""
    folder = state_dir() / "runs"
    for run in sorted(folder.iterdir()) if folder.is_dir() else []:
        if run.name not in living:
            if not dry_run:
                shutil.rmtree(run, ignore_errors=True)
            result.removed.append(f"private files of run {run.name}")
