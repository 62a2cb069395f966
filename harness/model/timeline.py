"""The timeline: what a drill recorded, as a header and ordered observations.

On disk it is JSON lines. Line 1 is the header (`{"type": "header", "format": "drill-timeline/1", …}`), every further line one
observation (`{"type": "object", "t": 1.234, …}`). `t` is in seconds since the header's `started_at`. Everything a verdict
needs is in the file, so the same file always gives the same report.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar

from harness.model.timeline_outside import (
    OUTSIDE,
    Call,
    GateChanged,
    Queries,
    QueriesCounted,
    StandIn,
)
from harness.model.timeline_traffic import TRAFFIC_TYPES, TrafficBegan, TrafficWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT: Final = "drill-timeline/1"
PRECISION: Final = 4
"""Decimals of the seconds in a line."""

_T = TypeVar("_T")

JSON = dict[str, Any]
"""A raw JSON object, as the API server served it (after redaction)."""


class TimelineError(ValueError):
    """A timeline file that cannot be read; the message names the line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class RolloutKind:
    """Which object carries the promotion, and how its status maps to the common vocabulary.

    `phases` maps a subject's own phase names to ours (Initialized, Progressing, Promoting, Succeeded, Failed, …);
    a phase that is missing there is taken as it is. Paths are dotted.
    """

    api_version: str = "flagger.app/v1beta1"
    kind: str = "Canary"
    plural: str = "canaries"
    phase_path: str = "status.phase"
    weight_path: str = "status.canaryWeight"
    iterations_path: str = "status.iterations"
    failed_checks_path: str = "status.failedChecks"
    target_path: str = "spec.targetRef.name"
    primary_suffix: str = "-primary"
    suspend_path: str = "spec.suspend"
    applied_path: str = "status.lastAppliedSpec"
    """Where the status says which revision was taken up last; the subject's own form."""
    promoted_path: str = "status.lastPromotedSpec"
    """Where it says which was promoted last."""
    fence_path: str = "status.lastTrackedRevision"
    """Where it says at which revision of the target that was, so that a form alone never counts as a change."""
    phases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubjectFacts:
    """The controller under test, as the report names it."""

    name: str
    """What the user asked for, e.g. `bundled`."""
    version: str
    capabilities: tuple[str, ...] = ()
    rollout: RolloutKind = field(default_factory=RolloutKind)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Where the drill ran, as the report names it."""

    kind: str
    """`embedded`, `kind`, `k3s` or `existing`."""
    name: str
    kubernetes: str
    """Version of the API server, e.g. `v1.35.4`."""
    nodes: tuple[str, ...]
    """Names of the schedulable nodes when the drill began."""
    simulated: str = ""
    """What simulates the nodes, e.g. `kwok v0.8.0`; empty for real ones."""
    seed: int | None = None
    """Seed of the simulated pods' delays."""
    exclusive: bool = False
    """Whether the cluster was made for this run alone."""
    capabilities: tuple[str, ...] = ()
    addons: tuple[str, ...] = ()
    """Types of other projects that it has, each with what is simulated of them, in words."""
    notes: tuple[str, ...] = ()
    """What a reader must know of this cluster, and of what the harness changed in the manifests for it: a sentence each."""


@dataclass(frozen=True, slots=True)
class Header:
    """Line 1 of a timeline."""

    TYPE: ClassVar[str] = "header"

    run_id: str
    drill_id: str
    namespace: str
    started_at: str
    """UTC, ISO 8601; time zero of every `t`."""
    harness: str
    """Version of rollout-drill."""
    scenario: JSON
    """The scenario as resolved for this variant (`harness.model.scenario.Resolved.to_json`)."""
    subject: SubjectFacts
    cluster: ClusterFacts
    reproduce: str
    """The command line that runs this drill again."""


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """A watch (or the list before it) delivered an object."""

    TYPE: ClassVar[str] = "object"

    t: float
    change: Literal["ADDED", "MODIFIED", "DELETED"]
    object: JSON
    """The redacted object, with apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class WatchState:
    """A watch became complete, or missed something.

    `synced`: the first list is in. `gap`: events between `since` and `t` may be missing (the server no longer had them, so the
    objects were listed again). A connection that broke and resumed where it was is no gap.
    """

    TYPE: ClassVar[str] = "watch"

    t: float
    kind: str
    state: Literal["synced", "gap"]
    since: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepState:
    """A step began, was done with its verb, or ended."""

    TYPE: ClassVar[str] = "step"

    t: float
    step: str
    state: Literal["started", "acted", "held", "timed-out", "failed"]
    """`acted`: its verb is done. `held`: its `until` holds (or it has none). The last two end the drill."""
    detail: str = ""
    """For `timed-out` what was seen last, for `failed` the error, for an upgrade that was `acted` from what to what."""


@dataclass(frozen=True, slots=True)
class SubjectState:
    """The subject's process was started, ended, was refused something by the API server, or evaluated a rollout.

    `started`: `detail` is name and version. `looked`: `detail` is the name of the rollout object and, behind a space, the row of
    the subject's decision table that applied, if it says so. Only event-driven subjects tell.
    """

    TYPE: ClassVar[str] = "subject"

    t: float
    state: Literal["started", "stopped", "killed", "exited", "forbidden", "looked"]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Requests:
    """How many requests the subject has made since it was last started, as the API server's audit log counts them."""

    TYPE: ClassVar[str] = "requests"

    t: float
    rollouts: Mapping[str, tuple[int, int]]
    """Name of a rollout object -> reads and writes that name it, its target or its primary; only those with any."""
    total: int
    """All requests of the subject, watches not among them."""
    watches: int
    """Watches that it opened."""
    source: str = "audit log"


@dataclass(frozen=True, slots=True)
class Precondition:
    """Something that must hold before the first step, e.g. the number of eligible nodes."""

    TYPE: ClassVar[str] = "precondition"

    t: float
    holds: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Features that the scenario requires and the subject or the cluster lacks."""

    TYPE: ClassVar[str] = "missing"

    t: float
    features: tuple[str, ...]
    lacking: str
    """`subject` or `cluster`, with its name."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal ended the drill early."""

    TYPE: ClassVar[str] = "interrupted"

    t: float
    signal: str


@dataclass(frozen=True, slots=True)
class HarnessError:
    """The harness or the cluster failed; the subject cannot be judged."""

    TYPE: ClassVar[str] = "error"

    t: float
    message: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The settle time after the last step began (`begin`) or was over (`end`)."""

    TYPE: ClassVar[str] = "settle"

    t: float
    state: Literal["begin", "end"]


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What the listing of every resource type found after teardown, while the cluster still ran."""

    TYPE: ClassVar[str] = "leftovers"

    t: float
    items: tuple[JSON, ...]
    """Each `{kind, namespace, name, finalizers, why}`."""
    kinds_listed: int
    removed: Mapping[str, int] = field(default_factory=dict)
    """How many objects of each kind teardown removed."""
    seconds: float = 0.0
    error: str = ""
    """Why the listing could not be made; then nothing is proven."""
    refused: tuple[str, ...] = ()
    """Resource types that may not be listed, so that nothing is claimed about them."""
    explained: tuple[str, ...] = ()
    """Why what is left did not go, a sentence each."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Nothing was removed, because the user asked for that."""

    TYPE: ClassVar[str] = "kept"

    t: float


Observation = (
    ObjectSeen
    | WatchState
    | StepState
    | SubjectState
    | Requests
    | Precondition
    | Missing
    | Interrupted
    | HarnessError
    | Settled
    | Leftovers
    | Kept
    | Call
    | GateChanged
    | StandIn
    | Queries
    | QueriesCounted
    | TrafficBegan
    | TrafficWindow
)

_TYPES: Final[dict[str, type[Observation]]] = {
    cls.TYPE: cls
    for cls in (
        ObjectSeen,
        WatchState,
        StepState,
        SubjectState,
        Requests,
        Precondition,
        Missing,
        Interrupted,
        HarnessError,
        Settled,
        Leftovers,
        Kept,
        *OUTSIDE,
        *TRAFFIC_TYPES,
    )
}


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole recording."""

    header: Header
    observations: tuple[Observation, ...]
    truncated: bool = False
    """True when the last line was cut off (a killed harness); everything before it counts."""

    def of(self, kind: type[_T]) -> list[_T]:
        """Return the observations of one type, in order."""
        return [o for o in self.observations if isinstance(o, kind)]


def dump_header(header: Header) -> str:
    """Return the header as its JSON line, without the line break."""
    row = dataclasses.asdict(header)
    # Most clusters have none, and recordings of earlier versions say nothing.
    for key in ("addons", "notes"):
        if not row["cluster"][key]:
            del row["cluster"][key]
    return json.dumps({"type": Header.TYPE, "format": FORMAT, **row})


def dump(observation: Observation) -> str:
    """Return an observation as its JSON line, without the line break."""
    # asdict() would copy the object deeply; a shallow dict is enough for dumping.
    body = {f.name: getattr(observation, f.name) for f in dataclasses.fields(observation)}
    body["t"] = round(observation.t, PRECISION)
    return json.dumps({"type": observation.TYPE, **body}, separators=(",", ":"))


def parse(lines: Iterable[str]) -> Timeline:
    """Read a timeline from its lines.

    Raises TimelineError for a missing or foreign header, a line that is no JSON object, or an unknown observation; only a last
    line that is cut off in the middle is tolerated (`truncated`).
    """
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        msg = "line 1: the file is empty, a timeline starts with its header"
        raise TimelineError(msg)
    header = _parse_header(rows[0][1])
    observations: list[Observation] = []
    truncated = False
    for number, line in rows[1:]:
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            if number == rows[-1][0]:
                truncated = True
                break
            msg = f"line {number}: not JSON ({error.msg}, column {error.colno})"
            raise TimelineError(msg) from error
        observations.append(_parse_row(number, row))
    return Timeline(header, tuple(observations), truncated)


def _parse_header(line: str) -> Header:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        msg = f"line 1: not JSON ({error.msg}, column {error.colno})"
        raise TimelineError(msg) from error
    if not isinstance(row, dict) or row.pop("format", None) != FORMAT:
        msg = f"line 1: not a timeline header of format {FORMAT}"
        raise TimelineError(msg)
    row.pop("type", None)
    try:
        subject = dict(row.pop("subject"))
        cluster = dict(row.pop("cluster"))
        subject["rollout"] = RolloutKind(**subject.get("rollout", {}))
        subject["capabilities"] = tuple(subject.get("capabilities", ()))
        for key in ("nodes", "capabilities", "addons", "notes"):
            cluster[key] = tuple(cluster.get(key, ()))
        return Header(subject=SubjectFacts(**subject), cluster=ClusterFacts(**cluster), **row)
    except (TypeError, KeyError) as error:
        msg = f"line 1: header does not fit format {FORMAT}: {error}"
        raise TimelineError(msg) from error


def _parse_row(number: int, row: object) -> Observation:
    if not isinstance(row, dict):
        msg = f"line {number}: not a JSON object"
        raise TimelineError(msg)
    name = row.pop("type", None)
    cls = _TYPES.get(name)
    if cls is None:
        msg = f"line {number}: unknown observation {name!r}; allowed: {', '.join(sorted(_TYPES))}"
        raise TimelineError(msg)
    for key in (
        "features",
        "items",
        "refused",
        "explained",
        "came",
        "statuses",
        "answers",
        "failures",
    ):
        if key in row:
            row[key] = tuple(row[key])
    try:
        if cls is Requests:
            row["rollouts"] = {name: _pair(pair) for name, pair in dict(row["rollouts"]).items()}
        return cls(**row)
    except (TypeError, ValueError, KeyError) as error:
        msg = f"line {number}: {name} does not fit format {FORMAT}: {error}"
        raise TimelineError(msg) from error


def _pair(value: Any) -> tuple[int, int]:
    reads, writes = value
    return int(reads), int(writes)
