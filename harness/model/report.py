"""One drill's report, as data. Markdown, JSON, JUnit and the terminal's summary are all derived from it.

Times named `t`, `since` and `until` are seconds after the drill's time zero (`started_at`); those named `since_change` are
seconds after the change and None where there was none, or before it. Nothing in here is computed from a clock, so the same
timeline always gives the same report.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from harness.model.outcome import ExitCode, Outcome, combine
from harness.model.report_traffic import (
    TrafficReport,  # noqa: TC001 - pydantic reads annotations at run time
)

FORMAT: Final = "drill-report/1"
"""Format of one drill's report."""
RUN_FORMAT: Final = "drill-run/1"
"""Format of the report of several drills."""
SPARSE: Final = MappingProxyType({"sparse": True})
"""Marks a field that the JSON form leaves out where it has its default: most drills have nothing to say there."""


@dataclass(frozen=True, slots=True)
class Witness:
    """An object that alone makes a check fail, and when."""

    object: str
    """E.g. `pod web-primary-855f75bf5f-q8xkz`, or `primary.ready = 0` for a statement about single values."""
    state: str
    """What it was like, e.g. `Pending`."""
    since: float
    since_change: float | None
    until: float | None
    """None: still so when observation ended."""
    message: str = ""
    """What the scheduler or the workload's controller says about it."""
    text: str = ""
    """All of this in one clause."""


@dataclass(frozen=True, slots=True)
class Note:
    """A diagnosis that goes with a finding."""

    kind: Literal["DEADLOCK", "REFUSED", "WARN"]
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    id: str
    title: str
    outcome: Outcome
    evidence: str
    """One sentence: what was seen, when, or why nothing can be said."""
    builtin: bool
    """Whether every drill is checked for this, as opposed to a check of the scenario."""
    statement: str = ""
    """The statement that was checked, e.g. `never: pods.exists(p, p.gated)`; empty for built-in checks."""
    expected: Outcome = Outcome.PASS
    """What the variant says should become of it."""
    witnesses: tuple[Witness, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class PodPlace:
    """A pod in a row of the table."""

    name: str
    app: str
    """Name of the workload that owns it."""
    role: str
    hash: str
    node: str
    """Empty while it has none."""
    state: str
    """E.g. `ready`, `not ready`, `Pending: Unschedulable`, `ready, terminating`."""
    ready: bool = False
    terminating: bool = False

    @property
    def text(self) -> str:
        """The pod as a report shows it: `app hash@node (state)`."""
        return f"{self.app} {self.hash}@{self.node or 'no node'} ({self.state})"


@dataclass(frozen=True, slots=True)
class RevisionPlace:
    """A revision of a Knative Service in a row of the table."""

    name: str
    role: str
    """`primary`, `target`, or empty for one of before."""
    state: str
    """`ready`, `not ready` or `failed`, the latter two with the reason that Knative gives."""
    pods: int
    ready_pods: int
    nodes: tuple[str, ...]
    """Where its pods are."""
    asked: int
    served: int
    routed: int
    """Its share of the traffic, in percent: in the Service's spec, in its status, in the ingress."""

    @property
    def text(self) -> str:
        """The revision as a report shows it: `web-00002 (target): 20 %, ready, 1 pod on node-1`."""
        share = f"{self.asked} %"
        if not self.asked == self.served == self.routed:
            share = f"{self.asked} % asked, {self.served} % served, {self.routed} % routed"
        count = "1 pod" if self.pods == 1 else f"{self.pods or 'no'} pods"
        if self.ready_pods != self.pods:
            count = f"{self.ready_pods} of {count} ready"
        where = f" on {', '.join(self.nodes)}" if self.nodes else ""
        role = f" ({self.role})" if self.role else ""
        return f"{self.name}{role}: {share}, {self.state}, {count}{where}"


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """The state from one change of phase or placement to the next."""

    t: float
    since_change: float | None
    phase: str
    """Empty while there is no rollout object, `after` for the last row: the end of observation."""
    weight: int | None
    step: str
    pods: tuple[PodPlace, ...]
    revisions: tuple[RevisionPlace, ...] = field(default=(), metadata=SPARSE)
    """Those of a Knative Service that serve, are about to, or have pods; the oldest first."""
    route: str = field(default="", metadata=SPARSE)
    """How the route's spec splits the traffic, e.g. `primary 90, canary 10`, and that of requests that match its first rule; empty where there is no route."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Where a workload was, as its own controller says, whatever the subject makes of it: the witness of "unchanged"."""

    hash: str
    """Hash of its current ReplicaSet; empty if it was not known."""
    number: str
    """Number of its revision; empty if it has none."""

    @property
    def text(self) -> str:
        """Both, e.g. `6d4f9b7c58/1`."""
        return f"{self.hash}/{self.number}" if self.number else self.hash


@dataclass(frozen=True, slots=True)
class Counted:
    """What happened to a rollout within a part of a drill."""

    starts: int
    """Analyses that began, or started over."""
    target_rolls: int
    primary_rolls: int
    """How often target and primary got another current ReplicaSet."""
    tracking_writes: int
    """How often the status' record of the revision changed."""


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """One of several rollouts. Counts begin with the upgrade, or, where there is none, when the subject was last started."""

    name: str
    group: str
    """Its label `drill/cell`; may be empty."""
    phases: tuple[tuple[float, str], ...]
    """Every phase with the time at which it was seen first."""
    before: Counted
    """From the upgrade to the change, or to the end of observation where no change came later."""
    after: Counted | None
    """From the change on; None where no change came after the upgrade."""
    expected: int | None
    """Analyses that should have begun before the change, from the scenario's value `starts`; None: it does not say."""
    looks: int
    """How often the subject provably looked at it, up to the change."""
    target_before: Revision
    """When the subject that was replaced had ended."""
    target_after: Revision
    """At the change, or when observation ended."""
    queued: tuple[tuple[float, float | None], ...] = field(default=(), metadata=SPARSE)
    """From when to when it waited for its turn; None: it still did when observation ended."""

    @property
    def final(self) -> str:
        """The phase in which it was last."""
        return self.phases[-1][1] if self.phases else ""

    @property
    def target_unchanged(self) -> bool:
        """Whether the target is provably at the same revision as before."""
        return bool(self.target_before.hash) and self.target_before == self.target_after


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate of the drill's receiver, or one receiver of alerts, and who called it."""

    name: str
    sort: str
    """`gate`, `alert`, or `other`: calls that went to neither."""
    answers: tuple[str, ...]
    """What it was told to answer, at first and by each step that changed it."""
    calls: int
    answered: Mapping[str, int]
    """Status (or `given up`: the caller did not wait) -> how often."""
    phases: tuple[str, ...]
    """What the callers said the phase was, each once."""
    first: float | None
    last: float | None
    """When it was called; None: never."""


@dataclass(frozen=True, slots=True)
class QueriesRow:
    """What the drill's metrics server was asked."""

    total: int
    """Queries that came in."""
    answered: Mapping[str, int]
    """Status (or `given up`: the caller did not wait) -> how often."""
    peak: int
    """The most that came in within one second."""
    peak_at: float | None
    """The end of that second; None: there were none."""
    counted: int | None
    """How many the server itself says that it answered; None where it does not say."""
    counted_peak: float
    """The most per second by that count, which was looked at about once a second."""
    counted_peak_at: float | None


@dataclass(frozen=True, slots=True)
class StandInRow:
    """Something that stood for a part of the world that no cluster has."""

    part: str
    by: str
    exact: bool
    """Whether it is the very program that people run, or answers every question as that would."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A value that was read for the report, or why it could not be."""

    at: str
    """Name of the step after which it was read, or `end`."""
    t: float | None
    object: str
    """Kind and name of the object that it was read from; empty if there was none."""
    found: bool
    value: Any = None
    reason: str = ""
    """Why it was not found."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A part of an object at one or more moments."""

    title: str
    object: str
    path: str
    readings: tuple[Reading, ...]
    change: Literal["unchanged", "changed", "single", "missing"]
    """Between the first and the last reading; `single`: only one was asked for."""
    summary: str
    """A sentence: what it was read from, and whether it changed."""
    diff: str = ""
    """Unified diff of first and last reading, as JSON."""


@dataclass(frozen=True, slots=True)
class DoneItem:
    """One line of the list that says when the question is answered."""

    text: str
    by: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    """Which check stands in the way, if any."""


@dataclass(frozen=True, slots=True)
class Left:
    """What the drill left behind."""

    state: Literal["pending", "listed", "unlisted", "nothing-made", "kept"]
    """`pending`: teardown is not over. `unlisted`: the listing failed. `nothing-made`: the drill never began. `kept`: everything,
    as the user asked."""
    items: tuple[Mapping[str, Any], ...] = ()
    """Each `{kind, namespace, name, finalizers, why}`."""
    kinds_listed: int = 0
    removed: Mapping[str, int] = field(default_factory=dict)
    """Number of removed objects by kind."""
    seconds: float = 0.0
    error: str = ""
    refused: tuple[str, ...] = ()
    """Resource types that may not be listed, so that nothing is claimed about them."""
    explained: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Why what is left did not go, a sentence each: which finalizer and whose, which node, what the namespace says itself."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the drill."""

    outcome: Outcome
    """The worst over all findings, except that what was left behind is judged by the exit code alone."""
    as_expected: bool
    """Whether exactly the checks failed that the variant says should, and everything else passed."""
    control: bool
    """Whether the variant expects a check to fail."""
    sentence: str
    exit_code: ExitCode
    final_phase: str
    """Phase when observation ended; empty if no rollout object was seen."""
    took: float | None
    """Seconds from the change to the final phase."""


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """The scenario, as the report names it."""

    id: str
    name: str
    variant: str
    question: str
    setup: str
    description: str
    digest: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EnvironmentFacts:
    """Where the drill ran and what it tested."""

    harness: str
    subject: str
    subject_version: str
    rollout_kind: str
    cluster_kind: str
    cluster_name: str
    kubernetes: str
    nodes: tuple[str, ...]
    simulated: str
    """What simulates the nodes; empty for real ones."""
    seed: int | None
    exclusive: bool
    subjects: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Names of all subjects in their order, where one took over from another."""
    control_planes: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Versions of Kubernetes in their order, where one took over from another."""
    addons: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Types of other projects that the cluster has, each with what is simulated of them."""
    notes: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """What a reader must know of the cluster, and of what the harness changed in the manifests for it: a sentence each."""

    @property
    def subject_text(self) -> str:
        """The subject with its version, or all of them: `flagger@1.37.0 → flagger@1.38.0`."""
        return " → ".join(self.subjects) or f"{self.subject} {self.subject_version}"

    @property
    def kubernetes_text(self) -> str:
        """The version of Kubernetes, or all of them."""
        return " → ".join(self.control_planes) or self.kubernetes


@dataclass(frozen=True, slots=True)
class DrillReport:
    """Everything that is said about one drill."""

    run_id: str
    drill_id: str
    namespace: str
    started_at: str
    """UTC, ISO 8601; time zero."""
    ended_at: str
    """UTC, ISO 8601: the last observation, teardown included."""
    seconds: float
    """Length of the recording."""
    observed_until: float
    """When the drill's own observation ended and teardown began."""
    change_at: float | None
    change_step: str
    scenario: ScenarioFacts
    environment: EnvironmentFacts
    reproduce: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    rows: tuple[PhaseRow, ...]
    recorded: tuple[Recorded, ...]
    done: tuple[DoneItem, ...]
    left: Left
    observations: int
    gaps: tuple[str, ...] = ()
    """Watches that missed something, one clause each."""
    truncated: bool = False
    """Whether the recording breaks off (the harness was killed)."""
    format: str = FORMAT
    rollouts: tuple[RolloutRow, ...] = field(default=(), metadata=SPARSE)
    """Where there is more than one rollout: a row for each, instead of `rows`."""
    upgrade_at: float | None = field(default=None, metadata=SPARSE)
    """When the last upgrade began."""
    calls: tuple[GateRow, ...] = field(default=(), metadata=SPARSE)
    """Where the scenario has a receiver: a row for each of its gates."""
    queries: QueriesRow | None = field(default=None, metadata=SPARSE)
    """Where the scenario has metrics: what the metrics server was asked."""
    traffic: TrafficReport | None = field(default=None, metadata=SPARSE)
    """Where the scenario has traffic: what became of every request."""
    flags: tuple[str, ...] = field(default=(), metadata=SPARSE)
    """Flags that the bundled controller was started with for this scenario, each with its value."""
    stand_ins: tuple[StandInRow, ...] = field(default=(), metadata=SPARSE)
    """What stood in for what."""
    by_node: bool = field(default=False, metadata=SPARSE)
    """Whether the workload under promotion has a pod for each node (a DaemonSet): then places are told by node."""

    def finding(self, check: str) -> Finding | None:
        """Return the finding of a check by its id."""
        return next((finding for finding in self.findings if finding.id == check), None)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON types (schema: `harness/report/report-v1.json`)."""
        return _plain_dict(self)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The reports of the drills of one run."""

    run_id: str
    drills: tuple[DrillReport, ...]
    format: str = RUN_FORMAT

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run; without any drill, nothing was selected."""
        return combine(drill.verdict.exit_code for drill in self.drills)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON types (schema: `harness/report/report-v1.json`)."""
        return {**_plain_dict(self), "exit_code": int(self.exit_code)}


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain_dict(value)
    if isinstance(value, Outcome | ExitCode):
        return value.value
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _plain_dict(value: Any) -> dict[str, Any]:
    return {
        item.name: _plain(given)
        for item in dataclasses.fields(value)
        if (given := getattr(value, item.name)) != item.default or not item.metadata.get("sparse")
    }
