"""profile.md: where the bundled controller's CPU time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.report.text import code_cell, esc, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.bench.model import BenchReport, ProfileRow


def profile_page(report: BenchReport) -> str:
    """Return the profiles of all stages as Markdown."""
    parts = [
        f"# Profile of a storm of {report.setup.canaries} rollouts",
        "CPU seconds of the bundled controller's process. The profiler itself makes them more than they are without it.",
    ]
    for subject in report.subjects:
        for profile in subject.profiles:
            parts += [
                f"## {esc(subject.name)}: {esc(profile.stage)}, {profile.seconds:.2f} CPU seconds",
                "By the time in the function itself:",
                _table(profile.own),
                "Our own functions, by the time in them and in what they called:",
                _table(profile.whole),
            ]
    return "\n\n".join(parts) + "\n"


def _table(rows: Iterable[ProfileRow]) -> str:
    headers = ("own", "whole", "calls", "function")
    return table(
        headers,
        [
            (f"{row.own:.2f}", f"{row.whole:.2f}", f"{row.calls:,}", code_cell(row.function))
            for row in rows
        ],
    )
