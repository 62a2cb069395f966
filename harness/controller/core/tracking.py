"""What the rows of the transition table do about tracking: remembering what the target looked like, and nothing else.

Every write here is a status patch with the Canary's resourceVersion as precondition (spec change-detection B5 and B6). So the API
server makes the comparison with the live object: when another writer was faster, the write is refused, nothing is overwritten, and
the next pass decides anew on what that writer left. lastTransitionTime, phase, counters and fields we do not know stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import conditions as cond
from harness.controller.core import pruned
from harness.controller.core.decision import Decision, Refresh
from harness.controller.core.migration import adopted
from harness.controller.core.status import difference

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene


def refresh_for(scene: Scene, applied: str) -> Refresh | None:
    """Return what the answer to a write to the target must hold, when the status says `applied` after it (B6).

    None when the target holds another template now: its fence must stay old, so that the change is found.
    """
    now = scene.snapshot
    if now.hash != applied or not scene.workload.pods:
        return None
    plural = scene.workload.plural
    return Refresh(plural, scene.names.target, now.hash, now.fence.revision)


def track(scene: Scene) -> Decision:
    """Record what the comparison found (B5). Where a fence cannot be in the status, the hashes go first (D10).

    A fence beside an older hash would prove too much; a hash without a fence is compared by itself until the fence is there.
    """
    fields = scene.verdict.persist
    if not scene.world.prunes_fence:
        return _status(scene, fields)
    hashes = {key: value for key, value in fields.items() if key != pruned.FENCE_FIELD}
    decision = _status(scene, hashes)
    if decision.status is not None:
        return decision
    fence = str(fields[pruned.FENCE_FIELD])
    writes = pruned.keep(scene.canary, str(fields["lastAppliedSpec"]), fence)
    return Decision(writes=writes, tracking=True)


def along(scene: Scene, decision: Decision) -> Decision:
    """Let a stale fence go along with a status write that is made anyway, instead of a write of its own."""
    if decision.status is None or pruned.FENCE_FIELD in decision.status:
        return decision
    if "verdict" not in vars(scene) or not (scene.fence_only and scene.tracking_due):
        return decision
    fence = scene.verdict.persist[pruned.FENCE_FIELD]
    return replace(decision, status=decision.status | {pruned.FENCE_FIELD: fence})


def rebase(scene: Scene) -> Decision:
    """Take a recreated target that equals what runs for the same (U1), and say so."""
    note = scene.note("Normal", f"{scene.target_name} was recreated unchanged: no run is needed")
    return replace(track(scene), notes=(note,))


def adopt(scene: Scene) -> Decision:
    """Take over a status that another controller or version wrote (B4); say it when the primary has something else (D11)."""
    return _with_warning(scene, _with_configs(scene, track(scene)))


def track_configs(scene: Scene) -> Decision:
    """Remember the checksums of the configs for the first time: no earlier ones can be compared with."""
    return _status(scene, scene.config_fields)


def remember(scene: Scene) -> Decision:
    """Write down what serves as primary, where that has no name of its own."""
    return _status(scene, scene.workload.remembered(scene.pair))


def _with_configs(scene: Scene, decision: Decision) -> Decision:
    """Take the configs over along with the template: another controller's checksums are computed in another way (D8, D9)."""
    if decision.status is None:
        return decision
    change = difference(scene.status, scene.config_fields, scene.now, touch=False) or {}
    return replace(decision, status=decision.status | change)


def adopt_promotion(scene: Scene) -> Decision:
    """Take over a promotion that another controller began, so that it ends in a status of ours (gap G2).

    What is under promotion is what the primary got. When the target moved on since, it is not that: recorded is then the primary's
    own hash, with a fence that proves nothing, and a run follows the promotion.
    """
    now = scene.snapshot
    applied = scene.primary_hash if scene.overtaken else now.hash
    fence = now.fence.open() if scene.overtaken else now.fence
    fields: JSON = {
        "lastAppliedSpec": applied,
        pruned.FENCE_FIELD: str(fence),
        **scene.config_fields,
    }
    # Not `tracking`: without it the promotion would end in a status that hides the change.
    return _with_warning(scene, replace(_status(scene, fields), tracking=False))


def comparison_failed(scene: Scene) -> Decision:
    """Neither adopt nor start (B4); a primary that comes back wakes us."""
    names = scene.names
    text = (
        f"Cannot tell whether {names.target} is a new revision: another controller wrote the status, and"
        f" {scene.primary_name} is gone; put it back, or delete the Canary and create it again"
    )
    return Decision(notes=(scene.note("Warning", text),))


def read_revisions(_: Scene) -> Decision:
    """Ask for the target's ReplicaSets before anything is decided (D11)."""
    return Decision(reads_revisions=True)


def tell_degraded(scene: Scene) -> Decision:
    """Say on the Canary that the installed CRD has no place for the fence, or take that back (D10)."""
    held = list(scene.status.get("conditions") or [])
    if not scene.world.prunes_fence:
        return _status(scene, {"conditions": cond.drop(held, pruned.CONDITION)})
    told = cond.put(held, pruned.CONDITION, "True", pruned.REASON, pruned.MESSAGE, now=scene.now)
    note = scene.note("Warning", pruned.MESSAGE)
    return replace(_status(scene, {"conditions": told}), notes=(note,))


def return_fence(scene: Scene) -> Decision:
    """Put a fence that was kept in the annotation where it belongs (D10)."""
    return _status(scene, {pruned.FENCE_FIELD: scene.kept_fence})


def drop_annotation(scene: Scene) -> Decision:
    """Remove the annotation once the status holds the fence (D10)."""
    return Decision(writes=pruned.drop(scene.canary), tracking=True)


def _status(scene: Scene, fields: JSON) -> Decision:
    status = difference(scene.status, fields, scene.now, touch=False)
    return Decision(status=status, tracking=True)


def _with_warning(scene: Scene, decision: Decision) -> Decision:
    unproven = scene.review.unproven
    if not unproven:
        return decision
    text = adopted(scene.names, scene.target, scene.world.primary or scene.target, unproven)
    return replace(decision, notes=(scene.note("Warning", text),))
