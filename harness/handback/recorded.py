"""Is the target what the status speaks of? Our own comparison is asked, as the bundled controller would make it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core.change import Migration, Row
from harness.controller.core.configs import references
from harness.controller.core.scene import Scene
from harness.controller.explain import SENTENCES
from harness.handback.plan import BOOTSTRAP, ENDING, Recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core import World
    from harness.controller.core.decision import JSON

KINDS = ("Deployment", "DaemonSet", "Service")
"""Kinds of targets that the bundled controller compares."""


def has_hash_on_record(world: World, canary: JSON) -> bool:
    """Whether the target has exactly the hash on record."""
    if world.target is None or world.target["kind"] not in KINDS:
        return False
    scene = Scene(world, canary, 0.0)
    return scene.snapshot.hash == scene.tracking.applied


def recorded(world: World, canary: JSON, now: float) -> tuple[Recorded, str]:
    """Return whether the target is the one on record, and the sentence of the row that says so."""
    kind = canary["spec"]["targetRef"].get("kind")
    if kind not in KINDS:
        return Recorded.UNKNOWN, f"the bundled controller compares no {kind}"
    if world.target is None:
        return Recorded.UNKNOWN, "there is no target"
    scene = Scene(world, canary, now)
    if scene.phase in BOOTSTRAP:
        return Recorded.CHANGED if scene.primary_elsewhere else Recorded.SAME, ""
    if scene.tracking.foreign and scene.phase in ENDING:
        return _promotion(scene)
    verdict = scene.verdict
    sentence = SENTENCES[verdict.row][1].rstrip(".")
    if verdict.error or verdict.row is Row.MIGRATION_RESTART:
        return Recorded.UNKNOWN, sentence
    # Not `new_revision`: that asks the configs too, which is another question here.
    changed = verdict.changed or (verdict.rolled_back and scene.primary_elsewhere)
    return Recorded.CHANGED if changed else Recorded.SAME, sentence


def configs_changed(world: World, canary: JSON, told: Mapping[str, str] | None) -> bool:
    """Whether a ConfigMap or Secret is another than the one on record.

    Checksums that a Flagger wrote are compared with those that it computes now: it leaves binaryData out. Our own count all of the content
    (D8). Not compared is what the target does not refer to, left over from a time without tracking (a reference that went would have
    changed the template), and what the primary shares with the target for the same reason: it could have missed nothing.
    """
    kept = (canary.get("status") or {}).get("trackedConfigs")
    if kept is None or told is None or world.target is None:
        return False
    scene = Scene(world, canary, 0.0)
    if scene.tracking.foreign:
        return bool(kept != dict(told))
    if scene.configs.missing:
        return False
    primary = world.primary or {"spec": {"template": {}}}
    shared = {one.key for one in references(primary["spec"]["template"])}
    counts = {one.key for one in scene.configs.references} - shared
    now = scene.configs.tracked
    return any(kept.get(key) != now.get(key) for key in counts)


def _promotion(scene: Scene) -> tuple[Recorded, str]:
    """Judge a promotion that another controller began: what is promoted is what the primary got."""
    found = scene.review.migration
    if found is Migration.FAILED:
        return Recorded.UNKNOWN, "there is no primary"
    if found is Migration.DIFFERENT:
        return Recorded.CHANGED, "the target was changed after the primary got its template"
    return Recorded.SAME, ""
