"""The bundled controller under a profiler: `python -m harness.bench.profiled FOLDER --from-stdin`.

Every SIGUSR1 writes what has been profiled since the last one to FOLDER/<number>.prof, counted from 1, and begins anew. The clock is the
process' CPU time: waiting costs nothing in it, and neither does what else the machine does.
"""

from __future__ import annotations

import cProfile
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.controller.__main__ import main

if TYPE_CHECKING:
    from types import FrameType


class Profiler:
    """Profiles this process, in pieces."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._profile = cProfile.Profile(time.process_time)

    def run(self, arguments: list[str]) -> int:
        """Run the controller; return its exit code."""
        signal.signal(signal.SIGUSR1, self._dump)
        self._profile.enable()
        try:
            return main(arguments)
        finally:
            self._profile.disable()

    def _dump(self, _number: int, _frame: FrameType | None) -> None:
        self._profile.disable()
        self._number += 1
        draft = self._folder / f"{self._number}.draft"
        self._profile.dump_stats(draft)
        draft.rename(draft.with_suffix(".prof"))
        self._profile.clear()
        self._profile.enable()


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    sys.exit(Profiler(Path(folder)).run(rest))
