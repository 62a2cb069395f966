"""What must exist in every phase, made or mended before anything else happens (spec state-machine 2, steps 4, 7, 8, 9 and 11).

The writes that a row makes to primary, target, scalers and route together are put together here as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core import configs, services
from harness.controller.core.decision import JSON, Write
from harness.controller.core.ownership import controller_of, owner_reference

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene
    from harness.controller.core.targets.base import Role


def upkeep(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that mend drift: Services, the primary if missing, its scaler, and apex and route once initialised."""
    writes: tuple[Write, ...] = ()
    own = scene.workload.pods
    # Where another revision is another selector, traffic first goes away from what has no pods yet.
    late = own and not scene.workload.copies and scene.initialised
    if own and not late:
        writes += _service(scene, "canary") + _service(scene, "primary")
    if not scene.primary_exists and can_create_primary(scene):
        writes += scene.copies.writes + scene.workload.create(scene.pair)
    writes += scene.workload.keep(scene.pair) + _owned(scene)
    if scene.primary_exists and scene.scaler is not None:
        writes += scene.scaler.keep()
    if scene.initialised:
        writes += traffic(scene)
    if late:
        writes += _service(scene, "primary") + _service(scene, "canary")
    return writes


def _owned(scene: Scene) -> tuple[Write, ...]:
    """Return the write that makes an adopted primary go with its Canary: one that nobody controls (`Reading.foreign_primary`)."""
    primary = scene.world.primary
    if primary is None or not scene.workload.pods or controller_of(primary) is not None:
        return ()
    meta = primary["metadata"]
    owners = [*(meta.get("ownerReferences") or []), owner_reference(scene.canary)]
    body: JSON = {"metadata": {"ownerReferences": owners}}
    return (
        Write("patch", scene.workload.plural, meta["name"], body, str(meta["resourceVersion"])),
    )


def hindrance(scene: Scene) -> str:
    """Return what has to be there before a primary can be made; empty when nothing is missing."""
    if scene.scaler is not None and (problem := scene.scaler.problem):
        return problem
    due = not scene.primary_exists and can_create_primary(scene)
    return scene.copies.problem if due else ""


def traffic(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that point apex Service and route where they belong.

    Never before the primary was ready once: until then the apex of an application that already serves selects the target (C28).
    """
    writes = _service(scene, "apex") if scene.workload.pods else ()
    return writes + scene.router.route(scene.wish)


def can_create_primary(scene: Scene) -> bool:
    """Whether the target's template is one the primary may have: the first, or the one that was promoted (P13)."""
    promoting = scene.phase in ("Promoting", "Finalising")
    good = scene.tracking.applied if promoting else scene.tracking.promoted
    return not scene.initialised or scene.snapshot.hash == good


def promotion(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that bring the target's revision to the primary: its configs first, then the template, then the scaler."""
    writes = scene.copies.writes + scene.workload.promote(scene.pair)
    if scene.scaler is not None:
        writes += scene.scaler.promote()
    return writes


def to_zero(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that take the target's pods away; its scaler is paused first, or it would bring them back."""
    paused = scene.scaler.pause() if scene.scaler is not None else ()
    return paused + scene.workload.to_zero(scene.pair)


def to_run(scene: Scene) -> tuple[Write, ...]:
    """Return the writes that bring the target's pods back; its scaler goes on first."""
    resumed = scene.scaler.resume() if scene.scaler is not None else ()
    return resumed + scene.workload.to_run(scene.pair)


def copied_configs(scene: Scene) -> JSON:
    """Return the status field that remembers the configs as they were copied, when the target's have moved on since (D2)."""
    if not scene.workload.copies:
        return scene.config_fields
    if not scene.configs.tracked:
        return {}
    return {"trackedConfigs": configs.of_copies(scene.configs, scene.world.objects)}


def _service(scene: Scene, role: Role) -> tuple[Write, ...]:
    existing = scene.world.services.get(services.service_name(scene.names, role))
    held = ((existing or {}).get("spec") or {}).get("selector") or {}
    wanted = scene.workload.selector(scene.pair, role, held)
    return services.reconcile(scene.pair, existing, role, wanted)
