"""What the watches have brought: the newest known state of every object, by kind and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core import World
from harness.controller.core.names import Names, names_of
from harness.controller.shell.slim import slim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.core.decision import JSON

CANARIES, DEPLOYMENTS, SERVICES = "canaries", "deployments", "services"
PLURALS = (CANARIES, DEPLOYMENTS, SERVICES)

_Key = tuple[str, str]


class Cache:
    """Objects of one namespace, and which Canaries each of them matters to.

    Every look-up is by name: what one event costs does not depend on how many Canaries there are. Answers to our own writes are put
    in as well, so that a pass never decides on a state that it has changed itself. A watch event that is older than such an answer is
    dropped.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, JSON]] = {plural: {} for plural in PLURALS}
        self._interest: dict[_Key, set[str]] = {}
        self._keys: dict[str, tuple[_Key, ...]] = {}
        """Of each Canary, where it stands in `_interest`."""

    def get(self, plural: str, name: str) -> JSON | None:
        """Return an object, or None."""
        return self._objects[plural].get(name)

    def names(self, plural: str) -> list[str]:
        """Return the names of all objects of a kind."""
        return list(self._objects[plural])

    def world(self, canary: JSON) -> World:
        """Return what `decide()` needs to know about a Canary."""
        names = names_of(canary, None)
        deployments, services = self._objects[DEPLOYMENTS], self._objects[SERVICES]
        wanted = (names.apex, names.primary_service, names.canary_service)
        return World(
            target=deployments.get(names.target),
            primary=deployments.get(names.primary),
            services={name: services[name] for name in wanted if name in services},
        )

    def put(self, plural: str, obj: JSON) -> set[str]:
        """Take in an object; return the Canaries that it matters to. Nothing when a newer state is known."""
        name = obj["metadata"]["name"]
        held = self._objects[plural].get(name)
        if held is not None and _same_object(held, obj) and _version(obj) <= _version(held):
            return set()
        self._objects[plural][name] = slim(plural, obj)
        if plural == CANARIES:
            self._index(obj)
        return self._concerned(plural, name)

    def remove(self, plural: str, obj: JSON) -> set[str]:
        """Take note of a deletion; return the Canaries that it matters to."""
        name = obj["metadata"]["name"]
        held = self._objects[plural].get(name)
        if held is not None and not _same_object(held, obj):
            return set()  # another object of that name has taken its place
        self._objects[plural].pop(name, None)
        if plural == CANARIES:
            self._forget(name)
        return self._concerned(plural, name)

    def replace(self, plural: str, objects: Iterable[JSON]) -> None:
        """Take in a complete list; what is not in it is gone."""
        self._objects[plural] = {obj["metadata"]["name"]: slim(plural, obj) for obj in objects}
        if plural == CANARIES:
            self._interest.clear()
            self._keys.clear()
            for obj in self._objects[plural].values():
                self._index(obj)

    def _index(self, canary: JSON) -> None:
        name = canary["metadata"]["name"]
        keys = tuple(_keys(names_of(canary, None)))
        if self._keys.get(name) == keys:
            return
        self._forget(name)
        self._keys[name] = keys
        for key in keys:
            self._interest.setdefault(key, set()).add(name)

    def _forget(self, canary: str) -> None:
        for key in self._keys.pop(canary, ()):
            known = self._interest[key]
            known.discard(canary)
            if not known:
                del self._interest[key]

    def _concerned(self, plural: str, name: str) -> set[str]:
        return {name} if plural == CANARIES else set(self._interest.get((plural, name), ()))


def _keys(names: Names) -> Iterable[_Key]:
    for name in (names.target, names.primary):
        yield DEPLOYMENTS, name
    for name in (names.apex, names.primary_service, names.canary_service):
        yield SERVICES, name


def _same_object(one: JSON, other: JSON) -> bool:
    return bool(one["metadata"].get("uid") == other["metadata"].get("uid"))


def _version(obj: JSON) -> int:
    # Comparable as numbers since Kubernetes 1.35, and in fact always since etcd 3.
    version = str(obj["metadata"].get("resourceVersion") or "")
    return int(version) if version.isdigit() else 0
