"""`delete`: one object, by target."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.scenario import DeleteStep
    from harness.run.verbs.context import Context


async def act(context: Context, action: DeleteStep) -> None:
    """Ask for the deletion; use `until` to wait for its effect."""
    resource, name = await context.resolve(action.target)
    await context.client.delete(resource, name, context.namespace)
