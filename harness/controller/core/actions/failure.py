"""Runs that end badly, and what is said of an idle target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import replicas, upkeep
from harness.controller.core.actions import restore
from harness.controller.core.actions.base import (
    alerting,
    conditions,
    decision,
    noted,
    post_rollout,
    routed,
    status,
)
from harness.controller.core.actions.run import LAST_FAILURE
from harness.controller.core.readiness import wanted
from harness.controller.core.status import entered
from harness.controller.core.tracking import refresh_for

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Decision
    from harness.controller.core.scene import Scene

HOOK: Final = "RollbackHook"
"""Reason of a roll-back that a hook asked for."""


def not_ready(scene: Scene) -> Decision:
    """The target missed its deadline (C11, C12)."""
    return _decided(scene, "Failed", not_ready_cause(scene))


def not_ready_cause(scene: Scene) -> str:
    """Return what is said of a target that missed its deadline."""
    return f"not ready within {scene.settings.deadline:g} s ({scene.target_ready.message})"


def failed_checks(scene: Scene) -> Decision:
    """Too many failed checks."""
    return roll_back(scene, "Failed", failed_checks_cause(scene))


def failed_checks_cause(scene: Scene) -> str:
    """Return what is said of failed checks; what failed last is in the status."""
    told = str((cond.find(scene.status, cond.PROMOTED) or {}).get("message") or "")
    _, known, what = told.partition(LAST_FAILURE)
    cause, last = "a check failed", ": "
    if scene.failed_checks > 1:
        cause, last = f"{scene.failed_checks} checks failed", ", the last one: "
    return cause + (last + what if known else "")


def asked_for(scene: Scene) -> Decision:
    """A rollback hook asked for it."""
    return _decided(scene, HOOK, f"{scene.checkup.name} asked for it")


def _decided(scene: Scene, reason: str, cause: str) -> Decision:
    """Remember a cause that may be gone before the roll-back is over: pods at zero are not ready for another reason, a hook changes its mind."""
    held = cond.put(
        conditions(scene), cond.ROLLING_BACK, "True", reason, cause, now=scene.now, renew=True
    )
    return status(scene, {"conditions": held}, touch=False)


def carry_out(scene: Scene) -> Decision:
    """Roll back for the cause that is remembered."""
    known = cond.find(scene.status, cond.ROLLING_BACK) or {}
    severity = "warn" if known.get("reason") == HOOK else "error"
    return roll_back(scene, str(known["reason"]), str(known["message"]), severity=severity)


def abort(scene: Scene) -> Decision:
    """Somebody put the promoted template back: nothing is left to judge (D5)."""
    cause = "the promoted template was put back"
    return roll_back(scene, "ManualRollback", cause, scene.verdict.persist, severity="info")


def idle_pods(scene: Scene) -> Decision:
    """Somebody scaled the idle target up: their field, not corrected, said once (A10)."""
    field, value = "spec.replicas", ""
    if scene.workload.plural == "deployments":
        who = ", ".join(sorted(replicas.writers(scene.target) or ())) or "unknown"
        value = f" {wanted(scene.target)} (set by {who})"
    else:
        field = "no node selector that keeps its pods away"
    text = (
        f"{scene.target_name} is idle but has {field}{value}: its pods run beside those of"
        f" {scene.primary_short}; let the manifest omit the field"
    )
    return noted(scene, "Warning", text)


def roll_back(
    scene: Scene, reason: str, cause: str, tracking: JSON | None = None, *, severity: str = "error"
) -> Decision:
    """Traffic to the primary, target to zero; counters kept so that the status shows how far it came (P14).

    A run that was to repair the primary, and did not, leaves both as they are: of two that are not well, the target has pods (case C10).
    """
    target, scales = scene.names.target, scene.workload.scales
    if scene.weight and not (scene.repairing and not scene.primary_ready.ready):
        # Pods only go once no traffic is theirs: this, then the route, then the next pass comes here again.
        return status(scene, routed(scene, {"canaryWeight": 0}), touch=False)
    kept = scene.repairing and not scene.primary_ready.ready
    text = f"{scene.target_name} is scaled to zero: {cause}"
    if kept:
        reason = "PromotionFailed"
        text = f"{scene.target_name} keeps running, as {scene.primary_name} is not ready: {cause}"
    elif not scales:
        text = f"{scene.target_name} gets no traffic: {cause}"
    fields = ({} if kept else {"canaryWeight": 0}) | (tracking or {})
    entry = entered(scene.status, "Failed", scene.now, text, fields, reason=reason)
    entry = routed(scene, post_rollout(scene, entry))
    note = scene.note(
        "Normal" if severity == "info" else "Warning", f"Rolling back {target}: {cause}"
    )
    idle = () if kept else upkeep.to_zero(scene)
    applied = str(fields.get("lastAppliedSpec") or scene.tracking.applied)
    notes = [alerting(note, severity)]
    if not kept and reason != "ManualRollback":
        entry, left = restore.announced(scene, entry, applied)
        notes += [left] if left else []
    found = decision(scene, idle, None, entry)
    return replace(found, notes=tuple(notes), refresh=refresh_for(scene, applied))
