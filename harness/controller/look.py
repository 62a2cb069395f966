"""One look at a Canary from outside: what the controller would see, put together from objects that somebody read or saved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import World, line, needs, pruned
from harness.controller.core import conditions as cond
from harness.controller.core.configs import references
from harness.controller.core.configs.checksums import PLURALS
from harness.controller.core.ownership import controller_of
from harness.controller.core.targets.registry import target_for
from harness.controller.shell.cache import CANARIES, DEPLOYMENTS, SERVICES, TARGETS, Cache
from harness.controller.shell.kinds import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from harness.controller.core.decision import JSON

_PLURALS: Final = {(one.group, one.kind): plural for plural, one in RESOURCES.items()}
REVISIONS: Final = frozenset({"ReplicaSet", "ControllerRevision"})


def world_of(
    canary: JSON,
    objects: Iterable[JSON],
    *,
    revisions_read: bool = True,
    absent: Mapping[str, str] | None = None,
    read: Collection[str] = (),
) -> World:
    """Return what `decide()` needs to know about a Canary, out of objects of its namespace; others are ignored.

    `revisions_read`: whether `objects` hold the target's ReplicaSets, if it has any. `absent`: plurals of kinds that are not served, with the
    reason. `read`: plurals of configs of which `objects` hold all that matter; without it those of which they hold any, or to which the
    target does not refer. Whether the installed CRD prunes the fence is taken from what the controller said on the Canary (D10), and that
    it limits analyses from a Canary that waits; which place that one has follows from the other Canaries among `objects`.
    """
    namespace = canary["metadata"].get("namespace")
    here = [obj for obj in objects if obj["metadata"].get("namespace", namespace) == namespace]
    by_plural: dict[str, list[JSON]] = {}
    for obj in here:
        by_plural.setdefault(plural_of(obj), []).append(obj)
    cache = Cache(configs=True)
    cache.replace(CANARIES, [canary, *_others(canary, by_plural.get(CANARIES, ()))])
    wanted = dict.fromkeys((DEPLOYMENTS, SERVICES, *needs.kinds(canary)))
    for plural in sorted(wanted, key=lambda plural: plural not in TARGETS):
        if absent and plural in absent:
            cache.cannot(plural, absent[plural])
        elif plural not in needs.CONFIGS or plural in by_plural or plural in read:
            cache.replace(plural, by_plural.get(plural, ()))
    for plural in needs.CONFIGS:
        if plural in wanted and not _refers(cache.target(canary), plural):
            cache.replace(plural, by_plural.get(plural, ()))
    world = cache.world(canary)
    degraded = cond.find(canary.get("status") or {}, pruned.CONDITION) is not None
    revisions = _revisions(world.target, here) if revisions_read else None
    world = replace(world, revisions=revisions, prunes_fence=degraded)
    if not line.in_line(canary.get("status") or {}):
        return world
    turn = line.position(canary, by_plural.get(CANARIES, ()), 0.0)
    # Whether a slot is free is not known, as the limit is not: who waits in vain is told so by the controller alone.
    return replace(world, turn=turn, policy=replace(world.policy, most_analyses=1))


def target_key(canary: JSON) -> needs.Key:
    """Return plural and name of a Canary's target."""
    return next(iter(needs.keys(canary, None)))


def wanted_keys(canary: JSON, target: JSON | None) -> tuple[needs.Key, ...]:
    """Return plural and name of everything that the controller would look at for a Canary, besides target and ReplicaSets.

    The name of `krevisions` is that of their Service.
    """
    keys = dict.fromkeys(needs.keys(canary, target))
    return tuple(key for key in keys if key != target_key(canary))


def untold(canary: JSON, world: World) -> str:
    """Return why a Canary cannot be explained: a config that its status remembers and that is not among what was read; empty when it can."""
    kind, target = target_for(canary), world.target
    if kind is None or not kind.pods or target is None:
        return ""
    stored = (canary.get("status") or {}).get("trackedConfigs") or {}
    unread = [
        reference
        for reference in references(target["spec"]["template"])
        if PLURALS[reference.kind] not in world.objects and reference.key in stored
    ]
    return ", ".join(map(str, unread))


def plural_of(obj: JSON) -> str:
    """Return the plural under which the controller knows an object's kind; empty for a kind that it does not."""
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    return _PLURALS.get((group, str(obj.get("kind"))), "")


def _others(canary: JSON, canaries: Iterable[JSON]) -> list[JSON]:
    """The other Canaries: an older one with the same target goes before this one."""
    return [one for one in canaries if one["metadata"]["name"] != canary["metadata"]["name"]]


def _refers(target: JSON | None, plural: str) -> bool:
    template = ((target or {}).get("spec") or {}).get("template") or {}
    return any(PLURALS[reference.kind] == plural for reference in references(template))


def _revisions(target: JSON | None, objects: Iterable[JSON]) -> list[JSON]:
    uid = (target or {"metadata": {}})["metadata"].get("uid")
    kept = (obj for obj in objects if obj.get("kind") in REVISIONS)
    return [obj for obj in kept if uid and (controller_of(obj) or {}).get("uid") == uid]
