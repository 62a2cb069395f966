"""What a fake API server holds: objects, their history, and the watches on them."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.kube import fake_patches as patches
from harness.kube.errors import Unreachable
from harness.kube.resource import KNOWN, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model.timeline import JSON

CREATED: Final = "2024-01-01T00:00:00Z"
Key = tuple[str, str, str]
"""Plural with group (`deployments.apps`), namespace or "", name."""


class Refusal(Exception):  # noqa: N818 - an answer, not a fault of the fake
    """An answer of 400 and above."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message

    def status_object(self) -> JSON:
        """Return the raw Status."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.status,
            "reason": self.reason,
            "message": self.message,
        }


@dataclass(slots=True, eq=False)
class Subscription:
    """One open watch."""

    resource: Resource
    namespace: str
    params: Mapping[str, str]
    queue: asyncio.Queue[bytes | Exception | None] = field(default_factory=asyncio.Queue)
    dead: bool = False

    def offer(self, change: str, new: JSON, old: JSON | None) -> None:
        """Queue a change as this watch's selectors see it."""
        if self.dead or self.namespace not in ("", new["metadata"].get("namespace", "")):
            return
        now, before = self.selects(new), old is not None and self.selects(old)
        if change == "MODIFIED" and now != before:
            change = "ADDED" if now else "DELETED"
        elif not now:
            return
        self.send(change, new)

    def send(self, change: str, obj: JSON) -> None:
        """Queue one event."""
        self.queue.put_nowait(json.dumps({"type": change, "object": obj}).encode() + b"\n")

    def selects(self, obj: JSON) -> bool:
        """Return whether the selectors match."""
        return selected(obj, self.params)


class Storage:
    """Objects, their history, and everything a request can do to them."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources = [*KNOWN, *resources]
        self.version = 100
        self.oldest = 0
        """The smallest version a watch can still be resumed at."""
        self.broken_groups: set[str] = set()
        self.unknown: dict[str, set[tuple[str, str]]] = {}
        """By kind, the fields (section, name) that its schema does not know: dropped from whatever is written."""
        self._objects: dict[Key, JSON] = {}
        self._applied: dict[Key, dict[str, JSON]] = {}
        self._history: list[tuple[int, Resource, str, JSON, JSON | None]] = []
        self._subscriptions: list[Subscription] = []
        self._serial = 0

    # ---- past the API

    def put(self, obj: JSON) -> JSON:
        """Store an object as it is."""
        resource = self._of(obj)
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "") if resource.namespaced else ""
        key = (resource.label, namespace, metadata["name"])
        return self._store(resource, key, copy.deepcopy(obj))

    def merge(self, kind: str, name: str, namespace: str | None, change: JSON) -> JSON:
        """Merge into an object; KeyError when there is none."""
        resource = self._of_kind(kind)
        key = (resource.label, namespace or "", name)
        return self._store(resource, key, patches.merge_patch(self._objects[key], change))

    def pruned(self, kind: str, obj: JSON) -> JSON:
        """Return an object without the fields that its schema does not know."""
        result = copy.deepcopy(obj)
        for section, name in self.unknown.get(kind, ()):
            result.get(section, {}).pop(name, None)
        return result

    def drop(self, kind: str, name: str, namespace: str | None) -> None:
        """Remove an object and what only it owns."""
        resource = self._of_kind(kind)
        self._remove(resource, (resource.label, namespace or "", name))

    def find(self, kind: str, name: str, namespace: str | None) -> JSON | None:
        """Return an object, or None."""
        return copy.deepcopy(self._objects.get((self._of_kind(kind).label, namespace or "", name)))

    def all(self, kind: str, namespace: str | None) -> list[JSON]:
        """Return the objects of a kind, by name."""
        label = self._of_kind(kind).label
        return [
            copy.deepcopy(obj)
            for key, obj in sorted(self._objects.items())
            if key[0] == label and namespace in (None, key[1])
        ]

    # ---- watches

    def subscribe(
        self, resource: Resource, namespace: str, params: Mapping[str, str]
    ) -> Subscription:
        """Open a watch; Refusal 410 when its version is too old."""
        subscription = Subscription(resource, namespace, params)
        start = int(params.get("resourceVersion") or self.version)
        if start < self.oldest:
            raise Refusal(410, "Expired", f"too old resource version: {start} ({self.oldest})")
        for version, changed, change, new, old in self._history:
            if version > start and changed == resource:
                subscription.offer(change, new, old)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a watch."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    @property
    def watching(self) -> int:
        """How many watches are open."""
        return len(self._subscriptions)

    def break_off(self) -> None:
        """Break every watch."""
        for subscription in self._take():
            subscription.queue.put_nowait(Unreachable("the connection to the fake cluster broke"))

    def end(self) -> None:
        """End every watch in order."""
        for subscription in self._take():
            subscription.queue.put_nowait(None)

    def expire(self) -> None:
        """Send 410 on every watch, and keep no earlier version."""
        self.version += 1
        self.oldest = self.version
        refusal = Refusal(410, "Expired", "too old resource version: injected")
        for subscription in self._take():
            subscription.send("ERROR", refusal.status_object())
            subscription.queue.put_nowait(None)

    def silence(self) -> None:
        """Let every watch deliver nothing more."""
        for subscription in self._take():
            subscription.dead = True

    def bookmark(self) -> None:
        """Send a bookmark on every watch."""
        for subscription in self._subscriptions:
            subscription.queue.put_nowait(self.bookmark_line(subscription))

    def bookmark_line(self, subscription: Subscription) -> bytes:
        """Return a bookmark with the present version."""
        metadata = {"resourceVersion": str(self.version)}
        obj = {
            "apiVersion": subscription.resource.api_version,
            "kind": subscription.resource.kind,
            "metadata": metadata,
        }
        return json.dumps({"type": "BOOKMARK", "object": obj}).encode() + b"\n"

    def _take(self) -> list[Subscription]:
        taken, self._subscriptions = self._subscriptions, []
        return taken

    # ---- storage

    def _store(self, resource: Resource, key: Key, obj: JSON) -> JSON:
        old = self._objects.get(key)
        metadata = obj["metadata"] = dict(obj["metadata"])
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        obj = self.pruned(resource.kind, obj) if resource.kind in self.unknown else obj
        metadata = obj["metadata"]
        if old is not None and _bare(old) == _bare(obj):
            return copy.deepcopy(old)
        self._serial += 1
        self.version += 1
        metadata.setdefault("uid", (old or obj)["metadata"].get("uid", f"uid-{self._serial}"))
        metadata.setdefault("creationTimestamp", CREATED)
        if "spec" in obj:
            spent = old is not None and old.get("spec") == obj["spec"]
            before = (old or {}).get("metadata", {}).get("generation", 0)
            if old is None:
                metadata.setdefault("generation", 1)
            else:
                metadata["generation"] = before + (not spent)
        metadata["resourceVersion"] = str(self.version)
        if old is not None and metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._remove(resource, key)
            return copy.deepcopy(obj)
        self._objects[key] = obj
        self._publish(resource, "ADDED" if old is None else "MODIFIED", obj, old)
        return copy.deepcopy(obj)

    def _remove(self, resource: Resource, key: Key, orphan: bool = False) -> None:  # noqa: FBT001, FBT002
        obj = self._objects.pop(key)
        self._applied.pop(key, None)
        self.version += 1
        last = copy.deepcopy(obj)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._publish(resource, "DELETED", last, obj)
        if resource.label == "namespaces":
            for inner in [k for k in self._objects if k[1] == key[2]]:
                if inner in self._objects:
                    self._remove(self._of_label(inner[0]), inner)
        self._collect(obj["metadata"]["uid"], orphan=orphan)

    def _collect(self, uid: str, *, orphan: bool) -> None:
        """Remove what only the removed object owned, as the garbage collector would."""
        for key, obj in list(self._objects.items()):
            owners = obj["metadata"].get("ownerReferences") or []
            left = [owner for owner in owners if owner.get("uid") != uid]
            if len(left) == len(owners) or key not in self._objects:
                continue
            if left or orphan:
                changed = copy.deepcopy(obj)
                changed["metadata"]["ownerReferences"] = left
                self._store(self._of_label(key[0]), key, changed)
            elif obj["metadata"].get("finalizers"):
                changed = copy.deepcopy(obj)
                changed["metadata"].setdefault("deletionTimestamp", CREATED)
                self._store(self._of_label(key[0]), key, changed)
            else:
                self._remove(self._of_label(key[0]), key)

    def _publish(self, resource: Resource, change: str, new: JSON, old: JSON | None) -> None:
        new = copy.deepcopy(new)
        self._history.append((self.version, resource, change, new, old))
        for subscription in self._subscriptions:
            if subscription.resource == resource:
                subscription.offer(change, new, old)

    def objects_at(self, version: int) -> dict[Key, JSON]:
        """Return what was stored when `version` was the present one."""
        found: dict[Key, JSON] = {}
        for at, resource, change, new, _ in self._history:
            key = (resource.label, new["metadata"].get("namespace", ""), new["metadata"]["name"])
            if at <= version and change == "DELETED":
                found.pop(key, None)
            elif at <= version:
                found[key] = new
        return found

    def changes(
        self, resource: Resource, namespace: str | None, after: int, until: int
    ) -> list[tuple[str, int, bool]]:
        """Return name, version and whether it is a deletion, for every change of a type behind `after`, up to `until`."""
        return [
            (new["metadata"]["name"], at, change == "DELETED")
            for at, changed, change, new, _ in self._history
            if changed == resource
            and namespace in (None, new["metadata"].get("namespace"))
            and after < at <= until
        ]

    # ---- types

    def _of(self, obj: JSON) -> Resource:
        """Return the type of an object; by kind alone when none has its apiVersion too, since tests leave that out."""
        kind, version = obj["kind"], obj.get("apiVersion")
        same = (r for r in self.resources if (r.kind, r.api_version) == (kind, version))
        return next(same, None) or self._of_kind(kind)

    def _of_kind(self, kind: str) -> Resource:
        return next(r for r in self.resources if r.kind == kind)

    def _of_label(self, label: str) -> Resource:
        return next(r for r in self.resources if r.label == label)


def selected(obj: JSON, params: Mapping[str, str]) -> bool:
    """Return whether the selectors of a list or a watch match."""
    return patches.matches_labels(obj, params.get("labelSelector", "")) and patches.matches_fields(
        obj, params.get("fieldSelector", "")
    )


def _bare(obj: JSON) -> JSON:
    """Return an object without what every write changes, to see whether anything else did."""
    volatile = ("resourceVersion", "generation", "uid", "creationTimestamp")
    metadata = {k: v for k, v in obj["metadata"].items() if k not in volatile}
    return {**obj, "metadata": metadata}
