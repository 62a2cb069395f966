"""What the report says of traffic: a row for each phase, who answered in it, and failed requests one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.model.report_traffic import Answered, FailedRequest, TrafficReport, TrafficRow
from harness.model.timeline_traffic import TrafficBegan, TrafficWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.checks.traffic import Known, Revision
    from harness.model.resolved import Resolved
    from harness.model.timeline import Observation

MOST_FAILURES: Final = 200
_HALF: Final = 50
_MOST: Final = 99


@dataclass(slots=True)
class _Part:
    """A phase, and the requests that began in it."""

    phase: str
    since: float
    until: float = 0.0
    sent: int = 0
    took: list[float] = field(default_factory=list)
    by: Counter[Revision] = field(default_factory=Counter)
    failures: list[FailedRequest] = field(default_factory=list)

    def row(self) -> TrafficRow:
        kinds = Counter(failure.kind for failure in self.failures)
        times = [failure.at for failure in self.failures]
        total = sum(self.by.values())
        return TrafficRow(
            phase=self.phase,
            since=self.since,
            until=self.until,
            sent=self.sent,
            failed=len(self.failures),
            kinds=dict(sorted(kinds.items())),
            first_failure=min(times, default=None),
            last_failure=max(times, default=None),
            answered=tuple(
                Answered(role, digest, count, round(100 * count / total, 1))
                for (role, digest), count in sorted(self.by.items())
            ),
            median=percentile(self.took, _HALF),
            p99=percentile(self.took, _MOST),
        )


def traffic_report(
    observations: Iterable[Observation],
    scenario: Resolved,
    phases: Sequence[tuple[float, str]],
    pods: Known,
) -> TrafficReport | None:
    """Return what the report says of traffic; None where the scenario has none.

    `phases`: each phase with the time at which it was seen first, in order. Requests are told by the window of the probe in which
    they began, and a window belongs to the phase in which its middle lies.
    """
    if scenario.traffic is None:
        return None
    began: TrafficBegan | None = None
    starts = [since for since, _ in phases]
    parts: dict[int, _Part] = {}
    for seen in observations:
        if isinstance(seen, TrafficBegan):
            began = began or seen
        elif isinstance(seen, TrafficWindow):
            index = bisect_right(starts, (seen.since + seen.until) / 2) - 1
            phase = phases[index][1] if index >= 0 else ""
            _add(parts.setdefault(index, _Part(phase, seen.since)), seen, pods)
    rows = tuple(parts[index].row() for index in sorted(parts))
    failures = [one for index in sorted(parts) for one in parts[index].failures]
    return TrafficReport(
        url="" if began is None else began.url,
        rate=float(scenario.traffic.rate),
        sent=sum(row.sent for row in rows),
        failed=len(failures),
        waited=0.0 if began is None else began.waited,
        lines=0 if began is None else began.lines,
        within=0.0 if began is None else began.within,
        rows=rows,
        failures=tuple(sorted(failures, key=lambda one: one.at)[:MOST_FAILURES]),
    )


def _add(part: _Part, seen: TrafficWindow, pods: Known) -> None:
    part.until = seen.until
    part.sent += seen.sent
    for answer in seen.answers:
        part.took += [float(ms) for ms in answer["ms"]]
        part.by[pods.revision(str(answer["pod"]))] += len(answer["ms"])
    for one in seen.failures:
        failed = FailedRequest(
            at=float(one["at"]),
            kind=str(one["kind"]),
            ms=float(one["ms"]),
            status=int(one["status"]),
            pod=str(one["pod"]),
        )
        part.failures.append(failed)


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return the smallest of some values that so many percent of them do not exceed; None where there are none."""
    if not values:
        return None
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(rank, 1) - 1]
