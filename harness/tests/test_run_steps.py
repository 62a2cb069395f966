"""When a step is said to hold."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from harness.model.resolved import Step
from harness.model.timeline import Observation, StepState, SubjectState
from harness.run.live import Live
from harness.run.steps import run_steps
from harness.tests.timelines import Recording

if TYPE_CHECKING:
    from harness.run.timeline_file import TimelineFile


class _File:
    """Writes nothing down."""

    def append(self, observation: Observation) -> Observation:
        return observation


def test_what_has_arrived_already_counts_before_a_step_is_said_to_hold() -> None:
    live = Live(Recording().header(), cast("TimelineFile", _File()), time.monotonic())
    context: Any = SimpleNamespace(live=live, say=lambda _line: None, traffic=None)

    def told(detail: str) -> None:
        live.observe(SubjectState(live.now(), "looked", detail))

    async def story() -> bool:
        loop = asyncio.get_running_loop()
        # What holds comes in by one watch; what another one has at its socket is some turns of the loop behind.
        loop.call_soon(lambda: loop.call_soon(lambda: loop.call_soon(told, "behind")))
        return await run_steps(context, [Step(name="at once", until="true", within=1.0)])

    assert asyncio.run(story())
    states = [one for one in live.observations if isinstance(one, StepState | SubjectState)]
    assert [one.state for one in states] == ["started", "looked", "held"]
