"""The simulated API server: objects of every kind with resourceVersion, generation, managedFields, finalizers and owners.

Nothing is validated but what a test's `admission` refuses. What the controller sees of it may lag behind (`drop_events`).
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.names import MANAGER
from harness.controller.core.pruned import FENCE_FIELD
from harness.tests.controller_sim_make import merge
from harness.tests.controller_traces import note_writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Write

JSON = dict[str, Any]
Key = tuple[str, str]
START = 1_800_000_000.0
_UNCOUNTED: Final = frozenset({"services", "configmaps", "secrets", "horizontalpodautoscalers"})
"""Kinds whose generation the API server does not count."""
_WAITS_FOR: Final = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}
"""The finalizer that a way to delete puts on the object."""


class Refused(Exception):  # noqa: N818 - as the API server answers
    """A precondition did not hold, or the object exists, or is gone: a conflict."""


class Invalid(Exception):  # noqa: N818 - as the API server answers
    """The object is not acceptable; no new read helps."""


@dataclass
class Pod:
    revision: str
    """The template it was made from, as JSON."""
    ready_at: float | None
    """None: never."""
    node: str = ""
    uid: str = ""
    owner: str = ""
    """UID of its ReplicaSet; empty for a pod of anything else."""


def promptly(_name: str, _template: JSON, _index: int) -> float | None:
    return 1.0


class Server:
    """Objects of one namespace, and the pods in it."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None]) -> None:
        self.now = START
        self.delay = delay
        """Seconds until a pod of (workload, template, index) is ready; None for never."""
        self.objects: dict[Key, JSON] = {}
        self.pods: dict[str, list[Pod]] = {}
        """By name of the workload, of the ReplicaSet that is no Deployment's, or of the Knative revision."""
        self.prunes_fence = False
        """The installed CRD has no place for the fence, whether the controller knows or not."""
        self.admission: Callable[[str, str, JSON], str] | None = None
        """Gets verb, plural and object of each write of the controller; a sentence refuses it as invalid."""
        self.conflict_every: int | None = None
        """Every write of the controller with this number is refused once, as if somebody had been faster."""
        self._attempts = 0
        self._version = 0
        self.born: list[str] = []
        """UIDs of everything that was ever created, oldest first."""
        self._gone: set[str] = set()
        self._stale: dict[Key, JSON | None] = {}

    @property
    def t(self) -> float:
        """Seconds since the start."""
        return round(self.now - START, 3)

    def get(self, resource: str, name: str) -> JSON | None:
        return self.objects.get((resource, name))

    def of(self, resource: str) -> dict[str, JSON]:
        """All objects of a plural, by name."""
        return {name: obj for (plural, name), obj in self.objects.items() if plural == resource}

    # -- what users do -----------------------------------------------------------------------------------------------

    def add(self, resource: str, obj: JSON, manager: str = "user") -> None:
        """A user, or the controller, creates an object."""
        obj = copy.deepcopy(obj)
        key = (resource, obj["metadata"]["name"])
        if key in self.objects:
            raise Refused(key)
        meta = obj["metadata"]
        # The same in every run of a story, whatever was written meanwhile.
        meta["uid"] = f"uid-{resource}-{obj['metadata']['name']}-{len(self.born)}"
        self.born.append(meta["uid"])
        if resource not in _UNCOUNTED:
            meta["generation"] = 1
        meta["creationTimestamp"] = self._second()
        note_writer({}, obj, "spec", manager, self._second())
        self._store(resource, obj)

    def edit(self, resource: str, name: str, patch: JSON, manager: str = "user") -> None:
        """A user, or the controller, changes an object with a merge patch."""
        self._update(resource, merge(self.objects[resource, name], patch), manager)

    def edit_status(self, patch: JSON, manager: str = "user") -> None:
        """Somebody else writes the Canary's status."""
        canary = self.objects["canaries", "web"]
        obj = merge(canary, {"status": patch})
        obj["metadata"] = copy.deepcopy(obj["metadata"])
        note_writer(canary, obj, "status", manager, self._second())
        self._store("canaries", obj)

    def remove(self, resource: str, name: str, propagation: str = "Background") -> None:
        """A user, or the controller, deletes an object; with finalizers it stays, marked, until they are gone.

        `Orphan` and `Foreground` are finalizers for the garbage collector: what the object owns is let go, or deleted, before it goes.
        """
        obj = copy.deepcopy(self.objects[resource, name])
        meta = obj["metadata"]
        if propagation in _WAITS_FOR and "deletionTimestamp" not in meta:
            meta["finalizers"] = [*(meta.get("finalizers") or []), _WAITS_FOR[propagation]]
        if not meta.get("finalizers"):
            self._vanish(resource, name)
            return
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = self._second()
            if "generation" in meta:
                meta["generation"] += 1
            self._store(resource, obj)

    # -- what players do ---------------------------------------------------------------------------------------------

    def observe(self, resource: str, name: str, status: JSON) -> None:
        """The object's own controller replaces its status."""
        self._store(resource, {**self.objects[resource, name], "status": status})

    def leftovers(self) -> list[Key]:
        """What a Canary owns, alive or not, and what belongs to something else that is gone."""
        found = []
        for key, obj in self.objects.items():
            owners = obj["metadata"].get("ownerReferences") or []
            if any(o["kind"] == "Canary" or o.get("uid") in self._gone for o in owners):
                found.append(key)
        return found

    def collect(self) -> None:
        """The garbage collector removes what is owned by nobody any more, whoever of the owners was the controller."""
        for resource, name in list(self.objects):
            obj = self.objects.get((resource, name))
            if obj is None:
                continue
            meta = obj["metadata"]
            owners = meta.get("ownerReferences") or []
            alive = [owner for owner in owners if owner.get("uid") not in self._gone]
            if owners and not alive:
                self.remove(resource, name)
            elif alive != owners:
                self._store(resource, _owned_by(obj, alive))
            if meta.get("deletionTimestamp") and meta.get("finalizers"):
                self._let_go(resource, name)

    def _let_go(self, resource: str, name: str) -> None:
        """Release, or delete, what a deleted object owns, when its deletion was to wait for that."""
        meta = self.objects[resource, name]["metadata"]
        owned = [
            (key, owners)
            for key, obj in self.objects.items()
            if (owners := obj["metadata"].get("ownerReferences") or [])
            and any(owner.get("uid") == meta["uid"] for owner in owners)
        ]
        for how in ("Orphan", "Foreground"):
            if _WAITS_FOR[how] not in meta["finalizers"]:
                continue
            for key, owners in owned:
                rest = [owner for owner in owners if owner.get("uid") != meta["uid"]]
                if how == "Orphan" or rest:
                    self._store(key[0], _owned_by(self.objects[key], rest))
                else:
                    self.remove(*key)
            left = [item for item in meta["finalizers"] if item != _WAITS_FOR[how]]
            self._update(
                resource,
                merge(self.objects[resource, name], {"metadata": {"finalizers": left}}),
                "gc",
            )
            return

    # -- what the controller sees and does ---------------------------------------------------------------------------

    def drop_events(self, resource: str, name: str) -> None:
        """From now on the controller sees this object as it is at this moment, until `relist()`."""
        self._stale.setdefault((resource, name), copy.deepcopy(self.get(resource, name)))

    def relist(self) -> None:
        """The controller reads everything again."""
        self._stale.clear()
        self._next()

    def seen(self) -> dict[str, dict[str, JSON]]:
        """Everything as the controller sees it, by plural and name."""
        result: dict[str, dict[str, JSON]] = {}
        for (resource, name), obj in ({**self.objects, **self._stale}).items():
            if obj is not None:
                result.setdefault(resource, {})[name] = obj
        return result

    def carry_out(self, write: Write) -> JSON:
        """Do one write of the controller and return the answer. Raises Refused or Invalid."""
        key = (write.resource, write.name)
        held = self.objects.get(key)
        self._admit(write)
        if write.verb == "create":
            self.add(write.resource, write.body, MANAGER)
        elif held is None:
            if write.verb != "delete":
                raise Refused(write)
        elif not _meant(write, held["metadata"]):
            raise Refused(write)
        elif write.verb == "delete":
            self.remove(*key)
        elif write.verb == "patch":
            self.edit(write.resource, write.name, write.body, MANAGER)
        else:
            self._update(write.resource, copy.deepcopy(write.body), MANAGER)
        if key in self._stale:
            self._stale[key] = copy.deepcopy(self.objects.get(key))
        return self.objects.get(key) or held or {}

    def patch_status(self, canary: JSON, patch: JSON) -> None:
        """Write the Canary's status, decided on that copy of it. Raises Refused."""
        held = self.get("canaries", "web")
        self._conflict(patch)
        if (
            held is None
            or held["metadata"]["resourceVersion"] != canary["metadata"]["resourceVersion"]
        ):
            raise Refused(patch)
        self.edit_status(patch, MANAGER)
        if ("canaries", "web") in self._stale:
            self._stale["canaries", "web"] = copy.deepcopy(self.objects["canaries", "web"])

    def _admit(self, write: Write) -> None:
        if self.admission is not None:
            why = self.admission(write.verb, write.resource, write.body)
            if why:
                raise Invalid(why)
        self._conflict(write)

    def _conflict(self, what: object) -> None:
        self._attempts += 1
        if self.conflict_every and self._attempts % self.conflict_every == 0:
            raise Refused(what)

    # -- storage -----------------------------------------------------------------------------------------------------

    def _update(self, resource: str, obj: JSON, manager: str) -> None:
        old = self.objects[resource, obj["metadata"]["name"]]
        obj["metadata"] = copy.deepcopy(obj["metadata"])
        obj["metadata"]["managedFields"] = copy.deepcopy(old["metadata"]["managedFields"])
        if "deletionTimestamp" in old["metadata"]:
            obj["metadata"]["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
        if obj.get("spec") != old.get("spec"):
            if "generation" in old["metadata"]:
                obj["metadata"]["generation"] = old["metadata"]["generation"] + 1
            note_writer(old, obj, "spec", manager, self._second())
        self._store(resource, obj)
        if "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers"):
            self._vanish(resource, obj["metadata"]["name"])

    def _vanish(self, resource: str, name: str) -> None:
        obj = self.objects.pop((resource, name))
        self._gone.add(obj["metadata"]["uid"])
        self._next()

    def _second(self) -> str:
        """Now, as the API server writes it: in whole seconds."""
        return datetime.fromtimestamp(int(self.now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _store(self, resource: str, obj: JSON) -> None:
        key = (resource, obj["metadata"]["name"])
        old = self.objects.get(key)
        if old is not None:
            version = old["metadata"]["resourceVersion"]
            obj["metadata"] = {**obj["metadata"], "resourceVersion": version}
            if obj == old:
                return
        obj["metadata"]["resourceVersion"] = str(self._next())
        if resource == "canaries" and self.prunes_fence:
            obj.get("status", {}).pop(FENCE_FIELD, None)
        self.objects[key] = json.loads(json.dumps(obj))

    def _next(self) -> int:
        self._version += 1
        return self._version


def _owned_by(obj: JSON, owners: list[JSON]) -> JSON:
    meta = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    return {**obj, "metadata": {**meta, "ownerReferences": owners} if owners else meta}


def _meant(write: Write, meta: JSON) -> bool:
    """Whether a write was decided on this very object; a delete may come without a precondition."""
    free = write.verb == "delete" and not write.precondition
    same = free or write.precondition == meta["resourceVersion"]
    return same and write.uid in ("", meta["uid"])
