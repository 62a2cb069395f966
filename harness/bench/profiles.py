"""Profiles of the bundled controller: a subject that makes them, and the tables that come of them."""

from __future__ import annotations

import asyncio
import os
import pstats
import re
import signal
from typing import TYPE_CHECKING, Any, Final

from harness.bench.model import Profile, ProfileRow
from harness.subjects.base import SubjectError
from harness.subjects.bundled import Bundled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ROWS: Final = 20
WRITTEN_WITHIN: Final = 20.0
"""Seconds for a profile to be written; a busy controller gets to it between two steps of its own."""
POLL_SECONDS: Final = 0.05
_PLACE: Final = re.compile(r"^.*/site-packages/|^.*/lib/python\d+\.\d+/|^.*?/(?=harness/)")
_OURS: Final = "harness/"

Function = tuple[str, int, str]
"""File, line and name, as pstats has them."""
Cost = tuple[int, int, float, float, Any]
"""Calls without recursion, calls, own and whole seconds, callers."""


class ProfiledBundled(Bundled):
    """The subject `bundled` under a profiler, which makes it slower."""

    folder: Path
    """Where the profiles go for a moment; set before it is started."""

    def __init__(self) -> None:
        super().__init__()
        self._written = 0

    def _module(self) -> list[str]:
        # A process that is started anew counts its files anew.
        self._written = 0
        return ["harness.bench.profiled", str(self.folder)]

    async def take(self, processes: Iterable[int], stage: str) -> Profile:
        """Return the profile since the last time; `processes` are its process numbers.

        Raises SubjectError when it is not written in time.
        """
        self._written += 1
        file = self.folder / f"{self._written}.prof"
        for pid in processes:
            os.kill(pid, signal.SIGUSR1)
        waited = 0.0
        while not file.exists():
            if waited > WRITTEN_WITHIN:
                msg = f"the bundled controller wrote no profile of {stage} within {WRITTEN_WITHIN:g} s"
                raise SubjectError(msg)
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        costs: Mapping[Function, Cost] = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
        file.unlink()
        return table(stage, costs)


def table(stage: str, costs: Mapping[Function, Cost]) -> Profile:
    """Return the tables of a profile: `ROWS` functions by own time, and as many of this package by whole time."""
    rows = [
        ProfileRow(name_of(function), cost[1], cost[2], cost[3]) for function, cost in costs.items()
    ]
    own = sorted(rows, key=lambda row: (-row.own, row.function))
    ours = [row for row in own if row.function.startswith(_OURS)]
    whole = sorted(ours, key=lambda row: (-row.whole, row.function))
    return Profile(stage, sum(row.own for row in rows), tuple(own[:ROWS]), tuple(whole[:ROWS]))


def name_of(function: Function) -> str:
    """Return a function's name with its module's place in the package that it belongs to, without folders of this machine."""
    file, line, name = function
    if line == 0:
        return name.strip("<>")
    return f"{_PLACE.sub('', file)}:{line} {name}"
