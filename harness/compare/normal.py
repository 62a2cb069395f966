"""From a recording to its normal form: what two subjects must have in common if they did the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.checks import builtin_steps
from harness.checks.builtin_trace import NOTHING_LEFT
from harness.checks.judge import judge
from harness.checks.windows import schedule
from harness.compare.names import Names
from harness.compare.objects import last_objects, normal_objects, secretless
from harness.compare.order import in_order
from harness.compare.phases import PhaseFollower
from harness.model.outcome import ExitCode, Outcome
from harness.model.resolved import Resolved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.compare.model import Visit
    from harness.model.report import DrillReport
    from harness.model.timeline import Timeline

_NOT_THE_SUBJECTS: Final = frozenset(
    {
        NOTHING_LEFT,
        builtin_steps.REQUIRES,
        builtin_steps.PRECONDITION,
        builtin_steps.HARNESS,
        builtin_steps.INTERRUPTED,
    }
)
"""Checks of the harness and the cluster. If they fail there is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Normal:
    """One subject's drill in normal form."""

    subject: str
    """As the recording names it."""
    version: str
    report: DrillReport
    visits: Mapping[str, tuple[Visit, ...]]
    """Rollout -> its phases, in order."""
    facts: Mapping[str, Mapping[str, Any]]
    """Section (`cluster`, `checks`, `recorded`, `objects`) -> name -> value."""
    incomplete: tuple[Outcome, str] | None
    """Why nothing can be concluded from this recording, if that is so."""


def normal_form(timeline: Timeline) -> Normal:
    """Return the normal form of a recording, up to the end of its observation."""
    header = timeline.header
    kind = header.subject.rollout
    report = judge(timeline)
    over = schedule(timeline, Resolved.from_json(header.scenario)).over
    observations = in_order(timeline.observations[: over + 1])
    names, phases = Names(header), PhaseFollower(kind)
    for seen in observations:
        names.apply(seen)
        phases.apply(seen)
    visits = phases.finish(report.change_at)
    objects = normal_objects(last_objects(observations), kind, names)
    facts = {
        "cluster": _cluster(timeline),
        "checks": {f.id: str(f.outcome) for f in report.findings if f.id not in _NOT_THE_SUBJECTS},
        "recorded": {
            entry.title: {
                r.at: secretless(names.translate(r.value), "", {})
                for r in entry.readings
                if r.found
            }
            for entry in report.recorded
        },
        "objects": objects,
    }
    return Normal(
        subject=header.subject.name,
        version=header.subject.version,
        report=report,
        visits=visits,
        facts=facts,
        incomplete=_incomplete(report, visits),
    )


def _cluster(timeline: Timeline) -> dict[str, Any]:
    """Return what must be the same about the clusters for a comparison to be one of subjects."""
    cluster = timeline.header.cluster
    return {
        "kubernetes": cluster.kubernetes,
        "nodes": len(cluster.nodes),
        "simulated": cluster.simulated,
        "seed": cluster.seed,
    }


def _incomplete(
    report: DrillReport, visits: Mapping[str, tuple[Visit, ...]]
) -> tuple[Outcome, str] | None:
    """Return the outcome and the reason if a recording does not hold what has to be compared."""
    found: tuple[Outcome, str] | None = None
    unsupported = report.finding(builtin_steps.REQUIRES)
    precondition = report.finding(builtin_steps.PRECONDITION)
    if report.verdict.exit_code is ExitCode.INTERRUPTED:
        found = Outcome.UNKNOWN, "the drill was interrupted"
    elif report.verdict.outcome is Outcome.ERROR:
        found = Outcome.ERROR, report.verdict.sentence
    elif unsupported is not None and unsupported.outcome is not Outcome.PASS:
        found = Outcome.UNSUPPORTED, unsupported.evidence
    elif precondition is not None and precondition.outcome is not Outcome.PASS:
        found = Outcome.UNKNOWN, precondition.evidence
    elif report.gaps:
        found = Outcome.UNKNOWN, report.gaps[0]
    elif report.truncated:
        found = Outcome.UNKNOWN, "the recording breaks off"
    elif not any(visits.values()):
        found = Outcome.UNKNOWN, "no phase of a rollout object was ever observed"
    return found
