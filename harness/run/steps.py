"""Carrying out the steps of a drill, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from harness.run.verbs.context import Context


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
            await VERBS[step.action.VERB](context, step.action)
        except (ApiError, RefusedError, SubjectError) as error:
            note("failed", str(error))
            return False
        note("acted")
    if step.until is not None and step.within is not None:
        expression = Expression.compile(step.until)
        holds = _holds(expression)
        crash = _crash_watch(context, len(live.observations))
        done = await live.wait_for(lambda world: holds(world) or crash() is not None, step.within)
        if not holds(live.state.world()):
            crashed = crash()
            if crashed is not None:
                note(
                    "failed",
                    f"the subject ended by itself ({crashed}); {describe(live.state.world())}",
                )
                return False
            if not done:
                seen = describe(live.state.world())
                note(
                    "timed-out",
                    f"`{step.until}` did not hold within {step.within:g} s; last seen: {seen}",
                )
                return False
    note("held")
    return True


def _holds(expression: Expression) -> Callable[[dict[str, Any]], bool]:
    # Unknown is "not yet": the field it needs may still come.
    return lambda world: expression.evaluate(world) is True


def _crash_watch(context: Context, begin: int) -> Callable[[], str | None]:
    """Return a function that says how the subject ended by itself since observation `begin`, if it did."""

    def look() -> str | None:
        for seen in context.live.observations[begin:]:
            if isinstance(seen, SubjectState) and seen.state == "exited":
                return seen.detail
        return None

    return look
