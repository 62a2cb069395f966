"""What became of each of several rollouts: its phases, and what happened to it between the upgrade and the change, and after."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import name_of
from harness.checks.population import QUEUED
from harness.checks.rollout import ENDED
from harness.model.report import Counted, Revision, RolloutRow
from harness.model.resolved import UpgradeStep
from harness.model.timeline import ObjectSeen, StepState, SubjectState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.checks.section import View
    from harness.checks.state import State
    from harness.model.resolved import Resolved
    from harness.model.timeline import Observation

CELL: Final = "drill/cell"
"""Label of a rollout object that says which group it belongs to."""
STARTS: Final = "starts"
"""Value of a scenario that says by group how many analyses should begin."""
_ENDINGS: Final = frozenset({"stopped", "killed", "exited"})
_COUNTED: Final = ("starts", "target_rolls", "primary_rolls", "tracking_writes")

Rows = dict[str, "View"]


@dataclass(slots=True)
class RolloutLog:
    """Gathers it while a recording is replayed. It is for drills with more than one rollout."""

    scenario: Resolved
    kind: str
    """Kind of the rollout object."""
    over: float = 0.0
    change_at: float | None = None
    upgrade_at: float | None = None
    _phases: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    _messages: dict[str, str] = field(default_factory=dict)
    _queued: dict[str, list[tuple[float, float | None]]] = field(default_factory=dict)
    _base: Rows = field(default_factory=dict)
    """Entries when counting began, as far as they were not zero."""
    _witness: Rows = field(default_factory=dict)
    """Entries when the subject that was replaced had ended."""
    _stopped: bool = False
    _at_change: Rows | None = None
    """Entries at the change; None: it has not come, or it came before the upgrade."""
    _last: Rows = field(default_factory=dict)
    _upgrades: dict[str, UpgradeStep] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._upgrades = {
            step.name: step.action
            for step in self.scenario.steps
            if isinstance(step.action, UpgradeStep)
        }

    def observe(self, _index: int, observation: Observation, state: State) -> None:
        """Take an observation into account."""
        self.over = observation.t
        match observation:
            case ObjectSeen() if observation.object.get("kind") == self.kind:
                self._see(name_of(observation.object), state)
            case SubjectState():
                self._see_subject(observation, state)
            case StepState():
                self._see_step(observation, state)

    def _see(self, name: str, state: State) -> None:
        entry = state.population.section.get(name)
        if entry is None:
            return
        phases = self._phases.setdefault(name, [])
        if not phases or phases[-1][1] != entry["phase"]:
            phases.append((state.t, entry["phase"]))
        self._messages[name] = entry["message"]
        waits = QUEUED in entry["conditions"]
        queued = self._queued.setdefault(name, [])
        if waits and not (queued and queued[-1][1] is None):
            queued.append((state.t, None))
        elif not waits and queued and queued[-1][1] is None:
            queued[-1] = queued[-1][0], state.t

    def _see_subject(self, seen: SubjectState, state: State) -> None:
        if seen.state in _ENDINGS:
            self._witness, self._stopped = _rows(state), True
        elif seen.state == "started":
            # The counters of the state begin again at zero, and so does what is compared with them.
            self._base, self._at_change, self._stopped = {}, None, False
            self._witness = self._witness or _rows(state)

    def _see_step(self, seen: StepState, state: State) -> None:
        upgrade = self._upgrades.get(seen.step)
        if seen.state == "started" and upgrade is not None:
            # One control plane after the other is one upgrade to the subject, which runs on.
            first = self.upgrade_at is None or upgrade.subject is not None
            if first:
                self.upgrade_at = seen.t
                self._base, self._at_change = _rows(state), None
            if first and not self._stopped:
                self._witness = self._base
        self.change_at = state.change_at
        begins = seen.state == "started" and seen.step == self.scenario.change_step
        if begins and upgrade is None:
            # Before the first of many targets is changed: by the time that all are, some have begun already.
            self._at_change = _rows(state)

    def finish(self, state: State) -> None:
        """Take note of what it was like when observation ended."""
        self._last = _rows(state)

    # ---- what came of it

    def rows(self) -> tuple[RolloutRow, ...]:
        """Return a row for each rollout, by name."""
        return tuple(self._row(name, self._last[name]) for name in sorted(self._last))

    def _row(self, name: str, entry: View) -> RolloutRow:
        base = self._base.get(name, {})
        at_change = None if self._at_change is None else self._at_change.get(name, {})
        until = entry if at_change is None else at_change
        group = str(entry.get("labels", {}).get(CELL, ""))
        return RolloutRow(
            name=name,
            group=group,
            phases=tuple(self._phases.get(name, ())),
            before=_counted(base, until),
            after=None if at_change is None else _counted(at_change, entry),
            expected=self._expected(group),
            looks=until.get("looks", 0) - base.get("looks", 0),
            target_before=_target(self._witness.get(name, {})),
            target_after=_target(until),
            queued=tuple(self._queued.get(name, ())),
        )

    def _expected(self, group: str) -> int | None:
        table = self.scenario.values.get(STARTS)
        found = table.get(group) if isinstance(table, dict) else None
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def final(self, name: str) -> tuple[float, str]:
        """Return since when a rollout was in its last phase, and that phase."""
        phases = self._phases.get(name, [])
        return phases[-1] if phases else (0.0, "")

    def finals(self) -> Mapping[str, int]:
        """Return the last phases of all rollouts with their numbers, the most frequent first."""
        return dict(Counter(self.final(name)[1] or "no phase" for name in self._last).most_common())

    @property
    def names(self) -> list[str]:
        """The names of all rollouts, in their order."""
        return sorted(self._last)

    def message(self, name: str) -> str:
        """Return what a rollout object said last."""
        return self._messages.get(name, "")

    @property
    def took(self) -> float | None:
        """Seconds from the change until the last of them had ended; None if one of them did not, or not after the change."""
        ends = [self.final(name) for name in self._last]
        change = self.change_at
        if change is None or not ends:
            return None
        if any(phase not in ENDED or since < change for since, phase in ends):
            return None
        return max(since for since, _ in ends) - change


def _rows(state: State) -> Rows:
    return {str(entry["name"]): entry for entry in state.population.section.rows}


def _counted(base: View, until: View) -> Counted:
    numbers: dict[str, Any] = {key: until.get(key, 0) - base.get(key, 0) for key in _COUNTED}
    return Counted(**numbers)


def _target(entry: View) -> Revision:
    return Revision(entry.get("target_hash", ""), entry.get("target_revision", ""))
