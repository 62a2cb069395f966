"""Is the target what the status speaks of? Our own comparison is asked, as the bundled controller would make it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core.change import Migration, Row
from harness.controller.core.scene import Scene
from harness.controller.explain import SENTENCES
from harness.handback.plan import BOOTSTRAP, ENDING, Recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core import World
    from harness.controller.core.decision import JSON

KINDS = ("Deployment",)
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
    return Recorded.CHANGED if scene.new_revision else Recorded.SAME, sentence


def configs_changed(world: World, canary: JSON, told: Mapping[str, str] | None) -> bool:
    """Whether a ConfigMap or Secret is another than the one on record.

    The bundled controller records none: checksums in a status are those of a Flagger from before it. They count as long as the
    primary still is that Flagger's, with copies of its own; a primary of ours shares the originals with the target, so there is
    nothing that it could have missed.
    """
    kept = (canary.get("status") or {}).get("trackedConfigs")
    if kept is None or told is None or kept == dict(told):
        return False
    return not Scene(world, canary, 0.0).primary_is_ours


def _promotion(scene: Scene) -> tuple[Recorded, str]:
    """Judge a promotion that another controller began: what is promoted is what the primary got."""
    found = scene.review.migration
    if found is Migration.FAILED:
        return Recorded.UNKNOWN, "there is no primary"
    if found is Migration.DIFFERENT:
        return Recorded.CHANGED, "the target was changed after the primary got its template"
    return Recorded.SAME, ""
