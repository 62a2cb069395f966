"""A run, from the new revision to the end of its analysis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.controller.core import checkup, frozen, replicas, spread, upkeep
from harness.controller.core import conditions as cond
from harness.controller.core.actions import queue, restore
from harness.controller.core.actions.base import (
    ZERO,
    alerting,
    asking,
    conditions,
    decision,
    noted,
    post_rollout,
    routed,
    status,
)
from harness.controller.core.decision import JSON, Decision
from harness.controller.core.readiness import wanted
from harness.controller.core.status import entered
from harness.controller.core.strategies.traffic import FULL
from harness.controller.core.tracking import refresh_for

if TYPE_CHECKING:
    from harness.controller.core.scene import Scene

LAST_FAILURE = "Last failed check: "
"""Beginning of the message of condition Promoted after a failed check."""
GATES = {
    "confirm-rollout": ("ConfirmRollout", "the start of the rollout"),
    "confirm-traffic-increase": ("ConfirmTrafficIncrease", "more traffic"),
    "confirm-promotion": ("ConfirmPromotion", "the promotion"),
}


# -- the start ---------------------------------------------------------------------------------------------------------------


def ask_start(scene: Scene) -> Decision:
    """Ask the hooks before a run."""
    return asking(scene.start_checkup)


def start(scene: Scene) -> Decision:
    """Scale the target up, then record the revision that was compared (D1, D6)."""
    target = scene.names.target
    up = ": scaling it up" if scene.workload.scales else ""
    note = scene.note("Normal", f"New revision of {target} found{up}")
    found = decision(
        scene, upkeep.to_run(scene), alerting(note, "info", facts=True), run_begins(scene)
    )
    found = replace(found, refresh=refresh_for(scene, scene.snapshot.hash))
    found = replace(found, notes=(*queue.turn_came(scene), *found.notes))
    if shrinking := _shrinking(scene):
        found = replace(found, notes=(*found.notes, scene.note("Warning", shrinking)))
    if not scene.settings.forced:
        return found
    text = (
        "Provider kubernetes has no traffic to split: blue-green with"
        f" {scene.settings.iterations} iterations instead"
    )
    return replace(found, notes=(*found.notes, scene.note("Warning", text)))


def _shrinking(scene: Scene) -> str:
    """Return a warning when the promotion would leave one replica of several, before it does (case C13)."""
    pair = scene.pair
    if scene.workload.plural != "deployments" or pair.scaled or pair.primary is None:
        return ""
    if not replicas.shrinks_to_one(pair.target, pair.primary):
        return ""
    return (
        f"{scene.target_name} asks for 1 replica, as any manifest without spec.replicas does: the promotion will take"
        f" {scene.names.primary} from {wanted(pair.primary)} to 1"
    )


def hold_rollout(scene: Scene) -> Decision:
    """Wait for the gate before a run; the new revision is not recorded, so that it is not lost (D1)."""
    gate = scene.start_checkup
    if scene.phase == "Waiting" and not queue.joined(scene):
        return Decision(requeue_after=gate.again_in)
    text = f"{scene.target_name} has a new revision; it waits for {gate.name}"
    entry = entered(scene.status, "Waiting", scene.now, text)
    said = held_text(scene, gate.gate, gate.name, gate.message)
    reason, _ = GATES[gate.gate]
    held = list(entry["conditions"])
    entry["conditions"] = cond.put(held, cond.HELD, "True", reason, said, now=scene.now)
    note = scene.note("Warning", said)
    return decision(scene, (), note if gate.muted else alerting(note, "warn"), entry)


def withdrawn(scene: Scene) -> Decision:
    """The new revision was taken back while it waited: the target holds what was promoted, or what had failed before."""
    target = scene.names.target
    note = scene.note("Normal", f"New revision of {target} was withdrawn")
    # The same template with other configs may be what had failed.
    same = scene.primary_revision in ("", scene.pair.revision)
    if scene.snapshot.hash == scene.tracking.promoted and same:
        text = f"{scene.primary_name} serves; the new revision was withdrawn before its rollout"
        entry = entered(scene.status, "Succeeded", scene.now, text, scene.verdict.persist)
        return decision(scene, (), note, entry)
    text = f"{scene.target_name} holds again what had failed; the new revision was withdrawn"
    entry = entered(scene.status, "Failed", scene.now, text, reason=_failed_before(scene))
    return decision(scene, (), note, entry)


def rejected(scene: Scene) -> Decision:
    """A rollback hook ended the wait (P5): recorded, so that only another change starts a run."""
    gate = scene.start_checkup
    text = f"{scene.target_name} was rejected by {gate.name} before its rollout"
    fields = {
        "lastAppliedSpec": scene.snapshot.hash,
        "lastTrackedRevision": str(scene.snapshot.fence),
        **scene.config_fields,
    }
    reason = _failed_before(scene, "RollbackHook")
    entry = entered(scene.status, "Failed", scene.now, text, fields, reason=reason)
    entry, left = post_rollout(scene, entry), None
    if reason == "RollbackHook":
        entry, left = restore.announced(scene, entry, scene.snapshot.hash)
    note = scene.note("Warning", f"Rolling back {scene.names.target}: {gate.name} asked for it")
    found = decision(scene, (), alerting(note, "warn"), entry)
    return replace(found, notes=(*found.notes, left)) if left else found


def restart(scene: Scene) -> Decision:
    """Judge the newest revision alone: traffic back to the primary, all counters to zero (C02)."""
    text = f"New revision of {scene.names.target} found: starting over"
    if scene.keeps_routes:
        text += f", with its traffic where it is ({scene.weight} %)"
    note = scene.note("Normal", text)
    entry = run_begins(scene)
    entry["conditions"] = queue.without_slot(scene, entry["conditions"])
    return decision(scene, (), note, routed(scene, entry))


def hold_start(scene: Scene) -> Decision:
    """Not a single pod would be judged: leave the revision undecided, so that it is not lost (D1, P12)."""
    names = scene.names
    why = f"{scene.primary_short} is at zero: waiting for replicas"
    if scene.workload.plural == "daemonsets":
        why = "no node is eligible: waiting for one"
    text = f"New revision of {names.target}, but {why}"
    return noted(scene, "Warning", text)


# -- readiness ---------------------------------------------------------------------------------------------------------------


def scale_up_again(scene: Scene) -> Decision:
    """A run needs pods, whoever took them away."""
    return Decision(writes=upkeep.to_run(scene))


def wait_for_target(scene: Scene) -> Decision:
    """Wait until the target is ready, or the deadline passes."""
    note = scene.note("Normal", f"Waiting for {scene.target_name} to be rolled out")
    late = scene.deadline_in <= 0
    return Decision(notes=(note,), requeue_after=None if late else scene.deadline_in)


def mark_ready(scene: Scene) -> Decision:
    """Remember since when the target is ready: the first iteration is due one interval later."""
    return _ready_condition(scene, ready=True)


def mark_lost(scene: Scene) -> Decision:
    """Remember that readiness was lost; an interval only counts when the target was ready all through it."""
    return _ready_condition(scene, ready=False)


def count_nodes(scene: Scene) -> Decision:
    """Remember on how many nodes the target is ready; nothing else has changed."""
    entry = cond.find(scene.status, cond.CANARY_READY) or {}
    text = _ready_text(scene, str(entry.get("reason") or ""))
    told = cond.reworded(conditions(scene), cond.CANARY_READY, text)
    return status(scene, {"conditions": told}, touch=False)


def nodes_joined(scene: Scene) -> Decision:
    """Give the pods of still more nodes the deadline for themselves."""
    held = cond.drop(conditions(scene), cond.CANARY_READY)
    text = scene.target_ready.message
    new = cond.put(held, cond.CANARY_READY, "False", cond.RESCALED, text, now=scene.now)
    return status(scene, {"conditions": new}, touch=False)


def wait_for_route(scene: Scene) -> Decision:
    """The analysis judges nothing while the route is not what it should be; said once."""
    return noted(scene, "Warning", f"Waiting for the route: {scene.route_waits}")


# -- from step to step -------------------------------------------------------------------------------------------------------


def begin(scene: Scene) -> Decision:
    """Begin the analysis: the hooks before it agreed, and the first traffic goes to the canary."""
    settings, held = scene.settings, conditions(scene)
    fields: JSON = {}
    if settings.mirror and not scene.repairing and not scene.weight:
        text = "The canary gets a copy of the traffic"
        held = cond.put(held, cond.MIRRORING, "True", "Mirroring", text, now=scene.now)
    elif settings.strategy == "weights" and not scene.repairing:
        fields["canaryWeight"] = max(settings.following(0), scene.weight)
    elif settings.strategy == "a/b":
        fields["canaryWeight"] = FULL
    text = _ready_text(scene, cond.ANALYSING)
    held = cond.put(held, cond.CANARY_READY, "True", cond.ANALYSING, text, now=scene.now)
    fields["conditions"] = cond.drop(held, cond.HELD)
    note = scene.note("Normal", f"Analysis of {scene.names.target} begins")
    if "canaryWeight" in fields:
        note = scene.note("Normal", _weight_text(scene, fields["canaryWeight"]))
    return decision(scene, (), note, routed(scene, fields))


def advance(scene: Scene) -> Decision:
    """Count one iteration."""
    done, n = scene.iterations + 1, scene.settings.iterations
    note = scene.note("Normal", f"Iteration {done} of {n} passed for {scene.names.target}")
    return decision(scene, (), note, {"iterations": done} | _unheld(scene))


def increase(scene: Scene) -> Decision:
    """Give the canary its next share of the traffic; mirroring ends with the first one."""
    settings = scene.settings
    fields: JSON = {}
    weight = settings.following(scene.weight)
    if scene.replacing:
        # Never below what its users met before, until it has passed as many checks as any other (spec freeze-and-adopt 3.3).
        done = scene.iterations + (not scene.mirroring)
        weight = max(settings.steps[min(done, len(settings.steps) - 1)], scene.weight)
        fields["iterations"] = done
    held = cond.drop(cond.drop(conditions(scene), cond.MIRRORING), cond.HELD)
    fields |= {"canaryWeight": weight, "conditions": held}
    text = _weight_text(scene, weight)
    if scene.replacing:
        text += f", after {fields['iterations']} of {len(settings.steps)} checks"
    return decision(scene, (), scene.note("Normal", text), routed(scene, fields))


def shift_all(scene: Scene) -> Decision:
    """All traffic to the canary, before the primary is rolled (blue-green with a router that splits)."""
    held = cond.drop(cond.drop(conditions(scene), cond.MIRRORING), cond.HELD)
    fields = {"canaryWeight": FULL, "iterations": scene.settings.iterations, "conditions": held}
    note = scene.note("Normal", _weight_text(scene, FULL))
    return decision(scene, (), note, routed(scene, fields))


def check_failed(scene: Scene) -> Decision:
    """Count a failed check."""
    went, failed = scene.checkup, scene.failed_checks + 1
    # What is said of a metric begins with its name.
    what = f"{went.gate} hook {went.name}: {went.message}" if went.gate else went.message
    text = f"Check {failed} of {scene.settings.threshold} failed for {scene.names.target}: {what}"
    # Kept where the roll-back finds it, which may be another process's.
    told = cond.reworded(conditions(scene), cond.PROMOTED, f"{LAST_FAILURE}{what}")
    fields = {"failedChecks": failed, "conditions": told}
    return decision(scene, (), scene.note("Warning", text), fields)


def hold(scene: Scene) -> Decision:
    """A gate is closed: say it once, and ask again an interval later (P6, P7)."""
    went = scene.checkup
    if went.gate == checkup.STEADY:
        return _hold_until_steady(scene)
    reason, _ = GATES[went.gate]
    now = cond.find(scene.status, cond.HELD) or {}
    if now.get("reason") == reason:
        return Decision(requeue_after=went.again_in)
    text = held_text(scene, went.gate, went.name, went.message)
    fields: JSON = {}
    if went.gate == "confirm-promotion":
        done = {"iterations": scene.settings.iterations}
        counted = done if scene.settings.strategy != "weights" else {}
        message = f"{scene.target_name} passed its analysis and waits for {went.name}"
        fields = entered(scene.status, "WaitingPromotion", scene.now, message, counted)
    held = list(fields.get("conditions") or conditions(scene))
    fields["conditions"] = cond.put(held, cond.HELD, "True", reason, text, now=scene.now)
    note = scene.note("Warning", text)
    return decision(scene, (), note if went.muted else alerting(note, "warn"), fields)


def _hold_until_steady(scene: Scene) -> Decision:
    """A target that lost readiness must be ready for as long as its deadline before it is promoted (case C11); said once."""
    now = cond.find(scene.status, cond.HELD) or {}
    if now.get("reason") == cond.UNSTEADY:
        return Decision(requeue_after=min(scene.checkup.again_in or 0.0, scene.steady_in))
    text = (
        f"{scene.target_name} lost readiness in this run: it is promoted once it has been ready for"
        f" {scene.settings.deadline:g} s without a break"
    )
    held = cond.put(conditions(scene), cond.HELD, "True", cond.UNSTEADY, text, now=scene.now)
    held = queue.without_slot(scene, held)
    return decision(scene, (), scene.note("Warning", text), {"conditions": held})


def wait_for_interval(scene: Scene) -> Decision:
    """Wait until the next step is due."""
    return Decision(requeue_after=max(scene.due_in, 0.0))


# -- helpers -----------------------------------------------------------------------------------------------------------------


def _failed_before(scene: Scene, otherwise: str = "") -> str:
    """Return the reason of a Failed that follows a wait: a canary that was kept is still the only healthy copy (case C10)."""
    return "PromotionFailed" if scene.weight == FULL else otherwise


def _unheld(scene: Scene) -> JSON:
    if cond.find(scene.status, cond.HELD) is None:
        return {}
    return {"conditions": cond.drop(conditions(scene), cond.HELD)}


def held_text(scene: Scene, gate: str, name: str, message: str) -> str:
    """Return what is said while a gate is closed."""
    what = GATES[gate][1]
    return f"Waiting for {name} to confirm {what} of {scene.names.target}: {message}"


def _weight_text(scene: Scene, weight: int) -> str:
    return f"Traffic of {scene.names.target}: {weight} % to the canary, {100 - weight} % to the primary"


def run_begins(scene: Scene) -> JSON:
    """Return the status fields of a run that begins: what is analysed, all counters at zero, and the traffic with the primary.

    Those who met a revision that is frozen, or that would be, must not fall back to the old one: their traffic stays with the target.
    """
    text = f"{scene.target_name} is under analysis"
    fields = {
        "lastAppliedSpec": scene.snapshot.hash,
        "lastTrackedRevision": str(scene.snapshot.fence),
        **scene.config_fields,
    }
    entry = entered(scene.status, "Progressing", scene.now, text, ZERO | fields, renew=True)
    if scene.keeps_routes:
        said = (
            f"The traffic of {scene.names.target} stays with it while another revision is analysed"
        )
        kept = frozen.keep(list(entry["conditions"]), frozen.REPLACED, said, scene.now)
        entry |= {"canaryWeight": scene.weight, "conditions": kept}
    if not (scene.repairs or scene.repairing):
        return entry
    text = f"{scene.primary_name} is not ready since a promotion failed: all traffic stays with {scene.names.target}"
    held = cond.put(
        entry["conditions"], cond.REPAIRING, "True", "PrimaryNotReady", text, now=scene.now
    )
    return entry | {"canaryWeight": FULL, "conditions": held}


def _ready_text(scene: Scene, reason: str) -> str:
    text = f"{scene.target_name} is ready{spread.words(scene.target)}"
    return f"{text} and under analysis" if reason == cond.ANALYSING else text


def _ready_condition(scene: Scene, *, ready: bool) -> Decision:
    # While its pods are not ready nothing is asked: whatever gave no verdict before gets its full time again.
    held, now = cond.drop(conditions(scene), cond.UNMEASURED), scene.now
    reason, text = "Ready", _ready_text(scene, "Ready")
    if not ready:
        reason = cond.RESCALED if scene.rescaled else "NotReady"
        text = scene.target_ready.message
        if not scene.rescaled:
            held = _unsteady(scene, held)
    state: cond.State = "True" if ready else "False"
    new = cond.put(held, cond.CANARY_READY, state, reason, text, now=now)
    return status(scene, {"conditions": new})


def _unsteady(scene: Scene, held: list[JSON]) -> list[JSON]:
    """Return the conditions with the loss of readiness remembered, and since when the deadline counts."""
    since = scene.ready_since if scene.ready_since is not None else scene.now
    before = cond.find(scene.status, cond.UNSTEADY)
    steady = scene.now - since >= scene.settings.deadline
    # Whoever had met the deadline, or was ready for as long, gets a new one; it counts from the start of the run otherwise.
    renewed = steady or (before is None and scene.deadline_in <= 0)
    if before is not None and not renewed:
        return held
    text = f"{scene.target_name} lost readiness"
    moment = scene.now if renewed else scene.clock
    return cond.put(
        cond.drop(held, cond.UNSTEADY), cond.UNSTEADY, "True", "ReadinessLost", text, now=moment
    )
