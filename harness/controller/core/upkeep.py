"""What must exist in every phase, made or mended before anything else happens (spec state-machine 2, steps 4, 7 and 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core import primary, services

if TYPE_CHECKING:
    from harness.controller.core.decision import Write
    from harness.controller.core.scene import Scene


def upkeep(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that mend drift: `-canary`, `-primary`, the primary if missing, and the apex once initialised."""
    writes = _service(scene, "canary") + _service(scene, "primary")
    if scene.world.primary is None and can_create_primary(scene):
        hash_ = scene.snapshot.hash
        writes += (primary.create(scene.canary, scene.names, scene.target, hash_),)
    if scene.initialised:
        writes += apex(scene)
    return writes


def apex(scene: Scene) -> tuple[Write, ...]:
    """Return the write that points the apex Service at the primary.

    Never before the primary was ready once: until then the apex of an application that already serves selects the target (C28).
    """
    return _service(scene, "apex")


def can_create_primary(scene: Scene) -> bool:
    """Whether the target's template is one the primary may have: the first, or the one that was promoted (P13)."""
    promoting = scene.phase in ("Promoting", "Finalising")
    good = scene.tracking.applied if promoting else scene.tracking.promoted
    return not scene.initialised or scene.snapshot.hash == good


def _service(scene: Scene, role: services.Role) -> tuple[Write, ...]:
    existing = scene.world.services.get(services.service_name(scene.names, role))
    return services.reconcile(scene.canary, scene.names, scene.target, existing, role)
