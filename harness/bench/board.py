"""What a watch on the rollout objects has shown: phases with their times, and the analyses that began. No I/O."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.model.timeline import JSON, RolloutKind

ANALYSING: Final = frozenset({"Waiting", "Progressing"})
"""Phases that an analysis begins with."""
UNDER_WAY: Final = ANALYSING | {"WaitingPromotion"}
"""Phases of an analysis: a step from one to another begins no new one."""


@dataclass(slots=True)
class Seen:
    """One rollout object over time."""

    phase: str = ""
    progress: int = 0
    """Iterations plus weight."""
    phases: list[tuple[float, str]] = field(default_factory=list)
    """Moments at which it came into a phase."""
    starts: list[float] = field(default_factory=list)
    """Moments at which an analysis began."""


class Board:
    """All rollout objects of a storm. Moments are the event loop's time."""

    def __init__(self, kind: RolloutKind) -> None:
        self.objects: dict[str, Seen] = {}
        self.moved = 0.0
        """When anything was seen last."""
        self.gaps: list[float] = []
        """Moments at which the watch had missed something."""
        self._kind = kind
        self._count: Counter[str] = Counter()

    def take(self, obj: JSON, t: float) -> None:
        """Take in the state of an object at a moment."""
        self.moved = t
        kind = self._kind
        raw = str(_at(obj, kind.phase_path) or "")
        phase = kind.phases.get(raw, raw)
        progress = _number(obj, kind.iterations_path) + _number(obj, kind.weight_path)
        seen = self.objects.setdefault(str(obj["metadata"]["name"]), Seen())
        # As for drills: entered from outside, or begun anew, which a new revision in the middle of an analysis does.
        entered = phase in ANALYSING and seen.phase not in UNDER_WAY
        again = phase in UNDER_WAY and seen.phase in UNDER_WAY and progress == 0 < seen.progress
        if entered or again:
            seen.starts.append(t)
        if phase != seen.phase or not seen.phases:
            if seen.phases:
                self._count[seen.phase] -= 1
            self._count[phase] += 1
            seen.phases.append((t, phase))
        seen.phase, seen.progress = phase, progress

    def inside(self, phase: str) -> int:
        """Return how many objects are in a phase."""
        return self._count[phase]

    def outside(self, phase: str) -> str:
        """Return in words which objects are not in a phase: how many in each other one, and one by name."""
        others = {name: seen.phase for name, seen in self.objects.items() if seen.phase != phase}
        if not others:
            return "none"
        counts = Counter(phase or "without a phase" for phase in others.values())
        listed = ", ".join(f"{number} {phase}" for phase, number in counts.most_common())
        return f"{listed}; for example {min(others)}"


def _at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


def _number(obj: JSON, path: str) -> int:
    value = _at(obj, path)
    return value if isinstance(value, int) else 0
