"""A stand-in for Knative Serving: it makes revisions of Services, lets them become ready, and reports the traffic that was asked for.

It is no Knative: there are no pods, no autoscaler, no routes and no admission, and no request reaches anything. It is for tests of a
controller that only reads and writes Services and Revisions; reports name it.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import ApiError, Conflict, KubeError, NotFound
from harness.kube.resource import Resource
from harness.kube.watch import Changed, Listed, Timing, watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

GROUP: Final = "serving.knative.dev"
SERVICE: Final = Resource(GROUP, "v1", "services", "Service")
REVISION: Final = Resource(GROUP, "v1", "revisions", "Revision")
LABEL: Final = "rollout-drill/revision"
"""On the template of a Service: `never-ready`."""
TEMPLATE: Final = "rollout-drill/template"
"""Annotation of a revision: the digest of the template that it was made from."""
MANAGER: Final = "rollout-drill-knative-stand-in"
READY_MILLISECONDS: Final = range(200, 500)
"""How long a revision takes to become ready."""
TIMING: Final = Timing(patience=120.0, longest=0.5)

Key = tuple[str, str]
"""Namespace and name."""


class StandIn:
    """Looks after all Knative Services of a cluster while `run` runs; `say` is told what the API server refuses."""

    def __init__(self, client: KubeClient, seed: int, say: Callable[[str], None]) -> None:
        self._client = client
        self._seed = seed
        self._say = say
        self._said: set[str] = set()
        self._seen: dict[Resource, dict[Key, JSON]] = {SERVICE: {}, REVISION: {}}
        self._changed = asyncio.Event()
        self._ripening: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Work until cancelled. Raises KubeError when the API server does not answer any more."""
        async with asyncio.TaskGroup() as tasks:
            for resource in self._seen:
                tasks.create_task(self._follow(resource))
            while True:
                await self._changed.wait()
                self._changed.clear()
                for service in list(self._seen[SERVICE].values()):
                    with self._refusals():
                        await self._look_after(service, tasks)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """Go on with the other objects when one is refused."""
        try:
            yield
        except (NotFound, Conflict):
            pass  # what is gone, or was made a moment ago, comes by the watch
        except ApiError as error:
            text = str(error)
            # A namespace takes revisions along before their Service.
            if "being terminated" not in text and text not in self._said:
                self._said.add(text)
                self._say(f"The stand-in for Knative was refused: {text}.")

    async def _follow(self, resource: Resource) -> None:
        seen = self._seen[resource]
        async for event in watch(self._client, resource, timing=TIMING):
            match event:
                case Listed(items=items):
                    seen.clear()
                    seen.update({_key(one): one for one in items})
                case Changed(type="DELETED", object=obj):
                    seen.pop(_key(obj), None)
                case Changed(object=obj):
                    seen[_key(obj)] = obj
            self._changed.set()

    async def _look_after(self, service: JSON, tasks: asyncio.TaskGroup) -> None:
        if "deletionTimestamp" in service["metadata"]:
            return
        revisions = revisions_of(service, self._seen[REVISION].values())
        new = new_revision(service, revisions)
        if new is not None:
            await self._client.create(REVISION, new, field_manager=MANAGER)
            return
        for revision in revisions:
            self._ripen(revision, tasks)
        status = status_of(service, revisions)
        before = service.get("status") or {}
        if {**before, **status} != before:
            await self._patch_status(SERVICE, service, status)

    def _ripen(self, revision: JSON, tasks: asyncio.TaskGroup) -> None:
        labels = revision["metadata"].get("labels") or {}
        uid = str(revision["metadata"]["uid"])
        waits = labels.get(LABEL) == "never-ready" or uid in self._ripening
        if not waits and not is_ready(revision):
            self._ripening[uid] = tasks.create_task(self._make_ready(revision))

    async def _make_ready(self, revision: JSON) -> None:
        await asyncio.sleep(delay(self._seed, revision) / 1000)
        status = {
            "observedGeneration": revision["metadata"].get("generation", 1),
            "conditions": [_condition("Ready", "True", "", revision)],
        }
        with self._refusals():
            await self._patch_status(REVISION, revision, status)

    async def _patch_status(self, resource: Resource, obj: JSON, status: JSON) -> None:
        namespace, name = _key(obj)
        await self._client.patch(
            resource,
            name,
            namespace,
            {"metadata": {"uid": obj["metadata"]["uid"]}, "status": status},
            field_manager=MANAGER,
            subresource="status",
        )


@contextlib.asynccontextmanager
async def playing(client: KubeClient, seed: int, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Play the stand-in for the time of the block; `say` is told when it cannot go on."""

    async def play() -> None:
        try:
            await StandIn(client, seed, say).run()
        except* KubeError as several:
            say(f"The stand-in for Knative has ended: {several.exceptions[0]}.")

    task = asyncio.create_task(play())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def delay(seed: int, revision: JSON) -> int:
    """Return how many milliseconds a revision takes, the same for the same seed and name (namespaces are random)."""
    text = f"{seed}/{revision['metadata']['name']}".encode()
    span = READY_MILLISECONDS
    return span[int.from_bytes(hashlib.sha256(text).digest()[:4], "big") % len(span)]


def revisions_of(service: JSON, revisions: Any) -> list[JSON]:
    """Return a Service's revisions, the oldest first."""
    uid = service["metadata"]["uid"]
    own = [
        one
        for one in revisions
        if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences") or ())
    ]
    return sorted(own, key=_number)


def new_revision(service: JSON, revisions: Sequence[JSON]) -> JSON | None:
    """Return the revision that a changed template asks for; None when the newest was made from it."""
    template = service["spec"].get("template") or {}
    # A client with types of its own writes back empty fields that the user left out, which is no change.
    said = json.dumps(_without_empty(template), sort_keys=True)
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    if revisions and revisions[-1]["metadata"]["annotations"][TEMPLATE] == digest:
        return None
    metadata = service["metadata"]
    number = _number(revisions[-1]) + 1 if revisions else 1
    given = template.get("metadata") or {}
    name = given.get("name") or f"{metadata['name']}-{number:05}"
    if any(one["metadata"]["name"] == name for one in revisions):
        return None  # a name of the user's own is used once
    return {
        "apiVersion": REVISION.api_version,
        "kind": REVISION.kind,
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {
                **(given.get("labels") or {}),
                f"{GROUP}/service": metadata["name"],
                f"{GROUP}/configuration": metadata["name"],
                f"{GROUP}/configurationGeneration": str(number),
            },
            "annotations": {**(given.get("annotations") or {}), TEMPLATE: digest},
            "ownerReferences": [
                {
                    "apiVersion": SERVICE.api_version,
                    "kind": SERVICE.kind,
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": copy.deepcopy(template.get("spec") or {}),
    }


def status_of(service: JSON, revisions: Sequence[JSON]) -> JSON:
    """Return a Service's status, for its generation: the newest revision, the newest that is ready, traffic and conditions.

    Traffic stays as it was while a part of it has no ready revision.
    """
    created = revisions[-1]["metadata"]["name"] if revisions else ""
    ready = [one["metadata"]["name"] for one in revisions if is_ready(one)]
    before = service.get("status") or {}
    traffic = _traffic(service, ready)
    deployed = "True" if created in ready else "Unknown"
    routed = "Unknown" if traffic is None else "True"
    whole = "True" if deployed == routed == "True" else "Unknown"
    states = {"ConfigurationsReady": deployed, "Ready": whole, "RoutesReady": routed}
    status: JSON = {
        "observedGeneration": service["metadata"].get("generation", 1),
        "latestCreatedRevisionName": created,
        "traffic": before.get("traffic", []) if traffic is None else traffic,
        "conditions": [
            _condition(name, state, "" if state == "True" else "Deploying", service)
            for name, state in states.items()
        ],
    }
    if ready:
        status["latestReadyRevisionName"] = ready[-1]
    return status


def is_ready(revision: JSON) -> bool:
    """Whether a revision says that it is ready."""
    conditions = (revision.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _traffic(service: JSON, ready: Sequence[str]) -> list[JSON] | None:
    """Return the traffic that the spec asks for, with names of revisions; None while one of them is not ready."""
    wanted = service["spec"].get("traffic") or [{"latestRevision": True, "percent": 100}]
    rows = []
    for row in wanted:
        latest = not row.get("revisionName")
        name = (ready[-1] if ready else "") if latest else row["revisionName"]
        if name not in ready:
            return None
        kept = {key: row[key] for key in ("percent", "tag") if key in row}
        rows.append({**kept, "latestRevision": latest, "revisionName": name})
    return rows


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, {}, [])}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value


def _condition(kind: str, status: str, reason: str, obj: JSON) -> JSON:
    """Return a condition; its time is that of the object's own one where nothing has changed."""
    known = (obj.get("status") or {}).get("conditions") or []
    since = next(
        (
            one["lastTransitionTime"]
            for one in known
            if one["type"] == kind and one["status"] == status
        ),
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    row = {"type": kind, "status": status, "lastTransitionTime": since}
    return {**row, "reason": reason} if reason else row


def _number(revision: JSON) -> int:
    labels = revision["metadata"].get("labels") or {}
    return int(labels.get(f"{GROUP}/configurationGeneration", 0))


def _key(obj: JSON) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
