"""The raw objects of a drill as they are at one moment, and who owns whom."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from harness.checks import workloads
from harness.checks.kept import Kept
from harness.checks.paths import dig, name_of, owner_of
from harness.checks.pods import guessed_app

if TYPE_CHECKING:
    from harness.model.timeline import JSON

Key = tuple[str, str]
"""Kind and name."""
POD: Final = "Pod"
REPLICASET: Final = "ReplicaSet"
_ROOTS: Final = frozenset(workloads.KINDS) - {"ReplicaSet"}
_MAX_OWNERS: Final = 5
"""Longest chain of owners that is followed; a cycle in a broken recording must not hang the judge."""


class Objects:
    """Objects by kind and name, in the order in which they were first seen. Owners outlive them: a late pod still has its own."""

    def __init__(self, rollout_kind: str) -> None:
        self.rollout_kind = rollout_kind
        self.kept = Kept()
        self._by_kind: dict[str, dict[str, JSON]] = {}
        self._places: dict[Key, int] = {}
        self._count = 0
        self._owners: dict[Key, Key] = {}
        self._owned: dict[Key, set[Key]] = {}

    def of(self, kind: str) -> dict[str, JSON]:
        """Return the objects of a kind by name; not to be changed."""
        return self._by_kind.setdefault(kind, {})

    def get(self, kind: str, name: str) -> JSON | None:
        """Return an object, if it exists."""
        return self.of(kind).get(name)

    def place(self, kind: str, name: str) -> int:
        """Return a number that orders the objects as they were first seen."""
        return self._places.get((kind, name), 0)

    def workload(self, name: str) -> tuple[str, JSON] | None:
        """Return kind and object of the workload of a name."""
        for kind in workloads.KINDS:
            found = self.get(kind, name)
            if found is not None and self._stands_alone(name, found):
                return kind, found
        return None

    def _stands_alone(self, name: str, obj: JSON) -> bool:
        return self.kept.named(name) or workloads.is_top(obj, self.rollout_kind)

    def rollout_of(self, replica_set: str) -> str:
        """Return the name of the rollout object that controls a ReplicaSet, or did last; nothing where it is somebody else's."""
        above = self._owners.get((REPLICASET, replica_set), ("", ""))
        return above[1] if above[0] == self.rollout_kind else ""

    def kept_by(self, rollout: str) -> list[str]:
        """Return the ReplicaSets that a rollout object controls, or any does where none is named; sorted."""
        have = self.of(REPLICASET)
        owners = (
            [(self.rollout_kind, rollout)]
            if rollout
            else [key for key in self._owned if key[0] == self.rollout_kind]
        )
        owned = {
            name for key in owners for kind, name in self._owned.get(key, ()) if kind == REPLICASET
        }
        return sorted(owned & have.keys())

    def serves(self, replica_set: str) -> bool:
        """Whether a ReplicaSet is the primary of a rollout itself."""
        return self.kept.serves(replica_set, self.rollout_of(replica_set), self.of(REPLICASET))

    def keeper(self, pod: JSON) -> str:
        """Return the ReplicaSet that a pod belongs to, if that is the primary of a rollout itself; else nothing."""
        kind, name = owner_of(pod) or ("", "")
        return name if kind == REPLICASET and self.serves(name) else ""

    def put(self, kind: str, obj: JSON) -> bool:
        """Take a new state of an object; return whether it belongs to somebody else than before, as far as that was known."""
        name = name_of(obj)
        key = kind, name
        store = self.of(kind)
        if name not in store:
            self._count += 1
            self._places[key] = self._count
        store[name] = obj
        owner = owner_of(obj)
        before = self._owners.get(key)
        if owner is None or owner == before:
            return False
        if before is not None:
            self._owned[before].discard(key)
        self._owners[key] = owner
        self._owned.setdefault(owner, set()).add(key)
        return True

    def drop(self, kind: str, obj: JSON) -> bool:
        """Remove an object; False for a late word about an earlier one of that name, which must not remove its successor."""
        name = name_of(obj)
        store = self.of(kind)
        known = store.get(name)
        if known is None or uid(known) != uid(obj):
            return False
        del store[name]
        return True

    def pods_below(self, kind: str, name: str) -> list[str]:
        """Return the names of the pods that belong to an object, directly or not."""
        found: list[str] = []
        seen: set[Key] = set()
        pending = deque([(kind, name)])
        while pending:
            key = pending.popleft()
            if key in seen:
                continue
            seen.add(key)
            for owned in self._owned.get(key, ()):
                if owned[0] == POD:
                    found.append(owned[1])
                else:
                    pending.append(owned)
        return found

    def app(self, pod: JSON) -> str:
        """Return the name of the workload that a pod belongs to."""
        owner = owner_of(pod)
        if owner is None or owner not in self._owners:
            return guessed_app(pod)
        for _ in range(_MAX_OWNERS):
            above = self._owners.get(owner)
            # Whoever owns a Deployment, an operator's object for one, is no workload: the pods are the Deployment's.
            if above is None or above[0] == self.rollout_kind or owner[0] in _ROOTS:
                break
            owner = above
        return owner[1]


def uid(obj: JSON) -> str:
    """Return an object's uid."""
    return str(dig(obj, "metadata.uid", ""))
