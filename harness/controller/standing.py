"""Where a run stands, in words: how far it has come, who holds it up, and what is said of it. Nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import configs, line
from harness.controller.core.phases import RUN
from harness.controller.core.strategies.traffic import weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.calls import Call
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene

_WAITS: Final = frozenset({"Initializing", "Promoting", "Finalising"})
"""Phases that end when something is ready, or at the deadline."""


def standing(scene: Scene) -> tuple[str, ...]:
    """Return a line for each thing that tells where the run stands; none for a Canary that is refused or was never seen."""
    if scene.refused is not None or not scene.phase:
        return ()
    return tuple(_lines(scene))


def held(scene: Scene) -> JSON:
    """Return which gate is closed, and in whose words; empty while none is."""
    entry = cond.find(scene.status, cond.HELD)
    if entry is not None:
        return {"gate": entry.get("reason") or "", "message": entry.get("message") or ""}
    if scene.phase == "Waiting" and not line.in_line(scene.status):
        told = cond.find(scene.status, cond.PROMOTED) or {}
        return {"gate": "ConfirmRollout", "message": told.get("message") or ""}
    return {}


def queue(scene: Scene) -> JSON:
    """Return the place in the line of those that want to analyse: position, waiting, since, priority; empty for one that is not in it."""
    turn = scene.world.turn
    if turn is None or turn.granted or not line.in_line(scene.status):
        return {}
    entry = cond.find(scene.status, cond.QUEUED) or {}
    return {
        "position": turn.position,
        "waiting": turn.waiting,
        "since": str(entry.get("lastTransitionTime") or ""),
        "priority": line.priority(scene.canary),
    }


def said(scene: Scene) -> tuple[JSON, ...]:
    """Return the conditions: type, status, reason and message of each."""
    keys = ("type", "status", "reason", "message")
    entries = scene.status.get("conditions") or []
    return tuple({key: str(entry.get(key) or "") for key in keys} for entry in entries)


def tracked(scene: Scene) -> tuple[str, ...]:
    """Return what became of each ConfigMap and Secret that the status remembers or the target refers to."""
    if scene.world.target is None or scene.refused is not None:
        return ()
    now, stored = scene.configs, scene.stored_configs or {}
    missing = {one.key for one in now.missing}
    lines = []
    for key in sorted({*stored, *now.tracked, *missing}):
        if key in missing:
            word = "does not exist, and the target does not start without it"
        elif key not in now.tracked:
            word = "no longer referred to, or not tracked"
        elif key not in stored:
            word = "nothing on record"
        else:
            word = "as on record" if stored[key] == now.tracked[key] else "another content"
        lines.append(f"{key}: {word}")
    return tuple(lines)


def call(one: Call) -> str:
    """Return what would be asked. Never the address: it often holds a token."""
    if one.kind == "metric":
        return f"metric {one.name}"
    return (
        f"{one.entry.get('type') or 'rollout'} hook {one.name} (phase {one.payload.get('phase')})"
    )


def _lines(scene: Scene) -> Iterator[str]:
    settings = scene.settings
    if scene.phase in RUN:
        yield _progress(scene)
        yield f"failed checks: {scene.failed_checks} of {settings.threshold}"
        yield _step(scene)
    elif scene.phase in _WAITS:
        yield f"deadline in {max(scene.deadline_in, 0):.0f} s"
    elif scene.phase == "Waiting" and scene.due_in > 0:
        yield f"asked again in {scene.due_in:.0f} s"
    if scene.phase not in RUN and weight_of(scene.status):
        yield f"weight {scene.weight} on the canary"
    if scene.mirroring:
        yield "the canary gets a copy of the traffic"
    yield from _unmeasured(scene)
    yield from _held_up(scene)
    if copies := _copies(scene):
        yield copies


def _unmeasured(scene: Scene) -> Iterator[str]:
    """Say that a check has no verdict, and since when."""
    told = cond.find(scene.status, cond.UNMEASURED)
    since = cond.since(scene.status, cond.UNMEASURED)
    if told is not None and since is not None:
        yield f"a check has had no verdict for {scene.now - since:.0f} s ({told.get('reason')}): {told.get('message')}"


def _step(scene: Scene) -> str:
    """Say what a run waits for next."""
    if line.in_line(scene.status):
        return "nothing is asked and no deadline runs before its turn"
    if scene.ready_since is None:
        return f"the target is not ready yet; deadline in {max(scene.deadline_in, 0):.0f} s"
    return f"next step due in {scene.due_in:.0f} s" if scene.due_in > 0 else "next step due now"


def _held_up(scene: Scene) -> Iterator[str]:
    if place := queue(scene):
        yield _place(place)
    if gate := held(scene):
        yield f"held by {gate['gate']}: {gate['message']}"


def _place(place: JSON) -> str:
    more = f", priority {place['priority']}" if place["priority"] else ""
    many = place["waiting"]
    return f"waits for its turn: number {place['position']} of {many}, in line since {place['since']}{more}"


def _progress(scene: Scene) -> str:
    settings = scene.settings
    if settings.skip_analysis:
        return "the analysis is skipped"
    if settings.strategy == "weights":
        steps = ", ".join(map(str, settings.steps))
        return f"weight {scene.weight} of {settings.last_weight} (steps: {steps})"
    more = f", weight {scene.weight}" if scene.weight else ""
    return f"{settings.strategy}: iteration {scene.iterations} of {settings.iterations}{more}"


def _copies(scene: Scene) -> str:
    """Say how many configs the primary still has in an older state."""
    if scene.world.target is None or not scene.configs.tracked or not scene.workload.copies:
        return ""
    held = configs.of_copies(scene.configs, scene.world.objects)
    old = [key for key, value in scene.configs.tracked.items() if held.get(key) != value]
    return f"the primary's copy differs: {', '.join(sorted(old))}" if old else ""
