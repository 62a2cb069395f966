"""`stop`, `start`, `kill`: the subject's process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.scenario import KillStep, StartStep, StopStep
    from harness.run.verbs.context import Context


async def stop(context: Context, _action: StopStep) -> None:
    """End it in an orderly way."""
    await context.subject.stop()


async def kill(context: Context, _action: KillStep) -> None:
    """End it in the middle of whatever it does."""
    await context.subject.kill()


async def start(context: Context, _action: StartStep) -> None:
    """Start it again, and wait until it is ready."""
    await context.start_subject()
