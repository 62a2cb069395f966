"""The summary for a terminal: a line for each drill, what went wrong below it, and the sum at the end. Plain text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from harness.model.outcome import Outcome
from harness.report.text import plural, short

if TYPE_CHECKING:
    from harness.model.report import DrillReport, RunReport

_LINE: Final = 400
_WIDTH: Final = 11
"""Of the longest outcome, so that the names stand below each other."""


def drill_lines(drill: DrillReport) -> list[str]:
    """Return the lines about one drill."""
    verdict = drill.verdict
    # Without these words a "fail" among passed tests would look like a mistake.
    behaved = " (control, as expected)" if verdict.control and verdict.as_expected else ""
    lines = [
        f"{verdict.outcome:<{_WIDTH}} {_line(drill.scenario.id)}{behaved}",
        f"{'':<{_WIDTH}} {_line(verdict.sentence)}",
    ]
    if verdict.as_expected:
        return lines
    for finding in drill.findings:
        if finding.outcome is finding.expected:
            continue
        told = "should fail, but passed" if finding.outcome is Outcome.PASS else finding.outcome
        lines.append(f"{'':<{_WIDTH}} - {finding.id}: {told}: {_line(finding.evidence)}")
        lines += [f"{'':<{_WIDTH}}   {note.kind}: {_line(note.text)}" for note in finding.notes]
    return lines


def summary(run: RunReport) -> str:
    """Return the summary of a run."""
    lines = [line for drill in run.drills for line in drill_lines(drill)]
    counts = Counter(drill.verdict.outcome for drill in run.drills)
    told = [f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]]
    good = sum(1 for drill in run.drills if drill.verdict.as_expected)
    total = f"{plural(len(run.drills), 'drill')}: {', '.join(told) or 'nothing was run'}"
    if run.drills:
        total += f"; {good} of {len(run.drills)} as expected"
    return "\n".join([*lines, f"{total} (exit code {int(run.exit_code)})"]) + "\n"


def _line(text: str) -> str:
    # A cluster's message must neither break the line nor move the cursor.
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return short(plain, _LINE)
