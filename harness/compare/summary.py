"""The summary of a comparison for a terminal. Plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.compare.markdown import conclusion
from harness.report.text import short

if TYPE_CHECKING:
    from harness.compare.model import Comparison, Difference

_LINE: Final = 400
_SHOWN: Final = 20
_WIDTH: Final = 11


def summary(comparison: Comparison) -> str:
    """Return a line for each pair, what is wrong below it, and the sum at the end."""
    lines: list[str] = []
    for drill in comparison.drills:
        for pair in drill.pairs:
            title = f"{drill.scenario.id}: {pair.reference}, {pair.other}"
            lines += [f"{pair.outcome:<{_WIDTH}} {title}", f"{'':<{_WIDTH}} {pair.sentence}"]
            wrong = [f"unexplained: {_told(d)}" for d in pair.unexplained]
            wrong += [f"not found: {s.id} {s.path} ({s.where})" for s in pair.stale]
            lines += [f"{'':<{_WIDTH}} - {short(line, _LINE)}" for line in wrong[:_SHOWN]]
            if len(wrong) > _SHOWN:
                lines.append(f"{'':<{_WIDTH}} - and {len(wrong) - _SHOWN} more")
    lines += [f"{'not run':<{_WIDTH}} {short(problem, _LINE)}" for problem in comparison.problems]
    _, sentence = conclusion(comparison)
    lines.append(f"{sentence.rstrip('.')} (exit code {int(comparison.exit_code)})")
    return "\n".join(_printable(line) for line in lines) + "\n"


def _told(difference: Difference) -> str:
    reference, other = (
        "nothing" if value is None else short(value, 100)
        for value in (difference.reference, difference.other)
    )
    return f"{difference.path}: {reference} | {other}"


def _printable(line: str) -> str:
    # A cluster's message must neither break the line nor move the cursor.
    return "".join(c if c.isprintable() else " " for c in line)
