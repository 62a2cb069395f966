"""What the rows of the transition table do. Each takes a Scene and returns a Decision; none looks at the phase.

Messages are ours. Those that people search for keep a stable beginning: "New revision", "Rolling back", "Promotion".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.controller.core import conditions as cond
from harness.controller.core import primary, replicas, upkeep
from harness.controller.core.decision import JSON, Decision, Note, Severity, Write
from harness.controller.core.readiness import wanted
from harness.controller.core.scene import Scene
from harness.controller.core.status import difference, entered
from harness.controller.core.tracking import refresh_for

Action = Callable[[Scene], Decision]

FULL_WEIGHT = 100
ZERO = {"canaryWeight": 0, "failedChecks": 0, "iterations": 0}


# -- any phase ---------------------------------------------------------------------------------------------------------------


def rest(_: Scene) -> Decision:
    """Do nothing until something moves."""
    return Decision()


def suspended(scene: Scene) -> Decision:
    """Say once that nothing will be done, and write nothing (A5, C03)."""
    return _noted(scene, "Normal", "Suspended: nothing is done until spec.suspend is false")


def refuse(scene: Scene) -> Decision:
    """Say on the Canary why it is left alone; no other write (G1, A6)."""
    why = scene.refused
    if why is None:
        msg = "refuse() without a refusal"
        raise LookupError(msg)
    held = list(scene.status.get("conditions") or [])
    old = cond.find(scene.status, cond.ACCEPTED) or {}
    changed = old.get("message") != why.message
    new = cond.put(
        held, cond.ACCEPTED, "False", why.reason, why.message, now=scene.now, renew=changed
    )
    note = scene.note("Warning", f"Not handled: {why.message}")
    status = difference(scene.status, {"conditions": new}, scene.now, touch=False)
    return Decision(notes=(note,), status=status)


def accept(scene: Scene) -> Decision:
    """Take the refusal back."""
    left = cond.drop(list(scene.status.get("conditions") or []), cond.ACCEPTED)
    return _status(scene, {"conditions": left}, touch=False)


def target_missing(scene: Scene) -> Decision:
    """Say that the target is missing; its watch wakes us."""
    return _noted(scene, "Warning", f"Deployment {scene.names.target} does not exist")


def foreign_primary(scene: Scene) -> Decision:
    """Leave a Deployment alone that has the primary's name but belongs to somebody else."""
    text = f"Deployment {scene.names.primary} belongs to {scene.foreign_primary}: left alone"
    return _noted(scene, "Warning", text)


def mend(scene: Scene) -> Decision:
    """Make what must exist."""
    return Decision(writes=upkeep.upkeep(scene))


def primary_missing(scene: Scene) -> Decision:
    """Refuse to remake the primary from a template that was never promoted (P13)."""
    names = scene.names
    text = (
        f"Deployment {names.primary} is gone and {names.target} holds another revision than the"
        " promoted one: put the promoted template back to have it made again"
    )
    return _noted(scene, "Warning", text)


# -- bootstrap ---------------------------------------------------------------------------------------------------------------


def announce(scene: Scene) -> Decision:
    """Enter Initializing; the deadline of the bootstrap counts from here."""
    text = f"Deployment {scene.names.target} is being initialised"
    return _status(scene, entered(scene.status, "Initializing", scene.now, text))


def initialise(scene: Scene) -> Decision:
    """Let the primary take over: the apex first, then the target to zero, then the status (C28).

    Recorded is the revision that the primary was made from. If the target has moved on meanwhile, its fence must not prove that
    nothing happened, so the counter is stored as one that no object has, and the next pass starts a run (D2).
    """
    names, now = scene.names, scene.snapshot
    moved = scene.overtaken
    known = scene.primary_hash if moved else now.hash
    fields: JSON = {
        "lastAppliedSpec": known,
        "lastPromotedSpec": known,
        "lastTrackedRevision": str(now.fence.open() if moved else now.fence),
    }
    text = f"Deployment {names.primary} serves; {names.target} waits for a new revision"
    status = entered(scene.status, "Initialized", scene.now, text, ZERO | fields)
    note = scene.note("Normal", f"Initialised: {names.primary} serves, {names.target} goes to zero")
    writes = upkeep.apex(scene) + replicas.scale(scene.target, 0)
    return replace(_decision(scene, writes, note, status), refresh=refresh_for(scene, known))


def bootstrap_failed(scene: Scene) -> Decision:
    """Fail without touching the live target or the apex Service (P1)."""
    text = (
        f"Deployment {scene.names.primary} did not become ready within"
        f" {scene.settings.deadline:g} s ({scene.primary_ready.message});"
        f" {scene.names.target} was left running"
    )
    status = entered(scene.status, "Failed", scene.now, text, reason="InitializationFailed")
    return _decision(scene, (), scene.note("Warning", f"Initialisation failed: {text}"), status)


def repair_bootstrap(scene: Scene) -> Decision:
    """Try again with the target's new template; no traffic has reached the primary yet."""
    names = scene.names
    writes = primary.promote(names, scene.target, scene.primary, scene.snapshot.hash)
    text = f"Deployment {names.target} is being initialised"
    status = entered(scene.status, "Initializing", scene.now, text, renew=True)
    note = scene.note("Normal", f"New revision before the first success: {names.primary} remade")
    return _decision(scene, writes, note, status)


def wait_for_primary(scene: Scene) -> Decision:
    """Wait until the primary is ready, or the deadline passes."""
    return _waiting(scene, scene.names.primary)


# -- a run -------------------------------------------------------------------------------------------------------------------


def start(scene: Scene) -> Decision:
    """Scale the target up, then record the revision that was compared (D1, D6)."""
    target = scene.names.target
    writes = replicas.scale(scene.target, replicas.at_start(scene.target, scene.world.primary))
    note = scene.note("Normal", f"New revision of {target} found: scaling it up")
    decision = _decision(scene, writes, note, _run_begins(scene))
    decision = replace(decision, refresh=refresh_for(scene, scene.snapshot.hash))
    if not scene.settings.forced:
        return decision
    text = (
        "Provider kubernetes has no traffic to split: blue-green with"
        f" {scene.settings.iterations} iterations instead"
    )
    return replace(decision, notes=(*decision.notes, scene.note("Warning", text)))


def restart(scene: Scene) -> Decision:
    """Judge the newest revision alone: all counters to zero (C02)."""
    note = scene.note("Normal", f"New revision of {scene.names.target} found: starting over")
    return _decision(scene, (), note, _run_begins(scene))


def hold_start(scene: Scene) -> Decision:
    """Not a single pod would be judged: leave the revision undecided, so that it is not lost (D1, P12)."""
    names = scene.names
    text = f"New revision of {names.target}, but {names.primary} is at zero: waiting for replicas"
    return _noted(scene, "Warning", text)


def scale_up_again(scene: Scene) -> Decision:
    """A run needs pods, whoever took them away."""
    count = replicas.at_start(scene.target, scene.world.primary)
    return Decision(writes=replicas.scale(scene.target, count))


def wait_for_target(scene: Scene) -> Decision:
    """Wait until the target is ready, or the deadline passes."""
    return _waiting(scene, scene.names.target)


def mark_ready(scene: Scene) -> Decision:
    """Remember since when the target is ready: the first iteration is due one interval later."""
    return _ready_condition(scene, ready=True)


def mark_lost(scene: Scene) -> Decision:
    """Remember that readiness was lost; an interval only counts when the target was ready all through it."""
    return _ready_condition(scene, ready=False)


def advance(scene: Scene) -> Decision:
    """Count one iteration."""
    done, n = scene.iterations + 1, scene.settings.iterations
    note = scene.note("Normal", f"Iteration {done} of {n} passed for {scene.names.target}")
    return _decision(scene, (), note, {"iterations": done})


def wait_for_interval(scene: Scene) -> Decision:
    """Wait until the next iteration is due."""
    return Decision(requeue_after=max(scene.due_in, 0.0))


def promote(scene: Scene) -> Decision:
    """Bring the target's template to the primary; the primary's deadline counts from here."""
    names, skipped = scene.names, scene.settings.skip_analysis
    done = scene.iterations if skipped else scene.settings.iterations
    writes = primary.promote(names, scene.target, scene.primary, scene.snapshot.hash)
    text = f"Deployment {names.primary} takes over the template of {names.target}"
    status = entered(scene.status, "Promoting", scene.now, text, {"iterations": done})
    how = "analysis skipped" if skipped else f"{done} iterations passed"
    note = scene.note("Normal", f"Promotion of {names.target} to {names.primary}: {how}")
    return _decision(scene, writes, note, status)


def finalise(scene: Scene) -> Decision:
    """The primary has rolled; there is no traffic to move with provider kubernetes."""
    text = f"Deployment {scene.names.primary} is rolled out; {scene.names.target} goes to zero"
    return _status(scene, entered(scene.status, "Finalising", scene.now, text))


def succeed(scene: Scene) -> Decision:
    """Scale the target to zero and record the promoted revision."""
    names = scene.names
    text = f"Deployment {names.primary} runs the new revision; {names.target} is scaled to zero"
    status = entered(
        scene.status,
        "Succeeded",
        scene.now,
        text,
        {"canaryWeight": 0, "iterations": 0, "lastPromotedSpec": scene.tracking.applied},
    )
    note = scene.note("Normal", f"Promotion completed: {names.primary} serves the new revision")
    decision = _decision(scene, replicas.scale(scene.target, 0), note, status)
    return replace(decision, refresh=refresh_for(scene, scene.tracking.applied))


# -- a run that ends badly ---------------------------------------------------------------------------------------------------


def roll_back_not_ready(scene: Scene) -> Decision:
    """The target missed its deadline (C11, C12)."""
    cause = f"not ready within {scene.settings.deadline:g} s ({scene.target_ready.message})"
    return _roll_back(scene, "Failed", cause)


def roll_back_failed_checks(scene: Scene) -> Decision:
    """Too many failed checks."""
    return _roll_back(scene, "Failed", f"{scene.settings.threshold} checks failed")


def abort(scene: Scene) -> Decision:
    """Somebody put the promoted template back: nothing is left to judge (D5)."""
    cause = "the promoted template was put back"
    return _roll_back(scene, "ManualRollback", cause, scene.verdict.persist)


def promotion_failed(scene: Scene) -> Decision:
    """The primary missed its deadline. The target stays up: it is the only healthy copy (C10)."""
    names = scene.names
    why = scene.primary_ready.message or f"{names.primary}: not the promoted template"
    text = (
        f"Deployment {names.primary} was not ready within {scene.settings.deadline:g} s of the"
        f" promotion ({why}); {names.target} keeps running"
    )
    status = entered(
        scene.status,
        "Failed",
        scene.now,
        text,
        {"canaryWeight": FULL_WEIGHT},
        reason="PromotionFailed",
    )
    return _decision(scene, (), scene.note("Warning", f"Promotion failed: {text}"), status)


def idle_pods(scene: Scene) -> Decision:
    """Somebody scaled the idle target up: their field, not corrected, said once (A10)."""
    names = scene.names
    who = ", ".join(sorted(replicas.writers(scene.target) or ())) or "unknown"
    text = (
        f"Deployment {names.target} is idle but has spec.replicas {wanted(scene.target)} (set by"
        f" {who}): its pods run beside those of {names.primary}; let the manifest omit the field"
    )
    return _noted(scene, "Warning", text)


# -- helpers -----------------------------------------------------------------------------------------------------------------


def _roll_back(scene: Scene, reason: str, cause: str, tracking: JSON | None = None) -> Decision:
    """Target to zero, counters kept so that the status shows how far it came (P14).

    The primary was never touched, and the apex selects it all the time.
    """
    target = scene.names.target
    text = f"Deployment {target} is scaled to zero: {cause}"
    fields = {"canaryWeight": 0} | (tracking or {})
    status = entered(scene.status, "Failed", scene.now, text, fields, reason=reason)
    severity: Severity = "Normal" if reason == "ManualRollback" else "Warning"
    note = scene.note(severity, f"Rolling back {target}: {cause}")
    decision = _decision(scene, replicas.scale(scene.target, 0), note, status)
    applied = str(fields.get("lastAppliedSpec") or scene.tracking.applied)
    return replace(decision, refresh=refresh_for(scene, applied))


def _run_begins(scene: Scene) -> JSON:
    text = f"Deployment {scene.names.target} is under analysis"
    return entered(
        scene.status,
        "Progressing",
        scene.now,
        text,
        ZERO
        | {
            "lastAppliedSpec": scene.snapshot.hash,
            "lastTrackedRevision": str(scene.snapshot.fence),
        },
        renew=True,
    )


def _ready_condition(scene: Scene, *, ready: bool) -> Decision:
    reason, text = "Ready", f"Deployment {scene.names.target} is ready"
    if not ready:
        since = scene.ready_since if scene.ready_since is not None else scene.now
        steady = scene.now - since >= scene.settings.deadline
        reason, text = (cond.LOST if steady else "NotReady"), scene.target_ready.message
    held = list(scene.status.get("conditions") or [])
    state: cond.State = "True" if ready else "False"
    new = cond.put(held, cond.CANARY_READY, state, reason, text, now=scene.now)
    return _status(scene, {"conditions": new})


def _waiting(scene: Scene, name: str) -> Decision:
    note = scene.note("Normal", f"Waiting for Deployment {name} to be rolled out")
    late = scene.deadline_in <= 0
    return Decision(notes=(note,), requeue_after=None if late else scene.deadline_in)


def _noted(scene: Scene, severity: Severity, message: str) -> Decision:
    return Decision(notes=(scene.note(severity, message),))


def _status(scene: Scene, fields: JSON, *, touch: bool = True) -> Decision:
    return Decision(status=difference(scene.status, fields, scene.now, touch=touch))


def _decision(scene: Scene, writes: tuple[Write, ...], note: Note, fields: JSON) -> Decision:
    status = difference(scene.status, fields, scene.now)
    return Decision(writes=writes, notes=(note,), status=status)
