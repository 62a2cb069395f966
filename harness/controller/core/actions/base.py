"""How actions put a Decision together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core.analysis import webhooks
from harness.controller.core.decision import JSON, Alert, Decision, Note, Severity, Write
from harness.controller.core.scene import Scene
from harness.controller.core.status import difference
from harness.controller.core.strategies.traffic import split_of

if TYPE_CHECKING:
    from harness.controller.core.checkup import Checkup

Action = Callable[[Scene], Decision]

ZERO: Final = {"canaryWeight": 0, "failedChecks": 0, "iterations": 0}


def rest(_: Scene) -> Decision:
    """Do nothing until something moves."""
    return Decision()


def noted(scene: Scene, severity: Severity, message: str, alert: Alert | None = None) -> Decision:
    """Return an event and nothing else."""
    return Decision(notes=(replace(scene.note(severity, message), alert=alert),))


def status(scene: Scene, fields: JSON, *, touch: bool = True) -> Decision:
    """Return a status write and nothing else."""
    return Decision(status=difference(scene.status, fields, scene.now, touch=touch))


def decision(
    scene: Scene, writes: tuple[Write, ...], note: Note | None, fields: JSON, *, touch: bool = True
) -> Decision:
    """Return writes, an event and a status write."""
    changed = difference(scene.status, fields, scene.now, touch=touch)
    return Decision(writes=writes, notes=(note,) if note else (), status=changed)


def alerting(note: Note, severity: str, *, facts: bool = False) -> Note:
    """Return an event that people are told of, with its own words."""
    level = {"info": "info", "warn": "warn"}.get(severity, "error")
    return replace(note, alert=Alert(level, note.message, facts))  # type: ignore[arg-type]


def asking(checkup: Checkup) -> Decision:
    """Ask the next question of a round."""
    return Decision(calls=(checkup.pending,) if checkup.pending else ())


def ask(scene: Scene) -> Decision:
    """Ask the next question of this step of the analysis."""
    return asking(scene.checkup)


def routed(scene: Scene, fields: JSON) -> JSON:
    """Return status fields that change the split, with what the route needs remembered.

    The status goes first and is the one truth about traffic; the next pass brings the route (`upkeep.traffic`). A crash in between
    changes nothing: whoever comes next reads the status.
    """
    after: JSON = {**scene.status, **fields}
    return fields | scene.router.status(scene.wish_for(split_of(after), after))


def conditions(scene: Scene) -> list[JSON]:
    """Return a copy of the conditions."""
    return list(scene.status.get("conditions") or [])


def post_rollout(scene: Scene, fields: JSON) -> JSON:
    """Return the fields of a run's end, with the post-rollout hooks marked as still to be called."""
    if not webhooks.hooks(scene.canary, "post-rollout"):
        return fields
    text = "The post-rollout hooks are being called"
    held = cond.put(
        list(fields["conditions"]),
        cond.POST_ROLLOUT,
        "Unknown",
        "Pending",
        text,
        now=scene.now,
        renew=True,
    )
    return fields | {"conditions": held}
