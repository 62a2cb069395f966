"""Built-in check: one controller drove the rollouts. It is only told of where that does not hold.

Who writes a status leaves a name in managedFields. Where two write the same one, each undoes the other's work, and what the drill shows is
neither's doing: so no verdict says anything. Before a drill begins `harness.run.beside` looks who is there; this is for whom it could not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.checks.paths import dig, kind_of, name_of
from harness.model.clock import moment
from harness.model.outcome import Outcome
from harness.model.report import Finding
from harness.model.timeline import ObjectSeen

if TYPE_CHECKING:
    from harness.checks.windows import Schedule
    from harness.model.scenario import Resolved
    from harness.model.timeline import Timeline

ONE_CONTROLLER: Final = "one-controller"
_OURS: Final = "rollout-drill"
"""Field manager of the harness, whose steps may write a status as well."""
_REPLACED: Final = frozenset({"upgrade", "handback"})
"""Verbs that put one controller in another's place."""
_TITLE: Final = "One controller drove the rollout"


def one_controller(timeline: Timeline, scenario: Resolved, schedule: Schedule) -> Finding | None:
    """Return a finding when more than one controller wrote statuses of the drill's rollout objects; None otherwise.

    None too where the steps put one in another's place.
    """
    if any(step.verb in _REPLACED for step in scenario.steps):
        return None
    kind = timeline.header.subject.rollout.kind
    first: dict[str, tuple[float, str]] = {}
    for seen in timeline.observations[: schedule.over + 1]:
        if not isinstance(seen, ObjectSeen) or kind_of(seen.object) != kind:
            continue
        for entry in dig(seen.object, "metadata.managedFields", []):
            manager = str(entry.get("manager", ""))
            if entry.get("subresource") == "status" and manager != _OURS:
                first.setdefault(manager, (seen.t, name_of(seen.object)))
    if len(first) < 2:  # noqa: PLR2004 - one is what is wanted
        return None
    told = ", ".join(
        f"{manager} ({name}, first at {moment(t)})" for manager, (t, name) in first.items()
    )
    evidence = (
        f"{len(first)} controllers wrote statuses: {told}; what was seen is the work of neither"
    )
    return Finding(ONE_CONTROLLER, _TITLE, Outcome.UNKNOWN, evidence, builtin=True)
