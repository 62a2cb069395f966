"""`upgrade`: another subject, or another version of Kubernetes, in the place of the one that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.scenario import UpgradeStep
    from harness.run.verbs.context import Context


async def act(context: Context, action: UpgradeStep) -> str:
    """Carry it out, and return from what to what; the programs of both are at hand since before the drill began."""
    if action.kubernetes is not None:
        return await context.upgrade_kubernetes(action.kubernetes)
    return await context.upgrade_subject(str(action.subject))
