"""What checks and the report see of the queries to a drill's metrics server: how many, how many at once, and who else counted them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, Any, Final

from harness.checks.section import Section
from harness.model.report import QueriesRow
from harness.model.standins import TOO_MANY
from harness.model.timeline_outside import Queries, QueriesCounted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.resolved import Resolved
    from harness.model.timeline import Observation

ONE: Final = "one"
"""Key of the only view of the section."""
SECOND: Final = 1.0


class Asked:
    """The section `queries`, and the row of the report."""

    def __init__(self, scenario: Resolved) -> None:
        self.known = scenario.metrics is not None
        """Whether there is a metrics server of ours; otherwise nothing can be said."""
        self.section = Section()
        self._came: list[float] = []
        """When each query came in, in order."""
        self._total: dict[int, int] = {}
        """Status -> how many queries got it; 0: they were given up."""
        self._passed = 0
        self._peak, self._peak_at = 0, 0.0
        self._counted: int | None = None
        self._counted_peak, self._counted_peak_at = 0.0, 0.0
        self._put()

    def take(self, seen: Queries | QueriesCounted) -> None:
        """Take more queries, or another count of them, into account."""
        if isinstance(seen, QueriesCounted):
            self._count(seen)
        else:
            self._passed += seen.passed
            for came, status in zip(seen.came, seen.statuses, strict=False):
                self._total[status] = self._total.get(status, 0) + 1
                self._come(came)
        self._put()

    def row(self) -> QueriesRow | None:
        """Return what the report says of them; None where the scenario has no metrics."""
        if not self.known:
            return None
        words = {TOO_MANY: f"{TOO_MANY} (refused at the door)", 0: "given up"}
        return QueriesRow(
            total=len(self._came),
            answered={words.get(key, str(key)): self._total[key] for key in sorted(self._total)},
            peak=self._peak,
            peak_at=self._peak_at if self._came else None,
            counted=self._counted,
            counted_peak=self._counted_peak,
            counted_peak_at=self._counted_peak_at if self._counted_peak else None,
        )

    def _count(self, seen: QueriesCounted) -> None:
        before, self._counted = self._counted, seen.total
        # The first look has nothing to be compared with.
        if before is not None and seen.seconds > 0:
            # Two looks in the same moment say nothing of a second.
            rate = (seen.total - before) / max(seen.seconds, SECOND)
            if rate > self._counted_peak:
                self._counted_peak, self._counted_peak_at = rate, seen.t

    def _come(self, came: float) -> None:
        """Note one that came in, and look again at every second that it lies in."""
        insort(self._came, came)
        first = bisect_left(self._came, came)
        last = bisect_left(self._came, came + SECOND)
        for end in range(first, last):
            moment = self._came[end]
            count = bisect_right(self._came, moment) - bisect_right(self._came, moment - SECOND)
            if count > self._peak:
                self._peak, self._peak_at = count, moment

    def _put(self) -> None:
        view: dict[str, Any] = {
            "total": len(self._came),
            "refused": self._total.get(TOO_MANY, 0),
            "passed": self._passed,
            "peak": self._peak,
        }
        if self._counted is not None:
            view |= {"counted": self._counted, "counted_peak": round(self._counted_peak, 2)}
        self.section.put(ONE, view)


def queries_row(observations: Iterable[Observation], scenario: Resolved) -> QueriesRow | None:
    """Return what the report says of the queries among some observations; None where the scenario has no metrics."""
    asked = Asked(scenario)
    for seen in observations:
        if isinstance(seen, Queries | QueriesCounted):
            asked.take(seen)
    return asked.row()
