"""When things happened in a recording, and which part of it a check looks at.

Positions are indices into the observations, not times: two observations may bear the same time, and their order still counts.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.model.timeline import (
    HarnessError,
    Interrupted,
    Leftovers,
    Settled,
    StepState,
    WatchState,
)

if TYPE_CHECKING:
    from harness.model.resolved import Check, Resolved
    from harness.model.timeline import Observation, Timeline

_ENDED_BADLY: Final = frozenset({"timed-out", "failed"})


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a watch may have missed something."""

    kind: str
    since: float
    until: float
    reason: str

    @property
    def text(self) -> str:
        """The gap in a clause."""
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"the watch of {self.kind} has a gap from {self.since:.1f} s to {self.until:.1f} s{why}"
        )


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a recording that a check looks at: the states after the observations `first` to `last`."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The milestones of a drill."""

    held: dict[str, int]
    """Step -> position at which its `until` held (or its verb was done, where it has none)."""
    begun: int
    """Position at which the first step started; 0 if none did."""
    end: int
    """Position at which the steps were over and the settle time began."""
    settle: tuple[int, int] | None
    """Positions of the begin and end of the settle time, if it was observed to its end."""
    over: int
    """Position of the last observation that is judged; -1 if there is none. What comes after is teardown."""
    cut: str
    """Why observation ended before the drill did; empty if it ended in good order (a step that timed out included)."""
    gaps: tuple[Gap, ...]
    lost: bool = False
    """Whether the recording just stops, so that nothing is known of what came after."""

    def window(self, check: Check) -> Window | str:
        """Return the window of a check, or why it never opened."""
        first = self.begun
        if check.from_ == "end":
            first = self.end
        elif check.from_ is not None:
            if check.from_ not in self.held:
                return f"step {check.from_} never held, so there is nothing to judge"
            first = self.held[check.from_]
        last = self.over
        if check.until == "end":
            last = self.end
        elif check.until in self.held:
            last = self.held[check.until]
        if self.over < 0 or first > last:
            return "the time that it is about never came"
        return Window(first, last)


@dataclass(slots=True)
class _Marks:
    """Positions noted while the observations are gone through once."""

    held: dict[str, int] = field(default_factory=dict)
    begun: int | None = None
    bad: int | None = None
    settle: dict[str, int] = field(default_factory=dict)
    stopped: tuple[int, str] | None = None
    teardown: int | None = None
    gaps: list[Gap] = field(default_factory=list)

    def note(self, index: int, seen: Observation) -> None:
        """Note an observation, if it is a milestone."""
        match seen:
            case StepState():
                self._note_step(index, seen)
            case Settled():
                self.settle[seen.state] = index
            case Interrupted():
                self.stopped = self.stopped or (
                    index,
                    f"the drill was interrupted by {seen.signal}",
                )
            case HarnessError():
                self.stopped = self.stopped or (index, "the harness or the cluster failed")
            case Leftovers() if self.teardown is None:
                self.teardown = index
            case WatchState(state="gap"):
                since = seen.t if seen.since is None else seen.since
                self.gaps.append(Gap(seen.kind, since, seen.t, seen.reason))

    def _note_step(self, index: int, seen: StepState) -> None:
        if seen.state == "started" and self.begun is None:
            self.begun = index
        elif seen.state == "held":
            self.held[seen.step] = index
        elif seen.state in _ENDED_BADLY and self.bad is None:
            self.bad = index

    def over(self, last: int, scenario: Resolved, *, truncated: bool) -> tuple[int, str, bool]:
        """Return the position at which observation ended, why that was too early, and whether the rest is simply missing."""
        if "end" in self.settle:
            return self.settle["end"], "", False
        if self.stopped is not None and (self.bad is None or self.stopped[0] < self.bad):
            return *self.stopped, False
        if self.bad is not None:
            return self.bad, "", False
        if self.done(scenario) and not scenario.settle:
            return max(self.held.values()), "", False
        rest = last if self.teardown is None else self.teardown - 1
        cut = "the recording breaks off" if truncated else "the recording ends before the drill did"
        return rest, cut, True

    def done(self, scenario: Resolved) -> bool:
        """Whether every step was completed."""
        return bool(scenario.steps) and all(step.name in self.held for step in scenario.steps)


def schedule(timeline: Timeline, scenario: Resolved) -> Schedule:
    """Find the milestones of a recording."""
    marks = _Marks()
    for index, seen in enumerate(timeline.observations):
        marks.note(index, seen)
    last = len(timeline.observations) - 1
    over, cut, lost = marks.over(last, scenario, truncated=timeline.truncated)
    end = over
    if "begin" in marks.settle:
        end = marks.settle["begin"]
    elif marks.done(scenario):
        end = max(marks.held.values())
    settle = None
    if {"begin", "end"} <= marks.settle.keys():
        settle = marks.settle["begin"], marks.settle["end"]
    ended = timeline.observations[over].t if over >= 0 else 0.0
    # A watch that is found to be behind once observation is over was behind when it ended.
    gaps = tuple(dataclasses.replace(gap, since=min(gap.since, ended)) for gap in marks.gaps)
    return Schedule(marks.held, marks.begun or 0, end, settle, over, cut, gaps, lost=lost)
