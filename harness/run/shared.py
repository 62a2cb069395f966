"""Cluster-scoped objects that runs share on a cluster: the subject's CRDs, the PriorityClass of drills' pods.

Of each there can be one only, while runs come and go side by side, on several machines. So each run puts a mark of its own on
the object (`harness.run.marks`), takes it away when it leaves, and the one that finds no other mark deletes it. Every write holds
only for the version of the object that was read, so that of two runs that meet there one sees what the other did:

    joins            leaves                        what comes of it
    before           deletes                       refused, looks again, sees the mark, leaves it there
    after            has deleted, finalizers run   waits until it is gone, and makes it anew
    both leave       both see the other's mark     one write is refused, looks again, is the last one

What somebody else made is used as it is: not altered, not even marked, and not removed.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness.kube.errors import Conflict, Forbidden, KubeError, NotFound
from harness.kube.resource import CRD, NAMESPACE, POD, PRIORITY_CLASS, Resource
from harness.kube.watch import Changed, Listed, watch
from harness.run.identity import FIELD_MANAGER, MANAGED_BY, RUN_LABEL
from harness.run.journal import ObjectKey, all_journals
from harness.run.marks import STALE, mark, marked, now, ours, users
from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.run.journal import Entry, Journal
    from harness.run.leftovers import Key

SHARED: Final[tuple[Resource, ...]] = (CRD, PRIORITY_CLASS)
"""Types of which runs share objects."""
ESTABLISHED_WITHIN: Final = 15.0
"""Seconds until the API server serves a new CRD; it takes about one."""
GONE_WITHIN: Final = 30.0
"""Seconds until an object that somebody deleted is gone: a CRD takes its objects along first."""
_TRIES: Final = 20
"""Each one that is lost was won by somebody else, and a CRD's status is written a few times in its first second."""


@dataclass(slots=True)
class Left:
    """What became of a run's shared objects when it left."""

    removed: list[str] = field(default_factory=list)
    stays: list[str] = field(default_factory=list)
    """A sentence for each that others need."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each that could not be removed, and is in the journal still."""


async def install_shared(
    client: KubeClient, journal: Journal, objects: Sequence[JSON], run: str, cluster_kind: str
) -> set[Key]:
    """Join the users of cluster-scoped objects, make those that are missing, and return the keys of what the run has to leave again.

    One that somebody else made is used as it is. On an embedded cluster they belong to the cluster: the next run on a warm one
    finds them there. Raises RefusedError when a CRD is not served in time, or an object that is being deleted does not go.
    """
    keys: set[Key] = set()
    own = cluster_kind == "embedded"
    for obj in objects:
        key = _key(obj)
        if await _join(client, journal, key, obj, run, own=own):
            keys.add((key.group, key.plural, "", key.name))
        if key.resource == CRD:
            await established(client, key.name)
    return keys


def _key(obj: JSON) -> ObjectKey:
    resource = next(
        r for r in SHARED if (r.api_version, r.kind) == (obj["apiVersion"], obj["kind"])
    )
    name = str(obj["metadata"]["name"])
    return ObjectKey(resource.group, resource.version, resource.plural, resource.kind, name)


async def _join(
    client: KubeClient, journal: Journal, key: ObjectKey, obj: JSON, run: str, *, own: bool
) -> bool:
    """Put the run's mark on an object, made now if need be; False when it is not the run's to remove."""
    entry: Entry | None = None
    for _ in range(_TRIES):
        try:
            there = await client.get(key.resource, key.name)
        except NotFound:
            there = None
        if there is not None and "deletionTimestamp" in there["metadata"]:
            await _until_gone(client, key, str(there["metadata"]["uid"]))
            continue
        if there is not None and (own or not ours(there)):
            break
        # Announced before it is made or marked: a run that is killed in between is swept by its journal.
        entry = entry or journal.make(key)
        try:
            got = await _mark(client, key, there, obj, run, own=own)
        except (Conflict, NotFound):
            continue  # somebody else was faster: look again
        if "deletionTimestamp" in got["metadata"]:
            continue
        journal.made(entry, str(got["metadata"]["uid"]))
        if own:
            break
        return True
    else:
        msg = f"{key.label} was changed by others {_TRIES} times in a row"
        raise RefusedError(msg)
    if entry is not None:
        journal.gone(entry)
    return False


async def _mark(
    client: KubeClient, key: ObjectKey, there: JSON | None, obj: JSON, run: str, *, own: bool
) -> JSON:
    if there is not None:
        return await _annotate(client, key, there, {mark(run): now()})
    made = copy.deepcopy(obj)
    if not own:
        metadata = made["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), RUN_LABEL: run, **MANAGED_BY}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), mark(run): now()}
    return await client.create(key.resource, made, field_manager=FIELD_MANAGER)


async def _annotate(
    client: KubeClient,
    key: ObjectKey,
    there: JSON,
    annotations: dict[str, str | None],
    *,
    given: bool = False,
) -> JSON:
    """Write annotations of an object, in the very state in which it was read; `given` takes our labels off, too. Raises Conflict."""
    metadata: JSON = {name: there["metadata"][name] for name in ("uid", "resourceVersion")}
    if given:
        metadata["labels"] = dict.fromkeys((RUN_LABEL, *MANAGED_BY))
    patch = {"metadata": {**metadata, "annotations": annotations}}
    return await client.patch(key.resource, key.name, None, patch, field_manager=FIELD_MANAGER)


async def established(client: KubeClient, name: str) -> None:
    """Wait until a CRD is served. Raises RefusedError when it is not in time."""
    served = await _until(client, CRD, name, _is_established, ESTABLISHED_WITHIN)
    if not served:
        msg = f"CustomResourceDefinition {name} was not served within {ESTABLISHED_WITHIN:g} s"
        raise RefusedError(msg)


def _is_established(crd: JSON | None) -> bool:
    if crd is None:
        return False
    conditions = (crd.get("status") or {}).get("conditions") or []
    # One that another run is removing is served for a moment more, and then no longer.
    return "deletionTimestamp" not in crd["metadata"] and any(
        c["type"] == "Established" and c["status"] == "True" for c in conditions
    )


async def _until_gone(client: KubeClient, key: ObjectKey, uid: str) -> None:
    gone = await _until(
        client,
        key.resource,
        key.name,
        lambda obj: obj is None or obj["metadata"]["uid"] != uid,
        GONE_WITHIN,
    )
    if not gone:
        msg = (
            f"{key.label} is being deleted by somebody, and was still there {GONE_WITHIN:g} s later"
        )
        raise RefusedError(msg)


async def _until(
    client: KubeClient,
    resource: Resource,
    name: str,
    holds: Callable[[JSON | None], bool],
    seconds: float,
) -> bool:
    """Wait until a state of an object (None: there is none) is as wanted; False when that took longer."""
    stream = watch(client, resource, field_selector=f"metadata.name={name}")
    try:
        async with asyncio.timeout(seconds):
            async for event in stream:
                state: JSON | None = None
                match event:
                    case Listed(items=items):
                        state = items[0] if items else None
                    case Changed(type="DELETED"):
                        pass
                    case Changed(object=obj):
                        state = obj
                if holds(state):
                    return True
    except TimeoutError:
        pass
    finally:
        await stream.aclose()
    return False


async def remove_shared(client: KubeClient, journal: Journal, *, stale: float = STALE) -> Left:
    """Leave the run's shared objects, and remove those that nobody else uses; never raises for one that resists.

    `stale`: seconds after which a mark counts no longer when nothing else of its run is to be seen.
    """
    left = Left()
    for entry in [e for e in journal.entries if e.key.resource in SHARED]:
        try:
            await _leave(client, journal, entry, left, stale)
        except RefusedError as error:
            left.problems.append(str(error))
        except KubeError as error:
            left.problems.append(f"{entry.key.label} could not be removed: {error}")
    return left


async def _leave(
    client: KubeClient, journal: Journal, entry: Entry, left: Left, stale: float
) -> None:
    key, run = entry.key, journal.reach.run
    for _ in range(_TRIES):
        try:
            there = await client.get(key.resource, key.name)
        except NotFound:
            there = None
        if (
            there is None
            or not ours(there)
            or (entry.uid and entry.uid != there["metadata"]["uid"])
        ):
            break
        uid, version = (str(there["metadata"][name]) for name in ("uid", "resourceVersion"))
        if "deletionTimestamp" in there["metadata"]:
            await _until_gone(client, key, uid)
            break
        others = users(
            there, me=run, at=datetime.now(UTC), seen=await runs_seen(client), stale=stale
        )
        why = f"run {others[0]} is using it" if others else await in_use(client, key, there)
        if why and not others and any(one.drill for one in journal.entries):
            # By what is left of the run's own drills, as likely as not: a sweep that removes it comes back to this.
            left.problems.append(f"{key.label} stays as long as what its drills left: {why}")
            return
        try:
            if why:
                # The run's own mark, and those of the dead.
                gone: dict[str, str | None] = {
                    mark(one): None for one in marked(there).keys() - set(others)
                }
                # A type that somebody uses who is no run is his from now on: no later run removes it.
                given = not others and key.resource == CRD
                if gone or given:
                    await _annotate(client, key, there, gone, given=given)
                left.stays.append(f"{key.label} stays: {why}")
                break
            await client.delete(key.resource, key.name, uid=uid, version=version)
        except Conflict:
            continue  # somebody came or left in this moment: look again
        except NotFound:
            break
        await _until_gone(client, key, uid)
        left.removed.append(key.label)
        break
    else:
        left.problems.append(
            f"{key.label} could not be removed: changed by others {_TRIES} times in a row"
        )
        return
    journal.gone(entry)


async def runs_seen(client: KubeClient) -> set[str]:
    """Return the runs that have a process on this machine, or a namespace in the cluster as far as one may look."""
    runs = {journal.reach.run for journal in all_journals() if journal.reach.alive()}
    selector = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
    try:
        namespaces, _ = await client.list(NAMESPACE, label_selector=selector, metadata_only=True)
    except Forbidden:
        return runs
    return runs | {
        str(labels[RUN_LABEL])
        for labels in (one["metadata"].get("labels") or {} for one in namespaces)
        if RUN_LABEL in labels
    }


async def in_use(client: KubeClient, key: ObjectKey, there: JSON) -> str:
    """Return who needs a shared object although no run does, in words; empty when nobody does."""
    if key.resource == CRD:
        spec = there["spec"]
        version = next(v["name"] for v in spec["versions"] if v["storage"])
        names = spec["names"]
        namespaced = spec["scope"] == "Namespaced"
        resource = Resource(spec["group"], version, names["plural"], names["kind"], namespaced)
        try:
            items, _ = await client.list(resource, metadata_only=True)
        except NotFound:
            return ""  # not served any more, or not yet
        return f"{_objects(len(items))} of it" if items else ""
    pods, _ = await client.list(POD, shape=_priority)
    using = [pod for pod in pods if pod["class"] == key.name]
    return f"{len(using)} pods have it" if using else ""


def _objects(number: int) -> str:
    return "there is 1 object" if number == 1 else f"there are {number} objects"


def _priority(pod: JSON) -> JSON:
    return {"class": pod["spec"].get("priorityClassName")}
