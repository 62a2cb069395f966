"""HorizontalPodAutoscaler, autoscaling/v2.

It is never paused: at zero replicas it does nothing by itself, until the target is scaled up again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.controller.core.autoscalers.base import FIELD, Scaler, reference

if TYPE_CHECKING:
    from harness.controller.core.decision import Plural


class HorizontalPodAutoscaler(Scaler):
    """The one that comes with Kubernetes. Any version of its API may be named in the reference; v2 is read and written."""

    kind: ClassVar[str] = "HorizontalPodAutoscaler"
    plural: ClassVar[Plural] = "horizontalpodautoscalers"
    api_version: ClassVar[str] = "autoscaling/v2"
    least_field: ClassVar[str] = "minReplicas"
    most_field: ClassVar[str] = "maxReplicas"
    default_bounds: ClassVar[tuple[int, int | None]] = (1, None)
    zero: ClassVar[bool] = False

    @property
    def warning(self) -> str:
        """What can hardly be meant: another workload, or queries, which only a ScaledObject has."""
        if reference(self.canary).get("primaryScalerQueries"):
            return f"{FIELD}.primaryScalerQueries is ignored: a {self.kind} has no queries"
        return super().warning
