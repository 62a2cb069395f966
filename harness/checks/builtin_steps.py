"""Built-in checks of how the drill itself went: preconditions, features, steps, the final phase, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.checks import rollout
from harness.model.clock import moment, moment_of, span
from harness.model.outcome import Outcome
from harness.model.report import Finding
from harness.model.resolved import ANY_PHASE
from harness.model.timeline import (
    HarnessError,
    Interrupted,
    Missing,
    Precondition,
    StepState,
    SubjectState,
)

if TYPE_CHECKING:
    from harness.checks.phases import PhaseLog
    from harness.checks.rollout_log import RolloutLog
    from harness.checks.windows import Schedule
    from harness.model.resolved import Resolved
    from harness.model.timeline import Timeline

STEPS_COMPLETED: Final = "steps-completed"
ENDS_IN: Final = "ends-in"
PRECONDITION: Final = "precondition"
REQUIRES: Final = "requires"
HARNESS: Final = "harness"
INTERRUPTED: Final = "interrupted"
_SHOWN: Final = 3
"""So many rollouts are named."""
_QUIET: Final = frozenset({"forbidden", "looked"})
"""What a subject's process is seen to do without beginning or ending."""
_GONE: Final = {"stopped": "been stopped", "killed": "been killed"}


def _finding(check: str, title: str, outcome: Outcome, evidence: str) -> Finding:
    return Finding(check, title, outcome, evidence, builtin=True)


def requires(timeline: Timeline) -> Finding | None:
    """`unsupported` if subject or cluster lacks a feature; None if none is missing."""
    missing = timeline.of(Missing)
    if not missing:
        return None
    evidence = "; ".join(f"{m.lacking} lacks {', '.join(m.features)}" for m in missing)
    title = "Subject and cluster have what the scenario needs"
    return _finding(REQUIRES, title, Outcome.UNSUPPORTED, evidence)


def precondition(timeline: Timeline) -> Finding | None:
    """`unknown` if a precondition did not hold: then the drill would not have shown anything. None if there was none."""
    all_of_them = timeline.of(Precondition)
    if not all_of_them:
        return None
    broken = [p.reason for p in all_of_them if not p.holds]
    evidence = "; ".join(broken or [p.reason for p in all_of_them])
    outcome = Outcome.UNKNOWN if broken else Outcome.PASS
    return _finding(PRECONDITION, "The preconditions hold", outcome, evidence)


def harness(timeline: Timeline) -> Finding | None:
    """`error` if the harness or the cluster failed; None if they did not."""
    errors = timeline.of(HarnessError)
    if not errors:
        return None
    evidence = "; ".join(f"{e.message} (at {moment(e.t)})" for e in errors)
    return _finding(HARNESS, "Harness and cluster worked", Outcome.ERROR, evidence)


def interrupted(timeline: Timeline, phases: PhaseLog) -> Finding | None:
    """`unknown` if a signal ended the drill; None if not."""
    signals = timeline.of(Interrupted)
    if not signals:
        return None
    first = signals[0]
    phase = phases.phase_at(first.t)
    where = f" in phase {phase}" if phase else ""
    evidence = f"interrupted by {first.signal} at {moment(first.t)}{where}"
    return _finding(INTERRUPTED, "The drill ran to its end", Outcome.UNKNOWN, evidence)


def steps_completed(timeline: Timeline, scenario: Resolved, schedule: Schedule) -> Finding:
    """Whether the `until` of every step held in time.

    A step that timed out is the subject's failure. One that failed (its verb was refused) is not: `error`.
    """
    title = "Every step was completed in time"
    states = timeline.of(StepState)
    for state in states:
        if state.state == "failed":
            evidence = f"step {state.step} failed at {moment(state.t)}: {state.detail}"
            return _finding(STEPS_COMPLETED, title, Outcome.ERROR, evidence)
        if state.state == "timed-out":
            return _finding(
                STEPS_COMPLETED,
                title,
                Outcome.FAIL,
                _timed_out(state, states, scenario) + _no_subject(timeline, state.t),
            )
    left = [step.name for step in scenario.steps if step.name not in schedule.held]
    if left:
        why = f" ({schedule.cut})" if schedule.cut else ""
        evidence = f"not reached: {', '.join(left)}{why}"
        return _finding(STEPS_COMPLETED, title, Outcome.UNKNOWN, evidence)
    if not scenario.steps:
        return _finding(STEPS_COMPLETED, title, Outcome.UNKNOWN, "the scenario has no steps")
    times = [
        f"{step.name} {moment(timeline.observations[schedule.held[step.name]].t)}"
        for step in scenario.steps
    ]
    return _finding(STEPS_COMPLETED, title, Outcome.PASS, ", ".join(times))


def _timed_out(state: StepState, states: list[StepState], scenario: Resolved) -> str:
    step = next((s for s in scenario.steps if s.name == state.step), None)
    waited = f" for {step.until}" if step is not None and step.until else ""
    begun = [s.t for s in states if s.step == state.step and s.state in {"started", "acted"}]
    how_long = f" {span(state.t - begun[-1])}" if begun else ""
    text = f"step {state.step} timed out at {moment(state.t)}: waited{how_long}{waited}"
    return f"{text}; seen last: {state.detail}" if state.detail else text


def _no_subject(timeline: Timeline, t: float) -> str:
    """Return a clause if no subject was running at a moment, which explains why nothing happened."""
    states = [s for s in timeline.of(SubjectState) if s.t <= t and s.state not in _QUIET]
    if not states or states[-1].state == "started":
        return ""
    last = states[-1]
    why = f" ({last.detail})" if last.detail else ""
    return f"; the subject had {_GONE.get(last.state, last.state)} at {moment(last.t)}{why}"


def ends_in(scenario: Resolved, schedule: Schedule, phases: PhaseLog) -> Finding:
    """Whether the rollout ended in the phase that the variant expects."""
    expected = scenario.expect.phase
    title = f"The rollout ends in {expected}"
    if expected == ANY_PHASE:
        title = "The rollout ends in some phase"
    if not phases.seen:
        evidence = "no rollout object was ever observed"
        return _finding(ENDS_IN, title, Outcome.UNKNOWN, evidence)
    phase, since = phases.final
    reached = f"{phase or 'no phase'} since {moment_of(since, phases.change_at)}"
    if phases.gone_at is not None:
        reached = f"no phase: it is gone since {moment_of(phases.gone_at, phases.change_at)}"
    if schedule.cut:
        return _finding(ENDS_IN, title, Outcome.UNKNOWN, f"{schedule.cut}; it was in {reached}")
    if expected in {phase, ANY_PHASE}:
        return _finding(ENDS_IN, title, Outcome.PASS, reached)
    evidence = f"ended in {reached}"
    if phase in rollout.ENDED and phases.message:
        evidence += f": {phases.message}"
    elif phase not in rollout.ENDED and phases.gone_at is None:
        evidence += f", for {span(phases.over - since)} when observation ended"
    return _finding(ENDS_IN, title, Outcome.FAIL, evidence)


def all_end_in(scenario: Resolved, schedule: Schedule, log: RolloutLog) -> Finding:
    """Whether every one of several rollouts ended in the phase that the variant expects."""
    expected = scenario.expect.phase
    title = f"All {len(log.names)} rollouts end in {expected}"
    if expected == ANY_PHASE:
        title = f"All {len(log.names)} rollouts end in some phase"
    reached = ", ".join(f"{count} in {phase}" for phase, count in log.finals().items())
    if schedule.cut:
        return _finding(ENDS_IN, title, Outcome.UNKNOWN, f"{schedule.cut}; seen last: {reached}")
    others = [name for name in log.names if log.final(name)[1] != expected]
    if expected == ANY_PHASE or not others:
        return _finding(ENDS_IN, title, Outcome.PASS, reached)
    shown = [_ended(name, log) for name in others[:_SHOWN]]
    shown += [f"{len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
    evidence = f"not so for {len(others)} of {len(log.names)} ({reached}): {'; '.join(shown)}"
    return _finding(ENDS_IN, title, Outcome.FAIL, evidence)


def _ended(name: str, log: RolloutLog) -> str:
    since, phase = log.final(name)
    text = f"{name} ended in {phase or 'no phase'} since {moment_of(since, log.change_at)}"
    message = log.message(name)
    return f"{text}, {message}" if message else text
