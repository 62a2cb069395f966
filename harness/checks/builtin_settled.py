"""Built-in check: a good end lasts. Nothing about the primaries' pods or the phases changes during the settle time.

A drill that stopped at the first good moment would miss a second wave of restarts right after it. What a controller writes at every
tick without meaning anything by it (resourceVersion, lastTransitionTime) is no change.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks.pods import pod_state
from harness.model.clock import moment, moment_of, span
from harness.model.outcome import Outcome
from harness.model.report import Finding

if TYPE_CHECKING:
    from harness.checks.state import State
    from harness.checks.windows import Schedule
    from harness.model.timeline import Observation

SETTLED: Final = "settled"
_TITLE: Final = "Nothing changed during the settle time"
_SHOWN: Final = 5
_USES: Final[dict[str, frozenset[str] | None]] = {
    "rollouts": frozenset({"name", "phase"}),
    "pods": None,
}


@dataclass(slots=True)
class SettleWatch:
    """Compares each state of the settle time with the one before it."""

    schedule: Schedule
    rollout_kind: str
    pods_seen: bool = False
    _changes: list[str] = field(default_factory=list)
    _phases: dict[str, str] = field(default_factory=dict)
    _pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    _from: float = 0.0
    _to: float = 0.0
    _stamp: int = -1

    def observe(self, index: int, observation: Observation, state: State) -> None:
        """Note what changed with an observation."""
        self.pods_seen = self.pods_seen or state.pods_seen
        if self.schedule.settle is None:
            return
        first, last = self.schedule.settle
        if not first <= index <= last:
            return
        self._to = observation.t
        stamp = state.stamp(_USES)
        if index > first and stamp == self._stamp:
            return
        self._stamp = stamp
        facts = state.world(uses=_USES)
        phases = {row["name"]: row["phase"] for row in facts.get("rollouts", ())}
        pods = {pod["name"]: pod for pod in facts.get("pods", ()) if pod["role"] == "primary"}
        if index == first:
            self._from = observation.t
        else:
            self._compare(moment_of(observation.t, state.change_at), phases, pods)
        self._phases, self._pods = phases, pods

    def _compare(self, when: str, phases: dict[str, str], pods: dict[str, dict[str, Any]]) -> None:
        for name, phase in phases.items():
            if phase != self._phases.get(name):
                whose = f"the phase of {name}" if len(phases) > 1 else "the phase"
                told = f"{self._phases.get(name)} to {phase}"
                self._changes.append(f"{whose} went from {told} at {when}")
        for name, pod in pods.items():
            before = self._pods.get(name)
            if before is None:
                self._changes.append(f"pod {name} appeared at {when}")
            elif not before["terminating"] and pod_state(before) != pod_state(pod):
                # One on its way out when the settle time began may go; it was replaced before.
                told = f"{pod_state(before)} to {pod_state(pod)}"
                self._changes.append(f"pod {name} went from {told} at {when}")
        for name, before in self._pods.items():
            if name not in pods and not before["terminating"]:
                self._changes.append(f"pod {name} vanished at {when}")

    def finding(self) -> Finding:
        """Return what was found."""
        outcome, evidence = self._judge()
        return Finding(SETTLED, _TITLE, outcome, evidence, builtin=True)

    def _judge(self) -> tuple[Outcome, str]:
        if self.schedule.settle is None:
            why = self.schedule.cut or "the drill ended before it"
            return Outcome.UNKNOWN, f"the settle time was not observed to its end: {why}"
        if self._changes:
            shown = "; ".join(self._changes[:_SHOWN])
            more = len(self._changes) - _SHOWN
            shown += f"; and {more} more changes" if more > 0 else ""
            return Outcome.FAIL, f"primary or phase changed after the end: {shown}"
        if not self.pods_seen:
            return Outcome.UNKNOWN, "no pod was ever observed"
        for gap in self.schedule.gaps:
            relevant = gap.kind in {"Pod", self.rollout_kind}
            if relevant and gap.since <= self._to and gap.until >= self._from:
                return Outcome.UNKNOWN, gap.text
        evidence = (
            f"{self._told()} and {len(self._pods)} pods of the primary unchanged "
            f"for {span(self._to - self._from)}, {moment(self._from)} to {moment(self._to)}"
        )
        return Outcome.PASS, evidence

    def _told(self) -> str:
        if len(self._phases) > 1:
            counts = Counter(self._phases.values()).most_common()
            return ", ".join(f"{count} {phase or 'without a phase'}" for phase, count in counts)
        return next(iter(self._phases.values()), "") or "no phase"
