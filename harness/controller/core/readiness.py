"""Is a Deployment rolled out? (spec state-machine 9, with one clock instead of two: P11, C11).

The Deployment's own deadline is not looked at: its Available condition stays True while old pods serve, and its
Progressing condition follows a clock that nobody set for this release. The Canary's deadline alone ends a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.core.settings import FULL

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether, and if not why, with counts."""

    message: str = ""
    """Why not; empty when ready."""

    @property
    def ready(self) -> bool:
        """Whether it is."""
        return not self.message


def rolled_out(deployment: JSON, percent: int = FULL) -> Readiness:
    """Judge a Deployment; `percent` of the updated pods must be available.

    Zero replicas count as rolled out when zero is what is asked for; callers that need pods look at the number themselves (P12).
    """
    meta, _spec = deployment["metadata"], deployment["spec"]
    status: JSON = deployment.get("status") or {}
    name = meta["name"]
    if int(status.get("observedGeneration") or 0) < int(meta.get("generation") or 0):
        return Readiness(f"{name}: the last change has not been taken up yet")
    desired = wanted(deployment)
    total, updated, available = (
        int(status.get(key) or 0) for key in ("replicas", "updatedReplicas", "availableReplicas")
    )
    if updated < desired:
        return Readiness(f"{name}: {updated} of {desired} pods are updated")
    if total > updated:
        return Readiness(f"{name}: {total - updated} old pods are still there")
    if available < updated * percent // 100:
        unavailable = f"{name}: {available} of {updated} pods are available"
        return Readiness(unavailable + (f", {percent} % needed" if percent != FULL else ""))
    return Readiness()


def wanted(deployment: JSON) -> int:
    """Return spec.replicas as a number; unset means one."""
    replicas = deployment["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)
