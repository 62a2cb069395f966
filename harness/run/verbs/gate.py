"""`gate` and `metric`: the world outside the cluster answers differently from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.actions import GateStep, MetricStep
    from harness.run.verbs.context import Context


async def gate(context: Context, action: GateStep) -> str:
    """Change what a gate answers; return how it did and does."""
    return context.outside.change_gate(action)


async def metric(context: Context, action: MetricStep) -> str:
    """Change metrics, and return once the metrics server tells the new values."""
    return await context.outside.change_metrics(action)
