"""The recorder: watches everything in a drill's namespace, and the nodes, for the timeline.

One watch per type. What a watch misses is looked up where the cluster's storage can tell (an API server that was away, a CRD that
was changed), and recorded as a gap otherwise; a watch that dies is an error of the harness. So a verdict never rests on silence.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from harness.checks.paths import kind_of
from harness.kube import resource as kinds
from harness.kube.errors import Forbidden, KubeError
from harness.kube.resource import Resource, parse_api_version
from harness.kube.watch import Listed, Timing, watch
from harness.model.timeline import JSON, HarnessError, Header, ObjectSeen, Observation, WatchState
from harness.run.catch_up import changes_between
from harness.subjects.base import SUBJECT_LABEL
from harness.subjects.bundled_objects import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import RolloutKind
    from harness.run.belonging import Belonging
    from harness.run.catch_up import Missed
    from harness.run.redact import Redactor

RECORDED: Final = (
    kinds.POD,
    kinds.DEPLOYMENT,
    kinds.REPLICASET,
    kinds.DAEMONSET,
    kinds.SERVICE,
    kinds.EVENT,
    kinds.RESOURCEQUOTA,
    kinds.CONFIGMAP,
    kinds.SECRET,
)
"""Types of which every object in the drill's namespace is recorded, besides the rollout object."""
WHERE_SERVED: Final = (
    Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),
    Resource("networking.istio.io", "v1", "virtualservices", "VirtualService"),
    Resource("networking.istio.io", "v1beta1", "virtualservices", "VirtualService"),
    Resource("networking.istio.io", "v1", "destinationrules", "DestinationRule"),
    Resource("networking.istio.io", "v1beta1", "destinationrules", "DestinationRule"),
    Resource("serving.knative.dev", "v1", "services", "Service"),
    Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject"),
    Resource("serving.knative.dev", "v1", "revisions", "Revision"),
    Resource("networking.internal.knative.dev", "v1alpha1", "ingresses", "Ingress"),
)
"""The same for types of other projects, where the cluster serves them when the drill begins; of a kind in several versions the first."""
SPARED: Final = (kinds.EVENT, kinds.RESOURCEQUOTA, kinds.CONFIGMAP, kinds.SECRET)
"""Types that need not be watched where a user has rights in one namespace only, perhaps not all of them."""
Change = Literal["ADDED", "MODIFIED", "DELETED"]
_AGAIN: Final = 0.1
"""Seconds between two comparisons with the server in `Recorder.complete`."""
TIMING: Final = Timing(patience=120.0, longest=0.5)
"""An API server that is being replaced may be away for a minute, and what happens right after it comes back is worth seeing soon."""


class WatchDied(Exception):  # noqa: N818 - the state it reports
    """A watch of the recorder ended; the message says which and why."""


@dataclass(slots=True)
class _Track:
    """What one watch has seen."""

    resource: Resource
    namespace: str | None
    optional: bool = False
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    known: dict[str, JSON] = field(default_factory=dict)
    """The last state of each object that exists, redacted, by uid."""
    off: bool = False
    """Not watched: the credentials do not allow it, and a verdict can do without."""


class Recorder:
    """Feeds `sink` with an observation for everything that happens to the recorded objects.

    `sink` is called in the order in which things were seen, from within `run`; objects are redacted
    before. `clock` gives the seconds since the header's `started_at`. `missed` tells what a cluster's
    storage remembers of changes that a watch could not deliver (`Cluster.missed`). `others` are types that
    are watched as well, as far as the credentials allow it: those that `served` returns. `belonging` sorts
    what is seen in a namespace that others use, too; there some types may be out of reach (`SPARED`).
    """

    def __init__(
        self,
        client: KubeClient,
        header: Header,
        sink: Callable[[Observation], object],
        redactor: Redactor,
        clock: Callable[[], float],
        *,
        timing: Timing = TIMING,
        missed: Missed | None = None,
        others: Sequence[Resource] = (),
        belonging: Belonging | None = None,
    ) -> None:
        self._client = client
        self._belonging = belonging
        self._missed = missed
        self._sink = sink
        self._redactor = redactor
        self._clock = clock
        self._timing = timing
        types = (*RECORDED, rollout_resource(header.subject.rollout))
        spared = SPARED if belonging is not None else ()
        self._tracks = [_Track(r, header.namespace, optional=r in spared) for r in types]
        self._tracks.append(_Track(kinds.HPA, header.namespace, optional=True))
        self._tracks.append(_Track(kinds.NODE, None, optional=True))
        self._tracks += [_Track(r, header.namespace, optional=True) for r in others]
        self._died: asyncio.Future[None] | None = None
        self._secrets_known = asyncio.Event()

    async def run(self) -> None:
        """Record until cancelled.

        A watch that dies is recorded as HarnessError, and the others go on: what they see still is
        evidence. `synced` and `died` tell the runner.
        """
        self._death()
        async with asyncio.TaskGroup() as group:
            for track in self._tracks:
                group.create_task(self._guard(track), name=f"watch {track.resource.label}")
            # TaskGroup would end with its tasks; recording ends when it is cancelled.
            group.create_task(asyncio.Event().wait(), name="until cancelled")

    async def synced(self) -> None:
        """Wait for the first list of every type. Raises WatchDied."""
        death = self._death()
        lists = asyncio.create_task(self._lists())
        try:
            waiting: list[asyncio.Future[None]] = [lists, death]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if death.done():
                death.result()
        finally:
            lists.cancel()

    async def died(self) -> None:
        """Wait until a watch dies, and raise WatchDied; ends in no other way but cancellation."""
        await asyncio.shield(self._death())

    async def complete(self, within: float = 10.0) -> bool:
        """Compare with the server, and wait up to `within` seconds for what is still on its way.

        For the end of a recording: a watch that has silently fallen behind would look like nothing
        having happened. Types that stay behind are recorded as gaps; returns whether there is none.
        """
        loop = asyncio.get_running_loop()
        start, deadline = self._clock(), loop.time() + within
        behind = [track for track in self._tracks if not track.off]
        while True:
            checked = await asyncio.gather(*(self._behind(track) for track in behind))
            behind = [track for track, late in zip(behind, checked, strict=True) if late]
            if not behind or loop.time() >= deadline:
                break
            await asyncio.sleep(_AGAIN)
        for track in behind:
            reason = f"the watch was behind the server for {within:g} s when the recording ended"
            self._state(track, "gap", since=start, reason=reason)
        return not behind

    async def _lists(self) -> None:
        for track in self._tracks:
            await track.synced.wait()

    async def _behind(self, track: _Track) -> bool:
        try:
            async with asyncio.timeout(5.0):
                items, _ = await self._client.list(
                    track.resource, track.namespace, metadata_only=True
                )
        except (KubeError, TimeoutError):
            return True
        have = {uid: _version(obj) for uid, obj in track.known.items()}
        return have != {_uid(item): _version(item) for item in items}

    async def _guard(self, track: _Track) -> None:
        try:
            # Secrets first: their values must be known before anything that may echo them.
            if track.resource != kinds.SECRET:
                await self._secrets_known.wait()
            await self._follow(track)
            msg = "it ended"
            raise WatchDied(msg)  # noqa: TRY301 - one place for every end
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be in the recording
            if track.optional and isinstance(error, Forbidden):
                track.off = True
                track.synced.set()
                if track.resource == kinds.SECRET:
                    self._secrets_known.set()  # none can be read here, so none can be told
                return
            message = self._redactor.text(f"the watch of {track.resource.label} died: {error}")
            self._sink(HarnessError(self._clock(), message))
            death = self._death()
            if not death.done():
                death.set_exception(WatchDied(message))
                death.exception()  # marks it as looked at: nobody has to wait for it
            if track.resource == kinds.SECRET:
                self._secrets_known.set()

    async def _follow(self, track: _Track) -> None:
        loop = asyncio.get_running_loop()
        events = watch(self._client, track.resource, track.namespace, timing=self._timing)
        try:
            async for event in events:
                if not isinstance(event, Listed):
                    self._seen(track, event.type, event.object)
                    continue
                if event.gap and not await self._caught_up(track, event):
                    ago = 0.0 if event.since is None else loop.time() - event.since
                    self._state(track, "gap", since=self._clock() - ago, reason=event.reason)
                self._listed(track, event.items)
                if not event.gap:
                    self._state(track, "synced")
                    track.synced.set()
                    if track.resource == kinds.SECRET:
                        self._secrets_known.set()
        finally:
            await events.aclose()

    async def _caught_up(self, track: _Track, listed: Listed) -> bool:
        """Record what happened between two lists, each change as if it had been watched; False when that cannot be known."""
        if self._missed is None:
            return False
        found = await changes_between(
            self._client,
            track.resource,
            track.namespace,
            listed,
            known=track.known,
            missed=self._missed,
        )
        for change, obj in found or ():
            self._seen(track, change, obj)
        # The list must hold nothing that these changes do not explain.
        have = {uid: _version(obj) for uid, obj in track.known.items()}
        return found is not None and have == {_uid(item): _version(item) for item in listed.items}

    def _listed(self, track: _Track, items: list[JSON]) -> None:
        """Record how a list differs from what was known: everything, the first time."""
        gone = dict(track.known)
        for item in items:
            before = gone.pop(_uid(item), None)
            if before is None:
                self._seen(track, "ADDED", item)
            elif _version(before) != _version(item):
                self._seen(track, "MODIFIED", item)
        for obj in gone.values():
            self._seen(track, "DELETED", obj)

    def _seen(self, track: _Track, change: Change, obj: JSON) -> None:
        before = track.known.get(_uid(obj))
        if _of_subject(obj):
            # Followed like any other object, so that nothing seems to be missing; but it is no part of what is drilled.
            if change == "DELETED":
                track.known.pop(_uid(obj), None)
            else:
                track.known[_uid(obj)] = {"metadata": obj["metadata"]}
            return
        redacted = self._redactor.object(obj)
        if track.resource == kinds.NODE:
            redacted = _slim_node(redacted)
        if change == "DELETED":
            track.known.pop(_uid(obj), None)
        else:
            track.known[_uid(obj)] = redacted
            if track.resource == kinds.NODE and before and _placing(before) == _placing(redacted):
                return  # heartbeats say nothing about where pods can run
        seen = [(change, redacted)]
        if self._belonging is not None:
            seen = self._belonging.sort(change, redacted)
        for what, state in seen:
            self._sink(ObjectSeen(self._clock(), what, state))

    def _state(
        self,
        track: _Track,
        state: Literal["synced", "gap"],
        *,
        since: float | None = None,
        reason: str = "",
    ) -> None:
        since = None if since is None else max(since, 0.0)
        res = track.resource
        kind = kind_of({"apiVersion": res.api_version, "kind": res.kind})
        self._sink(WatchState(self._clock(), kind, state, since, self._redactor.text(reason)))

    def _death(self) -> asyncio.Future[None]:
        if self._died is None:
            self._died = asyncio.get_running_loop().create_future()
        return self._died


def rollout_resource(rollout: RolloutKind) -> Resource:
    """Return the type of the rollout object."""
    group, version = parse_api_version(rollout.api_version)
    return Resource(group, version, rollout.plural, rollout.kind)


async def served(client: KubeClient) -> list[Resource]:
    """Return the types among `WHERE_SERVED` that the cluster serves. One request for those that it has not, one more for each group."""
    groups = (await client.raw("GET", "/apis")).get("groups") or ()
    versions = {
        (str(group.get("name")), str(version.get("version")))
        for group in groups
        for version in group.get("versions") or ()
    }
    found: dict[tuple[str, str], Resource] = {}
    for one in WHERE_SERVED:
        if (one.group, one.version) not in versions or (one.group, one.kind) in found:
            continue
        listed = (await client.raw("GET", f"/apis/{one.api_version}")).get("resources") or ()
        if any(row.get("name") == one.plural for row in listed):
            found[one.group, one.kind] = one
    return list(found.values())


def _of_subject(obj: JSON) -> bool:
    """Whether an object belongs to a subject that runs in the drill's namespace, or is an event about one."""
    if SUBJECT_LABEL in (obj["metadata"].get("labels") or {}):
        return True
    # An event has no label, and may come before what it is about.
    return str((obj.get("involvedObject") or {}).get("name", "")).startswith(CONTROLLER)


def _slim_node(node: JSON) -> JSON:
    # A node lists every image it has pulled: kilobytes that say nothing about a rollout.
    status = {k: v for k, v in (node.get("status") or {}).items() if k != "images"}
    return {**node, "status": status}


def _placing(node: JSON) -> tuple[object, ...]:
    """Return what of a node decides whether pods can run there."""
    spec = node.get("spec") or {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = [c.get("status") for c in conditions if c.get("type") == "Ready"]
    deleting = node["metadata"].get("deletionTimestamp")
    labels = node["metadata"].get("labels")
    return (ready, spec.get("unschedulable", False), spec.get("taints"), labels, deleting)


def _uid(obj: JSON) -> str:
    metadata = obj["metadata"]
    return str(metadata.get("uid") or metadata.get("name"))


def _version(obj: JSON) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))
