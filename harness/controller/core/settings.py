"""What a Canary asks for, with the defaults of spec canary-api 2 and 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.controller.core.moments import duration

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

DEFAULT_PROVIDER: Final = "istio"
DEFAULT_INTERVAL: Final = 60.0
MIN_INTERVAL: Final = 1.0
"""Seconds. Flagger raises everything below 10 s to 10 s; decision B1 honours one second."""
DEFAULT_ITERATIONS: Final = 10
"""What a provider that cannot split traffic assumes when the analysis names none."""
DEFAULT_DEADLINE: Final = 600.0
FULL: Final = 100

Strategy = Literal["blue-green", "a/b", "weights"]
Restore = Literal["", "revert", "adopt"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of one Canary. Times in seconds, thresholds and weights in percent."""

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
    """The analysis asked for something else than blue-green by iterations, and the provider can only do that."""
    strategy: Strategy
    steps: tuple[int, ...]
    """Weights to visit, in order; the last one is where the canary is promoted. Empty unless by weights."""
    promotion_step: int
    """By how much the canary's share falls at each interval after the promotion; 0: at once."""
    mirror: bool
    """Traffic is mirrored first."""
    revert: bool
    """On deletion, target and routing are restored first."""
    freeze: bool
    """A failed analysis leaves everything as it is (`analysis.freezeOnFailure`)."""
    restore: Restore
    """How the target gets the promoted template back after a failed analysis; empty: it keeps what failed, at zero."""

    @classmethod
    def of(cls, canary: JSON, *, splits: bool = False, mirrors: bool = False) -> Settings:
        """Read them from a raw Canary. `splits` and `mirrors`: what its router can do."""
        spec: JSON = canary["spec"]
        analysis: JSON = spec.get("analysis") or {}
        iterations = _int(analysis.get("iterations"), 0)
        interval = duration(analysis.get("interval"))
        deadline = spec.get("progressDeadlineSeconds")
        matched = bool(analysis.get("match"))
        strategy: Strategy = "blue-green"
        if splits and iterations > 0 and matched:
            strategy = "a/b"
        elif splits and iterations < 1:
            strategy = "weights"
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
            forced=not splits and bool(spec.get("analysis")) and (iterations < 1 or matched),
            strategy=strategy,
            steps=_steps(analysis) if strategy == "weights" else (),
            promotion_step=_int(analysis.get("stepWeightPromotion"), 0),
            mirror=mirrors and bool(analysis.get("mirror")),
            revert=bool(spec.get("revertOnDeletion")),
            freeze=bool(analysis.get("freezeOnFailure")),
            restore=analysis.get("restore") or "",
        )

    def following(self, weight: int) -> int:
        """Return the weight after `weight`; the last one when there is no more."""
        return next((step for step in self.steps if step > weight), self.last_weight)

    @property
    def last_weight(self) -> int:
        """The weight at which the canary is promoted."""
        return self.steps[-1] if self.steps else 0


def provider(canary: JSON) -> str:
    """Return the provider that a Canary asks for, named or not."""
    return str(canary["spec"].get("provider") or DEFAULT_PROVIDER)


def _steps(analysis: JSON) -> tuple[int, ...]:
    """Return the weights of an analysis: stepWeight up to maxWeight, or the listed ones (spec canary-api 4).

    maxWeight is never passed: with steps of 20 and a maximum of 50 the canary gets 20, 40, 50.
    """
    step = _int(analysis.get("stepWeight"), 0)
    if step > 0:
        most = min(_int(analysis.get("maxWeight"), 0) or FULL, FULL)
        return tuple(dict.fromkeys([*range(step, most, step), most]))
    listed = sorted({int(weight) for weight in analysis.get("stepWeights") or ()})
    return tuple(weight for weight in listed if 0 < weight <= FULL)


def _int(value: Any, default: int) -> int:
    return default if value is None else int(value)
