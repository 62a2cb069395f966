"""`handback`: the way back from the bundled controller, which a step before has stopped, to a Flagger."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from harness.handback.carry_out import hand_back
from harness.handback.program import obtain, version_of
from harness.handback.text import summary
from harness.handback.told import HandbackError, ask
from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from harness.model.scenario import HandbackStep
    from harness.run.verbs.context import Context


async def act(context: Context, action: HandbackStep) -> str:
    """Write the statuses; return how many, and what that Flagger will do.

    Raises RefusedError, also when the bundled controller still runs: it rewrites them.
    """
    try:
        # Built before the drill began; only its path is asked for here.
        program = await obtain(version_of(action.to), context.say)
        asking = functools.partial(ask, program)
        result = await hand_back(context.client, context.namespace, action.to, asking, apply=True)
    except HandbackError as error:
        raise RefusedError(str(error)) from error
    return f"{len(result.written)} statuses written. {summary(result)}"
