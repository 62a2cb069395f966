"""`stop`, `start`, `kill`: the subject's process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from harness.model.scenario import KillStep, StartStep, StopStep
    from harness.run.verbs.context import Context


async def stop(context: Context, _action: StopStep) -> None:
    """End it in an orderly way."""
    _must_be_ours(context)
    await context.subject.stop()


async def kill(context: Context, _action: KillStep) -> None:
    """End it in the middle of whatever it does."""
    _must_be_ours(context)
    await context.subject.kill()


async def start(context: Context, _action: StartStep) -> None:
    """Start it again, and wait until it is ready."""
    _must_be_ours(context)
    await context.start_subject()


def _must_be_ours(context: Context) -> None:
    if context.subject.service_account is None:
        msg = f"{context.subject.facts.name} is in the cluster already and only observed: it is neither ended nor started"
        raise RefusedError(msg)
