"""When things happened in a recording, and which part of it a check looks at.

Positions are indices into the observations, not times: two observations may bear the same time, and their order still counts.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    from harness.model.timeline import Timeline

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


def schedule(timeline: Timeline, scenario: Resolved) -> Schedule:
    """Find the milestones of a recording."""
    held: dict[str, int] = {}
    begun: int | None = None
    bad: int | None = None
    settle_begin: int | None = None
    settle_end: int | None = None
    stopped: tuple[int, str] | None = None
    teardown: int | None = None
    gaps: list[Gap] = []
    for index, seen in enumerate(timeline.observations):
        if isinstance(seen, StepState):
            if seen.state == "started" and begun is None:
                begun = index
            elif seen.state == "held":
                held[seen.step] = index
            elif seen.state in _ENDED_BADLY and bad is None:
                bad = index
        elif isinstance(seen, Settled):
            if seen.state == "begin":
                settle_begin = index
            else:
                settle_end = index
        elif isinstance(seen, Interrupted):
            stopped = stopped or (index, f"the drill was interrupted by {seen.signal}")
        elif isinstance(seen, HarnessError):
            stopped = stopped or (index, "the harness or the cluster failed")
        elif isinstance(seen, Leftovers):
            teardown = index if teardown is None else teardown
        elif isinstance(seen, WatchState) and seen.state == "gap":
            since = seen.t if seen.since is None else seen.since
            gaps.append(Gap(seen.kind, since, seen.t, seen.reason))
    last = len(timeline.observations) - 1
    done = bool(scenario.steps) and all(step.name in held for step in scenario.steps)
    over, cut = last if teardown is None else teardown - 1, ""
    if settle_end is not None:
        over = settle_end
    elif stopped is not None and (bad is None or stopped[0] < bad):
        over, cut = stopped
    elif bad is not None:
        over = bad
    elif done and not scenario.settle:
        over = max(held.values())
    elif timeline.truncated:
        cut = "the recording breaks off"
    else:
        cut = "the recording ends before the drill did"
    end = over
    if settle_begin is not None:
        end = settle_begin
    elif done:
        end = max(held.values())
    settle = None
    if settle_begin is not None and settle_end is not None:
        settle = settle_begin, settle_end
    return Schedule(held, begun or 0, end, settle, over, cut, tuple(gaps))
