"""What a report says of traffic: rows for each phase, and failed requests one by one."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads annotations at run time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answered:
    """Who answered in a phase."""

    role: str
    """`primary`, `target`, `other`, or empty for a pod that nobody knows."""
    hash: str
    """Of its revision."""
    requests: int
    share: float
    """Percent of what was answered in this phase."""


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """The requests of one phase, by the moments in which they began."""

    phase: str
    """The rollout's; empty before it had one, and where there are several."""
    since: float
    until: float
    sent: int
    failed: int
    kinds: Mapping[str, int]
    """How requests failed -> how many."""
    first_failure: float | None
    last_failure: float | None
    answered: tuple[Answered, ...]
    median: float | None
    """Milliseconds that answers took; None where there were none."""
    p99: float | None


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """One request that failed."""

    at: float
    kind: str
    ms: float
    status: int
    """0 where there was no answer."""
    pod: str
    """Who answered with that status, if that was told."""


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """Everything about the traffic of a drill."""

    url: str
    """Empty where no request was ever answered."""
    rate: float
    sent: int
    failed: int
    waited: float
    """Seconds before the first answer, which do not count."""
    lines: int
    within: float
    """See `harness.model.timeline_traffic.TrafficBegan`."""
    rows: tuple[TrafficRow, ...] = ()
    failures: tuple[FailedRequest, ...] = ()
    """The first ones, 200 at most."""
