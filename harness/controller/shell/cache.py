"""What the watches have brought: the newest known state of every object, by kind and name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core import World, needs
from harness.controller.core.names import names_of
from harness.controller.core.policy import DEFAULT, Policy
from harness.controller.core.targets.registry import target_for
from harness.controller.shell.slim import slim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.core.decision import JSON

CANARIES, DEPLOYMENTS, SERVICES = "canaries", "deployments", "services"
TARGETS: Final = ("deployments", "daemonsets", "services", "kservices")


class Cache:
    """Objects of one namespace, and which Canaries each of them matters to.

    Every look-up is by name: what one event costs does not depend on how many Canaries there are. Answers to our own writes are put
    in as well, so that a pass never decides on a state that it has changed itself. A watch event that is older than such an answer is
    dropped.
    """

    def __init__(self, *, configs: bool = False, policy: Policy = DEFAULT) -> None:
        self._configs = configs
        """Whether ConfigMaps and Secrets are tracked."""
        self._policy = policy
        self._objects: dict[str, dict[str, JSON]] = {CANARIES: {}}
        self._absent: dict[str, str] = {}
        self._interest: dict[needs.Key, set[str]] = {}
        self._keys: dict[str, tuple[needs.Key, ...]] = {}
        """Of each Canary, where it stands in `_interest`."""
        self._generations: dict[needs.Key, tuple[str, int]] = {}
        """Of each target, the state that its Canaries' interest was worked out from."""

    def get(self, plural: str, name: str) -> JSON | None:
        """Return an object, or None."""
        return self._objects.get(plural, {}).get(name)

    def names(self, plural: str) -> list[str]:
        """Return the names of all objects of a kind."""
        return list(self._objects.get(plural, {}))

    # -- which kinds there are ---------------------------------------------------------------------------------------

    def kinds(self, canary: JSON) -> tuple[str, ...]:
        """Return the kinds that a Canary needs."""
        return needs.kinds(canary, configs=self._configs)

    def wanted(self) -> set[str]:
        """Return the kinds that any Canary needs."""
        return {kind for canary in self._objects[CANARIES].values() for kind in self.kinds(canary)}

    def missing(self, canary: JSON) -> list[str]:
        """Return the kinds that a Canary needs and of which nothing is known yet, not even that they are not there."""
        return [
            kind
            for kind in self.kinds(canary)
            if kind not in self._objects and kind not in self._absent
        ]

    def cannot(self, plural: str, why: str) -> set[str]:
        """Take note that a kind cannot be watched; return the Canaries that need it, unless it was known."""
        if self._absent.get(plural) == why or plural in self._objects:
            return set()
        self._absent[plural] = why
        return self._needing(plural)

    def _needing(self, plural: str) -> set[str]:
        canaries = self._objects[CANARIES].items()
        return {name for name, canary in canaries if plural in self.kinds(canary)}

    # -- a Canary's view ---------------------------------------------------------------------------------------------

    def world(self, canary: JSON) -> World:
        """Return what `decide()` needs to know about a Canary."""
        names, kind = names_of(canary, None), target_for(canary)
        targets = self._objects.get(kind.plural if kind else DEPLOYMENTS, {})
        services = self._objects.get(SERVICES, {})
        kinds = self.kinds(canary)
        wanted = (
            names.apex,
            names.primary_service,
            names.canary_service,
            names.target + "-canary",
        )
        return World(
            target=targets.get(names.target),
            # What serves as primary of a Knative Service is a revision.
            primary=None if "krevisions" in kinds else targets.get(names.primary),
            services={name: services[name] for name in wanted if name in services},
            objects={kind: self._objects[kind] for kind in kinds if kind in self._objects},
            absent={
                kind: self._absent[kind]
                for kind in kinds
                if kind in self._absent and not needs.optional(kind)
            },
            policy=self._policy,
            rival=self._rival(canary),
        )

    def target(self, canary: JSON) -> JSON | None:
        """Return a Canary's target, or None."""
        kind = target_for(canary)
        return self.get(kind.plural if kind else DEPLOYMENTS, names_of(canary, None).target)

    def _rival(self, canary: JSON) -> str:
        """Return the oldest other Canary with the same target, when it is older than this one."""
        key = next(iter(needs.keys(canary, None)))
        name = canary["metadata"]["name"]
        others = (self.get(CANARIES, other) for other in self._interest.get(key, ()))
        same = [one for one in others if one and next(iter(needs.keys(one, None))) == key]
        oldest = min([canary, *same], key=_age)
        return "" if oldest["metadata"]["name"] == name else str(oldest["metadata"]["name"])

    # -- taking in ---------------------------------------------------------------------------------------------------

    def put(self, plural: str, obj: JSON) -> set[str]:
        """Take in an object; return the Canaries that it matters to. Nothing when a newer state is known."""
        name = obj["metadata"]["name"]
        objects = self._objects.setdefault(plural, {})
        held = objects.get(name)
        if held is not None and _same_object(held, obj) and _version(obj) <= _version(held):
            return set()
        objects[name] = slim(plural, obj)
        if plural == CANARIES:
            before = self._keys.get(name, ())[:1]
            self._index(obj)
            # Who has the same target is told of a Canary that comes, not of every state of one.
            moved = self._keys[name][:1] != before
            return {name} | (self._rivals(name) if moved else set())
        if plural in TARGETS:
            self._retarget(plural, obj)
        return self._concerned(plural, obj)

    def remove(self, plural: str, obj: JSON) -> set[str]:
        """Take note of a deletion; return the Canaries that it matters to."""
        name = obj["metadata"]["name"]
        held = self._objects.get(plural, {}).get(name)
        if held is not None and not _same_object(held, obj):
            return set()  # another object of that name has taken its place
        self._objects.get(plural, {}).pop(name, None)
        self._generations.pop((plural, name), None)
        if plural == CANARIES:
            rivals = self._rivals(name)
            self._forget(name)
            return {name} | rivals
        return self._concerned(plural, obj)

    def replace(self, plural: str, objects: Iterable[JSON]) -> None:
        """Take in a complete list; what is not in it is gone."""
        self._absent.pop(plural, None)
        self._objects[plural] = {obj["metadata"]["name"]: slim(plural, obj) for obj in objects}
        if plural == CANARIES:
            self._interest.clear()
            self._keys.clear()
        if plural == CANARIES or plural in TARGETS:
            for obj in self._objects[CANARIES].values():
                self._index(obj)

    def _retarget(self, plural: str, obj: JSON) -> None:
        """Work out anew which configs matter, when a target's spec has changed."""
        meta = obj["metadata"]
        key, state = (
            (plural, meta["name"]),
            (str(meta.get("uid")), int(meta.get("generation") or 0)),
        )
        if self._generations.get(key) == state:
            return
        self._generations[key] = state
        for name in list(self._interest.get(key, ())):
            canary = self.get(CANARIES, name)
            if canary is not None:
                self._index(canary)

    def _index(self, canary: JSON) -> None:
        name = canary["metadata"]["name"]
        keys = tuple(dict.fromkeys(needs.keys(canary, self.target(canary))))
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

    def _rivals(self, canary: str) -> set[str]:
        keys = self._keys.get(canary, ())
        return set(self._interest.get(keys[0], ())) - {canary} if keys else set()

    def _concerned(self, plural: str, obj: JSON) -> set[str]:
        return set(self._interest.get((plural, needs.subject(plural, obj)), ()))


def _age(canary: JSON) -> tuple[str, str]:
    meta = canary["metadata"]
    return str(meta.get("creationTimestamp") or ""), str(meta["name"])


def _same_object(one: JSON, other: JSON) -> bool:
    return bool(one["metadata"].get("uid") == other["metadata"].get("uid"))


def _version(obj: JSON) -> int:
    # Comparable as numbers since Kubernetes 1.35, and in fact always since etcd 3.
    version = str(obj["metadata"].get("resourceVersion") or "")
    return int(version) if version.isdigit() else 0
