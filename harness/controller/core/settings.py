"""What a Canary asks for, with the defaults of spec canary-api 2 and 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.moments import duration

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

DEFAULT_PROVIDER: Final = "istio"
DEFAULT_INTERVAL: Final = 60.0
MIN_INTERVAL: Final = 1.0
"""Seconds. Flagger raises everything below 10 s to 10 s; decision B1 honours one second."""
DEFAULT_ITERATIONS: Final = 10
"""What provider kubernetes assumes when the analysis names none."""
DEFAULT_DEADLINE: Final = 600.0
FULL: Final = 100


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of one Canary. Times in seconds, thresholds in percent."""

    interval: float
    iterations: int
    threshold: int
    """Failed checks at which a run is rolled back."""
    deadline: float
    """How long target or primary may fail to become ready, from scale-up or promotion (P11)."""
    primary_ready: int
    canary_ready: int
    skip_analysis: bool
    suspended: bool
    forced: bool
    """The analysis asked for something else than blue-green by iterations; provider kubernetes can only do that."""

    @classmethod
    def of(cls, canary: JSON) -> Settings:
        """Read them from a raw Canary."""
        spec: JSON = canary["spec"]
        analysis: JSON = spec.get("analysis") or {}
        iterations = _int(analysis.get("iterations"), 0)
        interval = duration(analysis.get("interval"))
        deadline = spec.get("progressDeadlineSeconds")
        return cls(
            interval=max(DEFAULT_INTERVAL if interval is None else interval, MIN_INTERVAL),
            iterations=iterations if iterations > 0 else DEFAULT_ITERATIONS,
            threshold=max(_int(analysis.get("threshold"), 0), 1),
            deadline=DEFAULT_DEADLINE if deadline is None else float(deadline),
            primary_ready=_int(analysis.get("primaryReadyThreshold"), FULL),
            canary_ready=_int(analysis.get("canaryReadyThreshold"), FULL),
            # Without any analysis there is nothing to wait for either (spec canary-api 2).
            skip_analysis=bool(spec.get("skipAnalysis")) or not spec.get("analysis"),
            suspended=bool(spec.get("suspend")),
            forced=bool(spec.get("analysis")) and (iterations < 1 or bool(analysis.get("match"))),
        )


def provider(canary: JSON) -> str:
    """Return the provider that a Canary asks for, named or not."""
    return str(canary["spec"].get("provider") or DEFAULT_PROVIDER)


def _int(value: Any, default: int) -> int:
    return default if value is None else int(value)
