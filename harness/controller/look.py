"""One look at a Canary from outside: what the controller would see, put together from objects that somebody read or saved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import World, pruned
from harness.controller.core import conditions as cond
from harness.controller.core.names import names_of
from harness.controller.core.ownership import controller_of
from harness.controller.shell.cache import DEPLOYMENTS, SERVICES, Cache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.core.decision import JSON

_PLURALS: Final = {"Deployment": DEPLOYMENTS, "Service": SERVICES}
REVISIONS: Final = frozenset({"ReplicaSet", "ControllerRevision"})


def world_of(canary: JSON, objects: Iterable[JSON], *, revisions_read: bool = True) -> World:
    """Return what `decide()` needs to know about a Canary, out of objects of its namespace; others are ignored.

    `revisions_read`: whether `objects` hold the target's ReplicaSets, if it has any. Whether the installed CRD prunes the fence is
    taken from what the controller said on the Canary (D10).
    """
    namespace = canary["metadata"].get("namespace")
    here = [obj for obj in objects if obj["metadata"].get("namespace", namespace) == namespace]
    cache = Cache()
    for kind, plural in _PLURALS.items():
        cache.replace(plural, [obj for obj in here if obj.get("kind") == kind])
    world = cache.world(canary)
    degraded = cond.find(canary.get("status") or {}, pruned.CONDITION) is not None
    revisions = _revisions(world.target, here) if revisions_read else None
    return replace(world, revisions=revisions, prunes_fence=degraded)


def wanted_names(canary: JSON) -> tuple[tuple[str, str], ...]:
    """Return kind and name of everything, besides the ReplicaSets, that is worth reading for a look at a Canary."""
    names = names_of(canary, None)
    services = dict.fromkeys((names.apex, names.primary_service, names.canary_service))
    return (
        ("Deployment", names.target),
        ("Deployment", names.primary),
        *(("Service", name) for name in services),
    )


def _revisions(target: JSON | None, objects: Iterable[JSON]) -> list[JSON]:
    uid = (target or {"metadata": {}})["metadata"].get("uid")
    kept = (obj for obj in objects if obj.get("kind") in REVISIONS)
    return [obj for obj in kept if uid and (controller_of(obj) or {}).get("uid") == uid]
