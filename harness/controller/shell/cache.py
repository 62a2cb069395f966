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
_UNREAD: Final = "rollout-drill/unread"
"""Marks what stands for an object whose content was not kept; no object of the API has such a field."""


class Cache:
    """Objects of one namespace, and which Canaries each of them matters to.

    Every look-up is by name: what one event costs does not depend on how many Canaries there are. Answers to our own writes are put
    in as well, so that a pass never decides on a state that it has changed itself. A watch event that is older than such an answer is
    dropped.

    Of ConfigMaps and Secrets only those are kept that a target refers to, and their copies: a namespace may be full of others, of a
    megabyte each. One that a target begins to refer to later is *unread* until somebody reads it (`unread`, `read`) or the watch brings it.
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
        self._unread: set[needs.Key] = set()
        """Configs that a target refers to and of which nothing is known yet, although their kind was listed."""

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

    def due(self, canary: JSON) -> tuple[str, ...]:
        """Return the kinds that are to be watched for a Canary now.

        Configs come after the targets, so that their first list already keeps what is referred to.
        """
        kinds = self.kinds(canary)
        if all(kind in self._objects or kind in self._absent for kind in kinds if kind in TARGETS):
            return kinds
        return tuple(kind for kind in kinds if kind not in needs.CONFIGS)

    def all_due(self) -> set[str]:
        """Return the kinds that are to be watched for any Canary now."""
        return {kind for canary in self._objects[CANARIES].values() for kind in self.due(canary)}

    def missing(self, canary: JSON) -> list[str]:
        """Return the kinds that a Canary needs and of which nothing is known yet, not even that they are not there."""
        return [
            kind
            for kind in self.kinds(canary)
            if kind not in self._objects and kind not in self._absent
        ]

    def cannot(self, plural: str, why: str) -> set[str]:
        """Take note that a kind cannot be watched; return the Canaries that need it, unless it was known.

        Of a kind that could be watched before, what was seen last has to do; configs are shared from then on.
        """
        if self._absent.get(plural) == why:
            return set()
        if plural in self._objects:
            if not needs.optional(plural):
                return set()
            del self._objects[plural]
            self._unread = {key for key in self._unread if key[0] != plural}
        self._absent[plural] = why
        return self._needing(plural)

    def abandon(self, plural: str) -> None:
        """Forget why a kind could not be watched: nobody needs it any more."""
        self._absent.pop(plural, None)

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
            # What serves as primary of a Knative Service is a revision, and a parked ReplicaSet has no name of its own.
            primary=targets.get(names.primary) if kind is None or kind.copies else None,
            services={name: services[name] for name in wanted if name in services},
            objects={kind: self._objects[kind] for kind in kinds if kind in self._objects},
            absent={
                kind: self._absent[kind]
                for kind in kinds
                if kind in self._absent and not needs.optional(kind)
            },
            shared={
                kind: self._absent[kind]
                for kind in kinds
                if kind in self._absent and needs.optional(kind)
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

    # -- configs -----------------------------------------------------------------------------------------------------

    def shape(self, plural: str, obj: JSON) -> JSON:
        """Return an object as it is kept from a list; of a config that nobody refers to only its name."""
        name = obj["metadata"]["name"]
        if plural in needs.CONFIGS and (plural, name) not in self._interest:
            return {"metadata": {"name": name}, _UNREAD: True}
        return slim(plural, obj)

    def unread(self, canary: JSON) -> list[needs.Key]:
        """Return what has to be read before a pass for a Canary can be made."""
        if not self._unread:
            return []
        kinds = self.kinds(canary)
        keys = self._keys.get(canary["metadata"]["name"], ())
        return [key for key in keys if key in self._unread and key[0] in kinds]

    def read(self, key: needs.Key, obj: JSON | None) -> None:
        """Take in what was read on demand (None: there is no such object); ignored when the watch was faster."""
        if key in self._unread:
            self._unread.discard(key)
            if obj is not None:
                self._objects[key[0]][key[1]] = slim(key[0], obj)

    # -- taking in ---------------------------------------------------------------------------------------------------

    def put(self, plural: str, obj: JSON) -> set[str]:
        """Take in an object; return the Canaries that it matters to. Nothing when a newer state is known."""
        name = obj["metadata"]["name"]
        if plural in needs.CONFIGS:
            if (plural, name) not in self._interest:
                return set()
            self._unread.discard((plural, name))
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

    def renew(self, canary: JSON) -> None:
        """Take in a Canary of a version that may be known: under another CRD the server serves other fields of the same version.

        What a watch brings while a CRD is replaced can still be what the former one left of it, and nothing newer follows.
        """
        name = canary["metadata"]["name"]
        held = self._objects[CANARIES].get(name)
        if held is None or (_same_object(held, canary) and _version(canary) >= _version(held)):
            self._objects[CANARIES][name] = slim(CANARIES, canary)
            self._index(canary)

    def remove(self, plural: str, obj: JSON) -> set[str]:
        """Take note of a deletion; return the Canaries that it matters to."""
        name = obj["metadata"]["name"]
        self._unread.discard((plural, name))
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
        """Take in a complete list, shaped or not; what is not in it is gone."""
        self._absent.pop(plural, None)
        self._unread = {key for key in self._unread if key[0] != plural}
        kept: dict[str, JSON] = {}
        for obj in objects:
            key = (plural, str(obj["metadata"]["name"]))
            shaped = self.shape(plural, obj)
            if _UNREAD not in shaped:
                kept[key[1]] = shaped
            elif key in self._interest:
                self._unread.add(key)  # somebody began to refer to it while the list was on its way
        self._objects[plural] = kept
        if plural == CANARIES:
            for name in [name for name in self._keys if name not in kept]:
                self._forget(name)
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
        before = self._keys.get(name, ())
        if before == keys:
            return
        self._keys[name] = keys
        for key in keys:
            if key not in self._interest:
                self._interest[key] = set()
                if key[0] in needs.CONFIGS and key[0] in self._objects:
                    self._unread.add(key)
            self._interest[key].add(name)
        for key in before:
            if key not in keys:
                self._drop(name, key)

    def _forget(self, canary: str) -> None:
        for key in self._keys.pop(canary, ()):
            self._drop(canary, key)

    def _drop(self, canary: str, key: needs.Key) -> None:
        """End a Canary's interest; a config that was its alone is no longer kept."""
        known = self._interest[key]
        known.discard(canary)
        if not known:
            del self._interest[key]
            if key[0] in needs.CONFIGS:
                self._unread.discard(key)
                self._objects.get(key[0], {}).pop(key[1], None)

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
