"""Running the `go` command: in an environment of ours, with progress, ended when nobody waits for it any more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from harness.programs import command

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from harness.programs.cache import Progress
    from harness.programs.command import Said

NOTICE_SECONDS: Final = 10.0
FLAGS: Final = ("CGO_ENABLED=0", "-ldflags", "-s -w")
"""How programs are built. Without -trimpath, so that other builds of the same modules share Go's cache."""


def environment() -> dict[str, str]:
    """Return the environment of all `go` commands: the user's, without what would change the result."""
    changed = {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    dropped = ("GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT")
    return {name: value for name, value in os.environ.items() if name not in dropped} | changed


def run(
    go: Path,
    arguments: Sequence[str],
    *,
    folder: Path,
    label: str,
    seconds: int,
    progress: Progress,
    cancelled: threading.Event | None = None,
    architecture: str = "",
) -> Said:
    """Run `go` in a folder and wait for it to end, however it does; tells every ten seconds how long that has taken.

    `label` names what is done, e.g. `Building kwok v0.8.0`; `seconds` is what it takes usually. `architecture` is what to build
    for, as Go calls it, e.g. `arm64`; this machine's unless given. Raises CancelledError; the command has ended by then, with all
    that it started.
    """
    told = 0.0

    def waiting(passed: float) -> None:
        nonlocal told
        if passed - told >= NOTICE_SECONDS:
            told = passed
            progress(f"{label}: {passed:.0f} s of about {seconds} s.")

    return command.run(
        [str(go), *arguments],
        folder=folder,
        environment=environment() | ({"GOARCH": architecture} if architecture else {}),
        waiting=waiting,
        cancelled=cancelled,
    )


def minutes(seconds: int) -> str:
    """Return a time that something takes, for people."""
    return f"{seconds} s" if seconds < 90 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - a minute and a half
