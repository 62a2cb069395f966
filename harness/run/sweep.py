"""`drill sweep`: remove what a run left that was killed before it could clean up.

Two sources: the journals of runs whose process is gone, and, on a cluster that is named, namespaces with the label of a run that
no living process on this machine knows. Whether such a run lives on another machine cannot be seen from here, so that only
namespaces that are old enough are taken.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness import __version__
from harness.clusters.embedded.cluster import abandoned, reap
from harness.kube.client import KubeClient
from harness.kube.errors import KubeError
from harness.kube.resource import NAMESPACE
from harness.run.identity import DRILL_LABEL, MANAGED_BY, RUN_LABEL
from harness.run.journal import Entry, Journal, ObjectKey, all_journals, state_dir
from harness.run.shared import remove_shared
from harness.run.teardown import tear_down

if TYPE_CHECKING:
    from harness.clusters.base import Cluster

UNREACHABLE_HINT: Final = "if that cluster is gone for good, delete the file"
OLDER_THAN: Final = 2 * 3600.0
"""Seconds since a namespace of an unknown run was made; no drill takes that long."""


@dataclass(slots=True)
class Sweep:
    """What a sweep found, one sentence each."""

    removed: list[str] = field(default_factory=list)
    """In a dry run: what would be removed."""
    problems: list[str] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    """What may belong to a run that lives on another machine."""


async def sweep(
    *, dry_run: bool, cluster: Cluster | None = None, older_than: float = OLDER_THAN
) -> Sweep:
    """Remove (or, in a dry run, list) what dead runs left; never what a living run still uses.

    With `cluster`, also look there for labelled namespaces that no journal of this machine knows, and take those that were made
    more than `older_than` seconds ago.
    """
    result = Sweep()
    living = {journal.reach.run for journal in all_journals() if journal.reach.alive()}
    for journal in all_journals():
        if not journal.reach.alive():
            await _journal(journal, result, dry_run=dry_run)
    if cluster is not None:
        await _labelled(cluster, living, result, older_than, dry_run=dry_run)
    _embedded(result, dry_run=dry_run)
    _private(living, result, dry_run=dry_run)
    return result


async def _journal(journal: Journal, result: Sweep, *, dry_run: bool) -> None:
    reach = journal.reach
    if journal.pointless():
        if not dry_run:
            journal.discard()
        return
    if dry_run:
        result.removed += [f"{entry.key.label} (run {reach.run})" for entry in journal.entries]
        return
    agent = f"rollout-drill/{__version__} sweep"
    try:
        client = await KubeClient.connect(Path(reach.kubeconfig), reach.context, user_agent=agent)
        async with client:
            before = list(journal.entries)
            own = [entry for entry in before if entry.drill]
            removal = await tear_down(client, journal, only=own)
            removal.problems += await remove_shared(client, journal)
    except KubeError as error:
        where = f"{reach.cluster} of run {reach.run}"
        result.problems.append(
            f"{where} cannot be reached ({error}); {UNREACHABLE_HINT}: {journal.path}"
        )
        return
    result.problems += removal.problems
    gone = [entry for entry in before if entry not in journal.entries]
    result.removed += [f"{entry.key.label} (run {reach.run})" for entry in gone]
    journal.close()


async def _labelled(
    cluster: Cluster, living: set[str], result: Sweep, older_than: float, *, dry_run: bool
) -> None:
    agent = f"rollout-drill/{__version__} sweep"
    client = await KubeClient.connect(cluster.kubeconfig, cluster.context, user_agent=agent)
    async with client:
        selector = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
        found, _ = await client.list(NAMESPACE, label_selector=f"{selector},{RUN_LABEL}")
        for namespace in found:
            metadata = namespace["metadata"]
            run = metadata["labels"][RUN_LABEL]
            if run in living:
                continue
            key = ObjectKey("", "v1", "namespaces", "Namespace", metadata["name"])
            made = datetime.fromisoformat(metadata["creationTimestamp"])
            age = (datetime.now(UTC) - made).total_seconds()
            if age < older_than:
                result.spared.append(f"{key.label} (run {run}), {age / 60:.0f} min old")
                continue
            entry = Entry(key, metadata["labels"].get(DRILL_LABEL, ""), metadata["uid"])
            if not dry_run:
                journal = Journal.open(run, "swept", cluster.kubeconfig, cluster.context)
                journal.entries.append(entry)
                removal = await tear_down(client, journal)
                journal.close()
                if removal.problems:
                    result.problems += removal.problems
                    continue
            result.removed.append(f"{key.label} (run {run})")


def _embedded(result: Sweep, *, dry_run: bool) -> None:
    names = abandoned() if dry_run else reap(lambda _line: None)
    result.removed += [f"embedded cluster {name}" for name in names]


def _private(living: set[str], result: Sweep, *, dry_run: bool) -> None:
    """Remove tokens and raw logs of runs that are gone."""
    folder = state_dir() / "runs"
    for run in sorted(folder.iterdir()) if folder.is_dir() else []:
        if run.name not in living:
            if not dry_run:
                shutil.rmtree(run, ignore_errors=True)
            result.removed.append(f"private files of run {run.name}")
