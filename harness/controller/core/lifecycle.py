"""The end of a Canary: its finalizer, and how target and traffic are given back (spec state-machine 12; A8, A9, O8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core import services
from harness.controller.core.decision import Write
from harness.controller.core.routers.registry import router_for
from harness.controller.core.targets.registry import target_for

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


def irrevocable(scene: Scene) -> str:
    """Return why target and traffic cannot be given back, or need not be; empty when they are to be.

    A Canary that is refused is reverted as well, if it ever took over: it may have been edited since, and its target has no pods.
    """
    names, world = scene.names, scene.world
    if not scene.settings.revert:
        return "spec.revertOnDeletion is false"
    if world.target is None:
        return f"{names.target} does not exist"
    workload = target_for(scene.canary)
    if workload is None or router_for(scene.canary) is None or (workload.pods and not names.label):
        return scene.refused.message if scene.refused else "the target cannot be handled"
    if world.rival:
        return f"the target belongs to Canary {world.rival}"
    if not scene.initialised and not _led_away(scene):
        return f"{names.target} still serves"
    return ""


def _led_away(scene: Scene) -> bool:
    """Whether a bootstrap got as far as the apex Service, or as the pods where those are parked."""
    if not scene.workload.copies:
        return scene.primary_exists
    apex = scene.world.services.get(scene.names.apex)
    selector = ((apex or {}).get("spec") or {}).get("selector") or {}
    return bool(selector.get(scene.names.label) == scene.names.primary_value)


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
