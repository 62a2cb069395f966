"""`wait`: let time pass. A condition in `until` is nearly always the better choice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.scenario import WaitStep
    from harness.run.verbs.context import Context


async def act(_context: Context, action: WaitStep) -> None:
    """Wait for the given seconds; what happens meanwhile is recorded as ever."""
    await asyncio.sleep(action.seconds)
