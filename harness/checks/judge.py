"""From a recording to a report. Pure: the same timeline always gives the same report, and no cluster is asked anything."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Final, Protocol

from harness.checks import builtin_alone, builtin_steps, builtin_trace
from harness.checks.builtin_settled import SettleWatch
from harness.checks.call_log import gate_rows, stand_in_rows
from harness.checks.deadlock import DeadlockWatch
from harness.checks.paths import name_of
from harness.checks.phases import PhaseLog
from harness.checks.queries import queries_row
from harness.checks.recorded import RecordReader
from harness.checks.refusals import refused
from harness.checks.rollout_log import RolloutLog
from harness.checks.state import State
from harness.checks.statement import Statement
from harness.checks.temporal import Evaluation
from harness.checks.traffic_log import traffic_report
from harness.checks.verdict import Case, verdict
from harness.checks.windows import schedule
from harness.model.names import is_bundled
from harness.model.outcome import Outcome, worst
from harness.model.report import (
    DoneItem,
    DrillReport,
    EnvironmentFacts,
    ScenarioFacts,
)
from harness.model.resolved import Resolved, UpgradeStep
from harness.model.timeline import Missing, ObjectSeen, Precondition, StepState

if TYPE_CHECKING:
    from harness.checks.windows import Schedule
    from harness.model.report import Finding, Verdict
    from harness.model.timeline import Header, Observation, Timeline

VERDICT: Final = "verdict"
"""What a done-when line names to ask for a result, whatever it is."""


class _Observer(Protocol):
    """Whoever watches a recording being replayed."""

    def observe(self, index: int, observation: Observation, state: State, /) -> None:
        """Look at the state right after an observation."""


class _Replay:
    """A recording, gone through once, with everything that watches on the way."""

    def __init__(self, timeline: Timeline, scenario: Resolved) -> None:
        kind = timeline.header.subject.rollout.kind
        several = _several(timeline, kind)
        self.plan: Schedule = schedule(timeline, scenario)
        self.state = State(timeline.header)
        self.phases = PhaseLog(several=several)
        self.log = RolloutLog(scenario, kind) if several else None
        self.records = RecordReader(scenario.record, self.plan)
        self.settled = SettleWatch(self.plan, kind)
        self.deadlocks = DeadlockWatch()
        self.checks = [Evaluation(Statement.of(c, kind), self.plan) for c in scenario.checks]
        observers: list[_Observer] = [
            self.phases,
            self.records,
            self.settled,
            self.deadlocks,
            *([self.log] if self.log is not None else []),
            *self.checks,
        ]
        for index, observation in enumerate(timeline.observations[: self.plan.over + 1]):
            self.state.apply(observation)
            for observer in observers:
                observer.observe(index, observation, self.state)
        self.phases.finish(self.state)
        if self.log is not None:
            self.log.finish(self.state)
        self.deadlocks.finish(self.state)
        for check in self.checks:
            check.finish(self.state)


def _several(timeline: Timeline, kind: str) -> bool:
    """Return whether there is more than one rollout object in a recording."""
    names = {
        name_of(seen.object) for seen in timeline.of(ObjectSeen) if seen.object.get("kind") == kind
    }
    return len(names) > 1


def judge(timeline: Timeline) -> DrillReport:
    """Return the report of a recording."""
    header = timeline.header
    scenario = Resolved.from_json(header.scenario)
    replay = _Replay(timeline, scenario)
    recorded = replay.records.entries()
    began = bool(timeline.of(StepState))
    left = builtin_trace.left(timeline, began=began, lost=replay.plan.lost)
    findings = _expected(_findings(timeline, scenario, replay, began=began), scenario)
    nothing_left = builtin_trace.nothing_left(left)
    if nothing_left is not None:
        findings = (*findings, nothing_left)
    result = verdict(
        Case(
            findings,
            frozenset(scenario.expect.fail),
            left,
            replay.phases,
            recorded,
            replay.log,
        )
    )
    last = timeline.observations[-1].t if timeline.observations else 0.0
    judged = timeline.observations[: replay.plan.over + 1]
    return DrillReport(
        run_id=header.run_id,
        drill_id=header.drill_id,
        namespace=header.namespace,
        started_at=header.started_at,
        ended_at=_later(header.started_at, last),
        seconds=last,
        observed_until=replay.phases.over,
        change_at=replay.state.change_at,
        change_step=scenario.change_step or "",
        scenario=_scenario(scenario),
        environment=_environment(header, scenario),
        reproduce=header.reproduce,
        verdict=result,
        findings=findings,
        rows=tuple(replay.phases.rows),
        recorded=recorded if began else (),
        done=tuple(_done(scenario, findings, result)),
        left=left,
        observations=len(timeline.observations),
        gaps=tuple(gap.text for gap in replay.plan.gaps),
        truncated=timeline.truncated,
        rollouts=() if replay.log is None else replay.log.rows(),
        upgrade_at=None if replay.log is None else replay.log.upgrade_at,
        calls=gate_rows(judged, scenario),
        queries=queries_row(judged, scenario),
        traffic=traffic_report(judged, scenario, replay.phases.changes, replay.state.known_pods),
        flags=_flags(scenario, header.subject.name),
        stand_ins=stand_in_rows(timeline.observations),
        by_node=replay.phases.by_node,
    )


def _findings(
    timeline: Timeline, scenario: Resolved, replay: _Replay, *, began: bool
) -> tuple[Finding, ...]:
    """Return the findings in the order of the report, all but the one about what is left."""
    before = [
        builtin_steps.requires(timeline),
        builtin_steps.precondition(timeline),
        builtin_steps.harness(timeline),
        builtin_steps.interrupted(timeline, replay.phases),
    ]
    refused = bool(timeline.of(Missing)) or not all(p.holds for p in timeline.of(Precondition))
    if refused and not began:
        # Nothing was drilled, so there is nothing to say about any check.
        return tuple(finding for finding in before if finding is not None)
    found = [
        *before,
        builtin_steps.steps_completed(timeline, scenario, replay.plan),
        builtin_steps.ends_in(scenario, replay.plan, replay.phases)
        if replay.log is None
        else builtin_steps.all_end_in(scenario, replay.plan, replay.log),
        *(check.finding() for check in replay.checks),
        replay.settled.finding() if scenario.settle else None,
        replay.records.finding(),
        builtin_trace.nothing_forbidden(timeline, replay.plan),
        builtin_alone.one_controller(timeline, scenario, replay.plan),
    ]
    told = _noted([finding for finding in found if finding is not None], replay.deadlocks)
    return _refused(told, timeline)


def _refused(findings: tuple[Finding, ...], timeline: Timeline) -> tuple[Finding, ...]:
    """Say who refused objects, at the first finding that did not pass because of it; where all passed, nobody was in the way."""
    rows = list(findings)
    for one in refused(timeline):
        bad = [row for row in rows if row.outcome is not Outcome.PASS]
        seen = (f for f in bad if any(w.message and w.message in one.message for w in f.witnesses))
        ends = (f for f in bad if f.id in {builtin_steps.STEPS_COMPLETED, builtin_steps.ENDS_IN})
        place = next(seen, next(ends, None))
        if place is not None:
            noted = dataclasses.replace(place, notes=(*place.notes, one.note))
            rows = [noted if row is place else row for row in rows]
    return tuple(rows)


def _noted(findings: list[Finding], deadlocks: DeadlockWatch) -> tuple[Finding, ...]:
    """Attach each diagnosis to the finding that saw its pod, or else to the one about the final phase."""
    for found in deadlocks.found:
        place = next(
            (f for f in findings if any(found.pod in w.object for w in f.witnesses)),
            next((f for f in findings if f.id == builtin_steps.ENDS_IN), None),
        )
        if place is not None:
            noted = dataclasses.replace(place, notes=(*place.notes, found.note()))
            findings = [noted if f is place else f for f in findings]
    return tuple(findings)


def _expected(findings: tuple[Finding, ...], scenario: Resolved) -> tuple[Finding, ...]:
    return tuple(
        dataclasses.replace(f, expected=Outcome.FAIL) if f.id in scenario.expect.fail else f
        for f in findings
    )


def _done(scenario: Resolved, findings: tuple[Finding, ...], result: Verdict) -> list[DoneItem]:
    outcomes = {finding.id: finding.outcome for finding in findings}
    # A result can be posted once it says something, be it good or bad.
    told = result.outcome in {Outcome.PASS, Outcome.FAIL}
    outcomes[VERDICT] = Outcome.PASS if told else result.outcome
    items = []
    for line in scenario.done_when:
        by = {check: outcomes.get(check, Outcome.UNKNOWN) for check in line.by}
        open_ = [f"{check} is {outcome}" for check, outcome in by.items() if outcome != "pass"]
        items.append(DoneItem(line.text, line.by, worst(by.values()), ", ".join(open_)))
    return items


def _scenario(scenario: Resolved) -> ScenarioFacts:
    return ScenarioFacts(
        id=scenario.id,
        name=scenario.name,
        variant=scenario.variant,
        question=scenario.question,
        setup=scenario.setup,
        description=scenario.description,
        digest=scenario.digest,
        values=scenario.values,
    )


def _environment(header: Header, scenario: Resolved) -> EnvironmentFacts:
    cluster, subject = header.cluster, header.subject
    subjects = tuple(name or subject.name for name in scenario.subjects)
    planes = tuple(
        step.action.kubernetes
        for step in scenario.steps
        if isinstance(step.action, UpgradeStep) and step.action.kubernetes is not None
    )
    return EnvironmentFacts(
        harness=header.harness,
        subject=subject.name,
        subject_version=subject.version,
        rollout_kind=f"{subject.rollout.kind} ({subject.rollout.api_version})",
        cluster_kind=cluster.kind,
        cluster_name=cluster.name,
        kubernetes=cluster.kubernetes,
        nodes=cluster.nodes,
        simulated=cluster.simulated,
        seed=cluster.seed,
        exclusive=cluster.exclusive,
        subjects=subjects if len(subjects) > 1 else (),
        control_planes=(cluster.kubernetes, *planes) if planes else (),
        addons=cluster.addons,
        notes=cluster.notes,
    )


def _flags(scenario: Resolved, subject: str) -> tuple[str, ...]:
    """Return the flags that the bundled controller was started with; every other subject is started as it always is."""
    given = (scenario.controller or {}).items() if is_bundled(subject) else ()
    return tuple(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in given
    )


def _later(started_at: str, seconds: float) -> str:
    """Return a time of day some seconds after another, in UTC, or an empty text if the first is unreadable."""
    try:
        start = dt.datetime.fromisoformat(started_at)
    except ValueError:
        return ""
    if start.tzinfo is None:
        start = start.replace(tzinfo=dt.UTC)
    end = start + dt.timedelta(seconds=int(seconds))
    return end.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
