"""Removing what a run made: only what its journal says, newest first, each with a deadline of its own.

Newest first, but objects of one kind in one namespace side by side: hundreds of rollouts take seconds then.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.kube.errors import Conflict, KubeError, NotFound
from harness.kube.watch import Changed, Listed, watch
from harness.run.identity import RUN_LABEL
from harness.run.patience import patiently
from harness.run.together import together

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from harness.kube.client import KubeClient
    from harness.run.journal import Entry, Journal

GONE_WITHIN: Final = 60.0
"""Seconds for one object to disappear: the namespace controller alone waits five, finalizers of a subject some more."""


@dataclass(slots=True)
class Removal:
    """What became of a teardown."""

    removed: dict[str, int] = field(default_factory=dict)
    """Kind -> how many objects that the journal names are gone."""
    problems: list[str] = field(default_factory=list)
    """One sentence per object that could not be removed."""


async def tear_down(
    client: KubeClient,
    journal: Journal,
    *,
    only: Collection[Entry] | None = None,
    first_kinds: Sequence[str] = (),
    within: float = GONE_WITHIN,
) -> Removal:
    """Remove the journal's objects (`only` these, when given), newest first; never raises for one that resists.

    Objects of `first_kinds` (the rollout, whose finalizers need a living subject) go first. Objects inside a namespace that
    the journal made go with that namespace.
    """
    removal = Removal()
    chosen = None if only is None else {id(entry) for entry in only}
    entries = [e for e in journal.entries if chosen is None or id(e) in chosen]
    namespaces = {e.key.name for e in entries if e.key.plural == "namespaces"}
    early = [e for e in reversed(entries) if e.key.kind in first_kinds]
    others = [e for e in reversed(entries) if e.key.kind not in first_kinds]
    late = [e for e in others if e.key.namespace not in namespaces]
    for batch in _batches([*early, *late]):
        await together(lambda entry: _remove(client, journal, entry, removal, within), batch)
    still = {e.key.name for e in journal.entries if e.key.plural == "namespaces"}
    inside = [e for e in others if e.key.namespace in namespaces - still]
    journal.gone(*inside)
    for entry in inside:
        _count(removal, entry)
    return removal


def _batches(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Return entries that can be removed side by side: neighbours of one kind in one namespace."""
    return [
        list(batch)
        for _, batch in itertools.groupby(entries, lambda e: (e.key.kind, e.key.namespace))
    ]


def _count(removal: Removal, entry: Entry) -> None:
    removal.removed[entry.key.kind] = removal.removed.get(entry.key.kind, 0) + 1


async def _remove(
    client: KubeClient, journal: Journal, entry: Entry, removal: Removal, within: float
) -> None:
    asked = False

    async def gone() -> None:
        nonlocal asked
        if await _delete(client, entry, journal.reach.run):
            asked = True
            await until_gone(client, entry)

    try:
        async with asyncio.timeout(within):
            # An API server that is away for a moment is no reason to leave something behind.
            await patiently(gone, within)
        journal.gone(entry)
        _count(removal, entry)
    except TimeoutError:
        what = f"is still there {within:g} s after its deletion"
        silent = f"could not be removed within {within:g} s: the API server gave no answer"
        removal.problems.append(f"{entry.key.label} {what if asked else silent}")
    except KubeError as error:
        removal.problems.append(f"{entry.key.label} could not be removed: {error}")


async def _delete(client: KubeClient, entry: Entry, run: str) -> bool:
    """Ask for the deletion; False when there is nothing of ours to delete."""
    key = entry.key
    resource = key.resource
    try:
        found = await client.get(resource, key.name, key.namespace)
        uid = str(found["metadata"]["uid"])
        ours = (found["metadata"].get("labels") or {}).get(RUN_LABEL) == run
        # Without a UID the run was killed while creating it; then only our label makes it ours.
        if (entry.uid and entry.uid != uid) or (not entry.uid and not ours):
            return False
        await client.delete(resource, key.name, key.namespace, uid=uid)
    except NotFound:
        return False
    except Conflict:
        return False  # the UID precondition: somebody made another object of that name meanwhile
    entry.uid = entry.uid or uid
    return True


async def until_gone(client: KubeClient, entry: Entry) -> None:
    """Wait until the very object of an entry, by its UID, is gone."""
    key = entry.key
    selector = f"metadata.name={key.name}"
    stream = watch(client, key.resource, key.namespace, field_selector=selector)
    try:
        async for event in stream:
            match event:
                case Listed(items=items) if not any(_same(entry, item) for item in items):
                    return
                case Changed(type="DELETED", object=obj) if _same(entry, obj):
                    return
                case _:
                    pass
    except NotFound:
        return  # the type itself is gone (its CRD)
    finally:
        await stream.aclose()


def _same(entry: Entry, obj: dict[str, object]) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and metadata.get("uid") == entry.uid
