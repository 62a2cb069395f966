"""The stages of one subject, opened and closed: what was used and seen between the two becomes figures."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.bench import audit, figures, population
from harness.bench.model import Load, Profile, Stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.bench.figures import Change
    from harness.bench.following import Following
    from harness.bench.machine import Machine
    from harness.bench.meter import Meter
    from harness.bench.requests_log import RequestsLog

SETTLE: Final = float(population.INTERVAL)
"""Seconds of rest after a stage: what is due at the next tick has happened by then, and counts as the stage's doing."""


@dataclass(slots=True)
class Open:
    """A stage under way."""

    name: str
    begin: float
    """The event loop's time."""
    wall: float
    """Seconds since the epoch, as the audit log has them."""
    changes: dict[str, Change] = field(default_factory=dict)
    ended: int = 0
    starts: int = 0
    looked: int | None = None
    looked_after: tuple[float, ...] = ()
    writes: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return asyncio.get_running_loop().time() - self.begin


@dataclass(slots=True)
class Ledger:
    """Turns what the instruments show into the figures of a stage."""

    meter: Meter
    machine: Machine
    log: RequestsLog
    following: Following
    profile: Callable[[str], Awaitable[Profile | None]]
    stages: list[Stage] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)

    async def begin(self, name: str) -> Open:
        """Begin a stage."""
        # What was profiled in between, loading the program above all, belongs to no stage.
        await self.profile(name)
        self.meter.reset()
        self.machine.reset()
        return Open(name, asyncio.get_running_loop().time(), time.time())

    async def end(self, stage: Open, phase: str = "", *, settle: float = SETTLE) -> None:
        """End a stage, of which every object was to be in `phase`; then let the subject rest."""
        end, wall = stage.begin + stage.seconds, time.time()
        usage = self.meter.usage()
        used = self.machine.used(usage.cpu)
        board = self.following.board
        if (profile := await self.profile(stage.name)) is not None:
            self.profiles.append(profile)
        await self.following.rest(settle)
        self.log.read()
        changes = stage.changes
        acknowledged = max((change.acknowledged for change in changes.values()), default=None)
        later = asyncio.get_running_loop().time()
        self.stages.append(
            Stage(
                name=stage.name,
                seconds=end - stage.begin,
                ended=stage.ended,
                unasked=figures.unasked(board, stage.begin, later, changes),
                requests=audit.count(audit.within(self.log.sent, stage.wall, wall)),
                usage=usage,
                machine=tuple(Load(name, cpu) for name, cpu in used.items()),
                changed=None if acknowledged is None else acknowledged - stage.begin,
                detection=figures.detection(board, changes),
                finish=figures.finish(board, changes, phase) if phase else None,
                phases=figures.phase_times(board, stage.begin, later),
                starts=stage.starts,
                looked=stage.looked,
                looked_after=stage.looked_after,
                writes_by_start=stage.writes,
                gaps=sum(stage.begin <= t <= later for t in board.gaps),
            )
        )
