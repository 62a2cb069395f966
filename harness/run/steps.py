"""Carrying out the steps of a drill, one after the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from harness.checks.expression import Expression
from harness.kube.errors import ApiError
from harness.model.timeline import StepState, SubjectState
from harness.run.last_seen import describe
from harness.run.objects import RefusedError
from harness.run.verbs import VERBS
from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.model.scenario import Step
    from harness.run.live import Live
    from harness.run.verbs.context import Context

ROUNDS: Final = 8
"""Of the event loop: enough for what has arrived at a socket to become observations."""


async def run_steps(context: Context, steps: Sequence[Step]) -> bool:
    """Run `steps`; False as soon as one fails or its `until` does not hold in time.

    What happened is in the timeline; a failing step is the subject's result, not an error of the harness.
    """
    for step in steps:
        if not await _run_step(context, step):
            return False
    return True


async def _run_step(context: Context, step: Step) -> bool:
    live = context.live

    def note(state: Any, detail: str = "") -> None:
        live.observe(StepState(live.now(), step.name, state, detail))

    note("started")
    context.say(step.name)
    if step.action is not None:
        try:
            if step.change:
                # Up to the change nobody judges by metrics, so that nothing waits for them until then.
                await context.outside.told()
            action = context.outside.localised(step.action)
            done = await VERBS[action.VERB](context, action)
        except (ApiError, RefusedError, SubjectError) as error:
            note("failed", str(error))
            return False
        note("acted", done or "")
    if step.until is not None and step.within is not None:
        problem = await _waited(context, step.until, step.within)
        if problem is not None:
            note(*problem)
            return False
    try:
        if context.traffic is not None and not await context.traffic.flows(step.name):
            return False
    except (ApiError, RefusedError) as error:
        note("failed", str(error))
        return False
    note("held")
    return True


async def _waited(context: Context, until: str, within: float) -> tuple[str, str] | None:
    """Wait for a condition; return how the step ended otherwise, and what was seen last."""
    live = context.live
    holds = _holds(live, Expression.compile(until))
    crash = _crash_watch(context, len(live.observations))
    await live.wait_for(lambda: holds() or crash() is not None, within)
    if holds():
        # Each kind has a watch of its own. What the others delivered before this moment is read first, or a busy machine's checks would
        # begin with a view in which one kind is older than another.
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        return None
    seen = describe(live.state.world())
    crashed = crash()
    if crashed is not None:
        return "failed", f"the subject ended by itself ({crashed}); {seen}"
    return "timed-out", f"`{until}` did not hold within {within:g} s; last seen: {seen}"


def _holds(live: Live, expression: Expression) -> Callable[[], bool]:
    # Unknown is "not yet": the field it needs may still come.
    return lambda: live.state.evaluate(expression) is True


def _crash_watch(context: Context, begin: int) -> Callable[[], str | None]:
    """Return a function that says how the subject ended by itself since observation `begin`, if it did."""
    looked = begin
    ended: str | None = None

    def look() -> str | None:
        nonlocal looked, ended
        # Each observation is looked at once: there may be tens of thousands.
        while ended is None and looked < len(context.live.observations):
            seen = context.live.observations[looked]
            looked += 1
            if isinstance(seen, SubjectState) and seen.state == "exited":
                ended = seen.detail
        return ended

    return look
