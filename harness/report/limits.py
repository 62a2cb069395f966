"""How much of a report is shown. GitHub takes 65,536 characters, so a large report is shortened step by step until it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

GITHUB: Final = 65_536
"""Most characters that a comment on GitHub may have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Most of everything that may become long."""

    evidence: int
    """Characters of one finding's evidence."""
    rows: int
    """Rows of the folded table."""
    main_rows: int
    """Rows of the table that is not folded."""
    pods: int
    """Pods in one row."""
    block: int
    """Characters of one JSON block."""
    rollouts: int
    """Rows of the table of rollouts."""
    items: int
    """Entries of a list: notes, gaps, recorded values, objects left."""


STEPS: Final = (
    Limits(
        evidence=2_000, rows=2_000, main_rows=30, pods=200, rollouts=500, block=20_000, items=200
    ),
    Limits(evidence=800, rows=400, main_rows=30, pods=60, rollouts=200, block=6_000, items=60),
    Limits(evidence=500, rows=150, main_rows=24, pods=30, rollouts=120, block=3_000, items=40),
    Limits(evidence=400, rows=60, main_rows=20, pods=16, rollouts=60, block=1_500, items=20),
    Limits(evidence=300, rows=20, main_rows=12, pods=8, rollouts=30, block=800, items=10),
    Limits(evidence=200, rows=0, main_rows=8, pods=4, rollouts=10, block=300, items=5),
)
"""From the whole to the least."""


def fit(render: Callable[[Limits], str], limit: int) -> str:
    """Return the fullest text that fits. What does not fit even at its shortest is cut off, and says so."""
    text = ""
    for limits in STEPS:
        text = render(limits)
        if len(text) <= limit:
            return text
    note = "\n\n(Cut off here: report.json has everything.)\n"
    head = text[: max(limit - len(note) - 40, 0)]
    head = head[: head.rfind("\n")] if "\n" in head else head
    # What is open at the cut must not swallow the note.
    closing = "\n```" if head.count("\n```") % 2 else ""
    closing += "\n\n</details>" * (head.count("<details") - head.count("</details>"))
    return f"{head}{closing}{note}"
