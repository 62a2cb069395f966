"""Running the `go` command: in an environment of ours, with progress, ended when nobody waits for it any more."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.programs.cache import check_cancelled

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from harness.programs.cache import Progress

NOTICE_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.2
END_SECONDS: Final = 10.0
FLAGS: Final = ("CGO_ENABLED=0", "-ldflags", "-s -w")
"""How programs are built. Without -trimpath, so that other builds of the same modules share Go's cache."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a `go` command ended."""

    code: int
    output: str
    """The standard output of the command."""
    errors: str
    """What it wrote for people."""

    @property
    def last_words(self) -> str:
        """The end of what it said, in one line."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return " / ".join(lines[-3:]) or "go said nothing"

    @property
    def disk_was_full(self) -> bool:
        """Whether it failed because the disk is full."""
        return "no space left on device" in self.errors


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
) -> Said:
    """Run `go` in a folder and wait for it to end, however it does; tells every ten seconds how long that has taken.

    `label` names what is done, e.g. `Building kwok v0.8.0`; `seconds` is what it takes usually. Raises CancelledError; the
    command has ended by then, with all that it started.
    """
    began = told = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [str(go), *arguments],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                check_cancelled(cancelled)
                now = time.monotonic()
                if now - told >= NOTICE_SECONDS:
                    told = now
                    progress(f"{label}: {now - began:.0f} s of about {seconds} s.")
                time.sleep(POLL_SECONDS)
        finally:
            _end(process)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace").strip())
    return Said(process.returncode, *texts)


def minutes(seconds: int) -> str:
    """Return a time that something takes, for people."""
    return f"{seconds} s" if seconds < 90 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - a minute and a half


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that is not wanted any more, with the compilers that it started: they share its session."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
