"""What a benchmark prints at its end: the figures without the details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from harness.bench.rows import rows

if TYPE_CHECKING:
    from harness.bench.model import BenchReport


def summary(report: BenchReport) -> str:
    """Return the table of figures, what went wrong and what is wanted, as plain text."""
    names = [subject.name for subject in report.subjects]
    headers = ["stage", "figure", *names, *(f"÷ {names[0]}" for _ in names[1:])]
    shown = [[row.stage, row.figure, *row.values, *row.ratios] for row in rows(report)]
    lines = [tabulate(shown, headers, tablefmt="plain", disable_numparse=True)]
    lines += [
        f"{subject.name}: {problem}" for subject in report.subjects for problem in subject.problems
    ]
    lines += [
        f"{'met' if goal.met else 'missed'}: {goal.subject}: {goal.figure}: {goal.reached} (wanted: {goal.wanted})"
        for goal in report.goals
    ]
    return "\n".join(lines) + "\n"
