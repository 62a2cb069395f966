"""`apply`: the objects of some manifests, in the order they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.scenario import ApplyStep
    from harness.run.verbs.context import Context


async def act(context: Context, action: ApplyStep) -> None:
    """Apply them one after the other, as a person with one command would; those of many rollouts kind by kind, side by side."""
    objects = [obj for manifest in action.manifests for obj in context.manifests[manifest]]
    kind = context.rollout_kind.kind
    if sum(obj.get("kind") == kind for obj in objects) > 1:
        await context.maker.apply_all(objects, context.namespace)
        return
    for obj in objects:
        await context.maker.apply(obj, context.namespace)
