"""`delete`: one object by target, or many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.run.together import together

if TYPE_CHECKING:
    from harness.model.scenario import DeleteStep
    from harness.run.verbs.context import Context, Target


async def act(context: Context, action: DeleteStep) -> None:
    """Ask for the deletion; use `until` to wait for its effect. Orphans lose their owner, and stay."""
    targets = await context.targets(action.target, action.where)

    async def one(target: Target) -> None:
        await context.client.delete(
            target.resource,
            target.name,
            context.namespace,
            propagation="Orphan" if action.orphan else "Background",
        )

    await together(one, targets)
