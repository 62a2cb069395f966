"""Observations of what stands outside the cluster: calls that came in, answers that were changed, and what stood in for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Call:
    """A webhook or an alert that arrived at the drill's receiver, when it was answered or given up.

    Of its body only the fields below are kept, and of its path only the name of a gate that the scenario declares: whatever else
    stands in an address may be a token.
    """

    TYPE: ClassVar[str] = "call"

    t: float
    sort: Literal["gate", "alert", "other"]
    """`other`: it went to no gate of the scenario, and got 404."""
    gate: str
    """Name of the gate or of the receiver of alerts; empty for `other`."""
    status: int
    """What was answered; 0 when the caller gave up before."""
    seconds: float
    """How long the call was held."""
    rollout: str = ""
    """`name` of the body: the rollout object that it is about."""
    phase: str = ""
    event_type: str = ""
    """`eventType` of the body or of its metadata: Normal or Warning."""
    kind: str = ""
    """`type` of the body or of its metadata."""
    message: str = ""
    """Text of an alert or of an event; empty for other webhooks."""


@dataclass(frozen=True, slots=True)
class GateChanged:
    """A step changed what a gate, or a receiver of alerts, answers."""

    TYPE: ClassVar[str] = "gate"

    t: float
    gate: str
    answer: str
    """`open`, `closed`, `hang` or a status, as after its `first` ones."""
    detail: str
    """The whole answer in words, e.g. `503, then open after 2 s`."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """Something of ours, or somebody else's program that we started, stood for a part of the world that no cluster has."""

    TYPE: ClassVar[str] = "stand-in"

    t: float
    part: str
    """What it stood for, e.g. `metrics`."""
    by: str
    """Who did, with version, e.g. `Prometheus 2.42.0`."""
    exact: bool = True
    """Whether it is the very program that people run, or answers every question as that would."""


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries that the drill's metrics server got since the last such observation, in the order in which they came in."""

    TYPE: ClassVar[str] = "queries"

    t: float
    came: tuple[float, ...]
    """When each came in, as `t`."""
    statuses: tuple[int, ...]
    """What each got, in the same order: 429 when it was refused at the door, 0 when the caller gave up before."""
    passed: int
    """How many of them were passed on to the server itself."""


@dataclass(frozen=True, slots=True)
class QueriesCounted:
    """How many queries the metrics server itself says that it has answered; told when that has changed."""

    TYPE: ClassVar[str] = "queries-counted"

    t: float
    total: int
    """Since it was started; those with which the harness looks whether a value is told are not among them."""
    seconds: float
    """Since it was looked at before, when it was not this many yet; 0 for the first look."""


Outside = Call | GateChanged | StandIn | Queries | QueriesCounted
OUTSIDE: tuple[type[Outside], ...] = (Call, GateChanged, StandIn, Queries, QueriesCounted)
