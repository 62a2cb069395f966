"""Building programs: slow once, shared by all processes, resumed where it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.programs import golang, toolchain
from harness.programs.cache import check_cancelled, full_disk
from harness.programs.errors import ProgramError

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from harness.programs.cache import Cache, Progress
    from harness.programs.command import Said


@dataclass(frozen=True, slots=True)
class Program:
    """One program, as it is built in the folder of a go.mod."""

    name: str
    """Its file name in the cache."""
    version: str
    folder: Path
    package: str
    seconds: int
    """What building it takes on two cores with nothing cached, after those before it."""
    linker_flags: str = "-s -w"
    flags: tuple[str, ...] = ()
    """Further flags of `go build`."""
    architecture: str = ""
    """What it is to run on, as Go calls it; this machine unless given."""

    @property
    def label(self) -> str:
        """The program as progress and errors name it, e.g. `kwok v0.8.0`."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Order:
    """What several builds have in common."""

    needed_go: tuple[int, ...]
    what: str
    """Completes "Another process …" while somebody else builds, e.g. `is building the control plane`."""
    of: str
    """Completes "Building 6 programs …", e.g. `of the embedded cluster`."""
    otherwise: str
    """What the user can do instead of installing Go."""


def build(
    cache: Cache,
    wanted: Sequence[Program],
    order: Order,
    progress: Progress,
    cancelled: threading.Event | None = None,
) -> None:
    """Build those of the wanted programs that the cache lacks. Raises ProgramError.

    Each is kept as soon as it is complete. Two processes share one build: the second waits for the first, says so, and
    goes on with what is still lacking.
    """
    if all(cache.find(program.name) for program in wanted):
        return
    with cache.lock(progress, order.what, cancelled):
        missing = [program for program in wanted if not cache.find(program.name)]
        if not missing:
            return
        go = toolchain.find(order.needed_go, progress, cancelled, otherwise=order.otherwise)
        if len(missing) > 1:
            total = golang.minutes(sum(program.seconds for program in missing))
            progress(
                f"Building {len(missing)} programs {order.of} from source, once: up to {total} on two cores, "
                "seconds where Go has them cached."
            )
        for program in missing:
            check_cancelled(cancelled)
            began = time.monotonic()
            progress(f"Building {program.label} (about {golang.minutes(program.seconds)}).")
            said = compile_one(go, cache, program, progress, cancelled)
            if said.code != 0:
                raise failure(cache, program, said)
            cache.keep(program.name)
            progress(f"Built {program.label} in {time.monotonic() - began:.0f} s.")


def compile_one(
    go: Path,
    cache: Cache,
    program: Program,
    progress: Progress,
    cancelled: threading.Event | None,
) -> Said:
    """Compile one program into its draft in the cache, under the cache's lock. Raises CancelledError only."""
    draft = cache.draft(program.name)
    arguments = ["build", *program.flags, "-ldflags", program.linker_flags]
    return golang.run(
        go,
        [*arguments, "-o", str(draft), program.package],
        folder=program.folder,
        label=f"Building {program.label}",
        seconds=program.seconds,
        progress=progress,
        cancelled=cancelled,
        architecture=program.architecture,
    )


def failure(cache: Cache, program: Program, said: Said) -> ProgramError:
    """Return the error for a build that failed; its draft is gone."""
    draft = cache.draft(program.name)
    draft.unlink(missing_ok=True)
    if said.disk_was_full:
        return full_disk(draft)
    return ProgramError(f"{program.label} cannot be built: {said.last_words}")
