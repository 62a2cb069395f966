"""The end of a Canary: its finalizer, and how target and traffic are given back (spec state-machine 12; A8, A9, O8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core import services
from harness.controller.core.decision import Write

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene

FINALIZER: Final = "finalizer.flagger.app"
"""Flagger's own name, so that either controller can let go what the other one held."""


def held(canary: JSON) -> bool:
    """Whether the Canary carries our finalizer."""
    return FINALIZER in (canary["metadata"].get("finalizers") or [])


def deleting(canary: JSON) -> bool:
    """Whether the Canary is being deleted."""
    return bool(canary["metadata"].get("deletionTimestamp"))


def finalizer(canary: JSON, *, wanted: bool) -> tuple[Write, ...]:
    """Return the write that adds or removes our finalizer; those of others stay."""
    if held(canary) == wanted:
        return ()
    meta = canary["metadata"]
    others = [name for name in meta.get("finalizers") or [] if name != FINALIZER]
    body: JSON = {"metadata": {"finalizers": [*others, FINALIZER] if wanted else others}}
    return (Write("patch", "canaries", meta["name"], body, meta["resourceVersion"]),)


def pods_back(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that bring the target's pods back: its scaler first, then as many as the primary has."""
    resumed = scene.scaler.resume() if scene.scaler is not None else ()
    return resumed + scene.workload.revert(scene.pair)


def traffic_back(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that let the target's pods serve: the apex Service first, then the route.

    An apex Service of ours goes with the Canary; until the garbage collector comes it selects the target, too.
    """
    writes: tuple[Write, ...] = ()
    if scene.workload.pods:
        apex = scene.world.services.get(scene.names.apex)
        writes = services.give_back(scene.names, apex) if apex else ()
    return writes + scene.router.revert(scene.wish)
