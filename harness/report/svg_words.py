"""What the picture of a drill says in words, and which findings it marks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from harness.model.clock import moment
from harness.model.outcome import Outcome
from harness.report.text import plural, short

if TYPE_CHECKING:
    from harness.model.report import DrillReport, Finding
    from harness.report.svg_pods import Stay

_MOST_LOOKS: Final = 8


def bad(report: DrillReport) -> list[Finding]:
    """Return the findings that are not a pass in the order of the report, but those with a moment to show first."""
    found = [finding for finding in report.findings if finding.outcome is not Outcome.PASS]
    return sorted(found, key=lambda finding: not finding.witnesses)


def failed(finding: Finding) -> bool:
    """Whether a finding is bad news, as opposed to no news."""
    return finding.outcome in {Outcome.FAIL, Outcome.ERROR}


def violated(finding: Finding, over: float) -> list[tuple[float, float]]:
    """Return from when to when there was a witness, without overlaps; `over` is when observation ended."""
    found: list[tuple[float, float]] = []
    for witness in sorted(finding.witnesses, key=lambda witness: witness.since):
        until = over if witness.until is None else witness.until
        if found and witness.since <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until)
        else:
            found.append((witness.since, until))
    return found


def hint(stay: Stay) -> str:
    """Return what is said of a pod when it is pointed at."""
    told = [f"{piece.look.text} from {moment(piece.since)}" for piece in stay.pieces[:_MOST_LOOKS]]
    told += ["and so on"] if len(stay.pieces) > _MOST_LOOKS else []
    place = f"on {stay.pod.node}" if stay.pod.node else "without a node"
    return f"pod {stay.pod.name} {place}: {', '.join(told)}; until {moment(stay.until)}"


def description(report: DrillReport) -> str:
    """Return the picture in words, for whoever cannot see it."""
    names = {pod.name for row in report.rows for pod in row.pods}
    phases: list[str] = []
    for row in report.rows[:-1]:
        if row.phase and (not phases or phases[-1] != row.phase):
            phases.append(row.phase)
    seen = f"{plural(len(names), 'pod')} on {plural(len(report.environment.nodes), 'node')}."
    told_phases = f"Phases: {', '.join(phases)}." if phases else "No phase was seen."
    if report.rollouts:
        counts = Counter(row.final or "no phase" for row in report.rollouts).most_common()
        seen = f"{plural(len(report.rollouts), 'rollout')}."
        told_phases = f"Ended: {', '.join(f'{count} {phase}' for phase, count in counts)}."
    not_passed = [finding.id for finding in bad(report)]
    told = [
        f"Verdict: {report.verdict.sentence}",
        seen,
        told_phases,
        f"Not passed: {', '.join(not_passed)}." if not_passed else "Every check passed.",
        "A table with the same content is in report.md.",
    ]
    return short(" ".join(told), 2_000)
