"""`scale`: set the replicas of one workload, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.run.identity import FIELD_MANAGER

if TYPE_CHECKING:
    from harness.model.scenario import ScaleStep
    from harness.run.verbs.context import Context


async def act(context: Context, action: ScaleStep) -> None:
    """Patch spec.replicas."""
    resource, name = await context.resolve(action.target)
    patch = {"spec": {"replicas": action.replicas}}
    await context.client.patch(
        resource, name, context.namespace, patch, field_manager=FIELD_MANAGER
    )
