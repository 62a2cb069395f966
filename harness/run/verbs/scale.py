"""`scale`: set the replicas of workloads, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.run.identity import FIELD_MANAGER
from harness.run.together import together

if TYPE_CHECKING:
    from harness.model.scenario import ScaleStep
    from harness.run.verbs.context import Context, Target


async def act(context: Context, action: ScaleStep) -> None:
    """Patch spec.replicas."""
    targets = await context.targets(action.target, action.where)
    patch = {"spec": {"replicas": action.replicas}}

    async def one(target: Target) -> None:
        await context.client.patch(
            target.resource, target.name, context.namespace, patch, field_manager=FIELD_MANAGER
        )

    await together(one, targets)
