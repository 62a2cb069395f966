"""Statements over time: `eventually`, `always`, `never`, each over a window and optionally with a time that it must hold.

Every observation in the window is looked at. Between two observations the state is constant, so a run lasts until the next
observation or the window's end. A violation that was seen is a fail, whatever else was missed; without one, anything that was
missed (a gap in a watch, a field that was not known) makes it unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.checks.expression import Unknown
from harness.checks.witness import ROLLOUT, Follower, alone, few
from harness.model.clock import moment, moment_of, span
from harness.model.outcome import Outcome
from harness.model.report import Finding, Witness
from harness.model.timeline_traffic import TrafficWindow

if TYPE_CHECKING:
    from harness.checks.state import State, World
    from harness.checks.statement import Statement
    from harness.checks.windows import Schedule, Window
    from harness.checks.witness import Key
    from harness.model.timeline import Observation

_SHOWN = 3
"""So many witnesses are named in the evidence; all of them are in the finding."""


@dataclass(slots=True)
class Evaluation:
    """One check of a scenario while a recording is replayed."""

    statement: Statement
    schedule: Schedule
    window: Window | str = field(init=False)
    count: int = 0
    start: float = 0.0
    end: float = 0.0
    longest: float = 0.0
    unknown: str = ""
    true_at: float | None = None
    witnesses: list[Witness] = field(default_factory=list)
    runs: int = 0
    """Violations seen."""
    extra: set[Key] = field(default_factory=set)
    """Witnesses beyond those that were followed."""
    total: int = 0
    """Rollouts that there were."""
    pods_seen: bool = False
    requests: int = 0
    """Requests of the probe that were told within the window."""
    _value: bool | Unknown | None = None
    _stamp: int = -1
    _seen_by: int = -1
    """The stamp of what its witnesses are described by."""
    _run: float | None = None
    _follower: Follower | None = None
    _change_at: float | None = None
    _last: World = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.window = self.schedule.window(self.statement.check)

    def observe(self, index: int, observation: Observation, state: State) -> None:
        """Look at the state after an observation. Called for all of them, in order."""
        window = self.window
        if isinstance(window, str) or not window.first <= index <= window.last:
            return
        t = observation.t
        if not self.count:
            self.start = t
        self.count += 1
        self.end = t
        if isinstance(observation, TrafficWindow):
            self.requests += observation.sent
        self._change_at = state.change_at
        if self.statement.check.hold_for and self._breaks_off(observation):
            # What was so before and after a gap need not have been so in between.
            self._stop(t, ended=t)
        world = self._look(t, state)
        self._advance(t, world)
        if index == window.last:
            self._close(t)

    def finish(self, state: State) -> None:
        """Take note of what only the whole recording shows."""
        self.pods_seen = state.pods_seen

    def _breaks_off(self, observation: Observation) -> bool:
        return any(
            gap.until == observation.t and gap.kind in self.statement.kinds
            for gap in self.schedule.gaps
        )

    def _look(self, t: float, state: State) -> World | None:
        """Evaluate, unless nothing that matters has changed; return the world if its witnesses may look different in it."""
        statement = self.statement
        if self.true_at is not None:
            return None  # it was true once, which is all that `eventually` asks for
        stamp = state.stamp(statement.uses)
        if self._value is None or stamp != self._stamp or statement.clocked:
            self._stamp = stamp
            self._evaluate(t, state.world(t, statement.uses))
        if self._value is not True or statement.check.kind == "eventually":
            return None
        seen_by = state.stamp(statement.described)
        if self._run is not None and seen_by == self._seen_by and not statement.clocked:
            return None
        self._seen_by = seen_by
        return state.world(t, statement.described)

    def _evaluate(self, t: float, world: World) -> None:
        self._last = world
        eventually = self.statement.check.kind == "eventually"
        value = self.statement.evaluate(world) if eventually else self.statement.bad(world)
        self._value = value
        if isinstance(value, Unknown) and not self.unknown:
            self.unknown = f"{value.reason} at {moment(t)}"

    def _advance(self, t: float, world: World | None) -> None:
        """Go on with the run of moments in which the value is true, begin one, or end it.

        For `eventually` that is what is wished for, for the others what must not be.
        """
        if self._value is not True:
            self._stop(t, ended=t)
            return
        if self._run is None:
            self._run = t
            if self.statement.check.kind != "eventually":
                self._follower = Follower(self.statement, self._change_at)
        if self._follower is not None and world is not None:
            self._follower.look(t, world)
        # For `eventually` a run may be long enough before it ends.
        long_enough = t - self._run >= self.statement.check.hold_for
        if self._follower is None and self.true_at is None and long_enough:
            self.true_at = self._run

    def _close(self, t: float) -> None:
        self._stop(t, ended=None)

    def _stop(self, t: float, *, ended: float | None) -> None:
        """End the current run at `t`; `ended` is None if the window ends while it lasts."""
        if self._run is None:
            return
        lasted = t - self._run
        hold = self.statement.check.hold_for
        if self.statement.check.kind == "eventually":
            if self.true_at is None and lasted >= hold:
                self.true_at = self._run
        elif lasted > hold or not hold:
            self.runs += 1
            if self._follower is not None:
                self._follower.end(ended)
                self.witnesses += self._follower.witnesses()
                self.extra |= self._follower.extra
                self.total = max(self.total, self._follower.total)
        self.longest = max(self.longest, lasted)
        self._run = None
        self._follower = None

    # ---- what came of it

    def finding(self) -> Finding:
        """Return what was found. Call it after the last observation."""
        # Who still is as it should not be comes first: that is what somebody has to look into.
        self.witnesses.sort(key=lambda witness: (witness.until is not None, witness.since))
        outcome, evidence = self._judge()
        check = self.statement.check
        if outcome is Outcome.FAIL and check.otherwise is Outcome.UNKNOWN:
            outcome, evidence = Outcome.UNKNOWN, f"not shown: {evidence}"
        return Finding(
            id=check.id,
            title=check.title or check.id,
            outcome=outcome,
            evidence=evidence,
            builtin=False,
            statement=self.statement.text,
            witnesses=tuple(self.witnesses),
        )

    def _judge(self) -> tuple[Outcome, str]:
        if isinstance(self.window, str):
            return Outcome.UNKNOWN, self.window
        if self.runs:
            return Outcome.FAIL, self._violation()
        missed = self._missed()
        if self.statement.check.kind == "eventually":
            return self._judge_eventually(missed)
        if missed:
            return Outcome.UNKNOWN, missed
        evidence = self._seen()
        hold = self.statement.check.hold_for
        if hold:
            evidence += f"; longest {span(self.longest)} of {span(hold)} allowed"
        return Outcome.PASS, evidence

    def _judge_eventually(self, missed: str) -> tuple[Outcome, str]:
        if self.true_at is not None and not self._empty_talk():
            held = self.statement.check.hold_for
            told = f"true at {moment_of(self.true_at, self._change_at)}"
            return Outcome.PASS, f"{told}, held for {span(held)}" if held else told
        if missed:
            return Outcome.UNKNOWN, missed
        told = f"never true in {self._seen()}"
        if self.longest:
            told = f"true for {span(self.longest)} at most in {self._seen()}"
        values = [*self.statement.scalars(self._last), self._not_so()]
        at_the_end = ", ".join(value for value in values if value)
        return Outcome.FAIL, f"{told}; at the end {at_the_end}" if at_the_end else told

    def _not_so(self) -> str:
        """Return for which rollouts an `eventually` does not hold in the end; empty if that is no matter of single ones."""
        names = alone(self.statement, self._last)
        total = len(self._last.get("rollouts", ()))
        return f"not so for {few(names, total)}" if names else ""

    def _seen(self) -> str:
        noun = "observation" if self.count == 1 else "observations"
        return f"{self.count} {noun} from {moment(self.start)} to {moment(self.end)}"

    def _missed(self) -> str:
        """Return why a violation might have been missed; empty if it cannot."""
        if self.statement.problem:
            return f"the statement {self.statement.problem}"
        if empty := self._empty_talk():
            return empty
        if self.unknown:
            return self.unknown
        for gap in self.schedule.gaps:
            overlaps = gap.since <= self.end and gap.until >= self.start
            if gap.kind in self.statement.kinds and overlaps:
                return gap.text
        window = self.window
        if self.schedule.cut and not isinstance(window, str) and window.last == self.schedule.over:
            return f"{self.schedule.cut} at {moment(self.end)}"
        return ""

    def _empty_talk(self) -> str:
        """Return what there was none of, so that the statement says nothing; empty if there was."""
        if self.statement.needs_pods and not self.pods_seen:
            return "no pod was ever observed"
        if self.statement.needs_traffic and not self.requests:
            return "no request was sent in the time that it is about"
        return ""

    def _violation(self) -> str:
        shown = "; ".join(witness.text for witness in self.witnesses[:_SHOWN])
        others = {item.object for item in self.witnesses}
        more = len(self.witnesses) + len(self.extra) - _SHOWN
        if more > 0:
            shown += f"; and {more} more"
        if self.total > 1 and all(name.startswith(ROLLOUT) for name in others):
            names = others | {f"{ROLLOUT}{name}" for _, name in self.extra}
            shown = f"{len(names)} of {self.total} rollouts: {shown}"
        return shown
