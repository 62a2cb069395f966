"""`apply`: the objects of some manifests, in the order they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.scenario import ApplyStep
    from harness.run.verbs.context import Context


async def act(context: Context, action: ApplyStep) -> None:
    """Apply them one after the other, as a person with one command would."""
    for manifest in action.manifests:
        for obj in context.manifests[manifest]:
            await context.maker.apply(obj, context.namespace)
