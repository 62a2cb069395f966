"""Observations of traffic: what a probe in the cluster asked, and what became of it. Times are on the drill's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class TrafficBegan:
    """The first request was answered; what was asked before does not count."""

    TYPE: ClassVar[str] = "traffic-began"

    t: float
    url: str
    rate: float
    """Requests per second."""
    pod: str
    """The one that asks."""
    waited: float
    """Seconds from its first request to the first that was answered."""
    lines: int
    """By so many lines of its log its clock was set to the drill's: by the one that came soonest after it was written."""
    within: float
    """Seconds by which the soonest of them differ: times of requests are no better than that."""


@dataclass(frozen=True, slots=True)
class TrafficWindow:
    """Requests that began between two moments, when all of them were over."""

    TYPE: ClassVar[str] = "traffic"

    t: float
    """When the harness read of it."""
    since: float
    until: float
    sent: int
    answers: tuple[dict[str, Any], ...] = ()
    """Each `{pod, ms}`: who answered, empty where that was not told, and the milliseconds that each of its answers took."""
    failures: tuple[dict[str, Any], ...] = ()
    """Each `{at, kind, ms, status, pod}`: when the request began, how it failed (`harness.model.traffic.FAILURES`)."""


TrafficSeen = TrafficBegan | TrafficWindow
TRAFFIC_TYPES: tuple[type[TrafficSeen], ...] = (TrafficBegan, TrafficWindow)
