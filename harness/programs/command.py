"""Running another program to its end: with a deadline, and ended with all that it started when nobody waits for it any more."""

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
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

POLL_SECONDS: Final = 0.2
"""How soon it is seen that nobody waits any more."""
END_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended."""

    code: int
    """Its exit code; below zero: it was ended by that signal."""
    output: str
    """Its standard output."""
    errors: str
    """What it wrote for people."""
    late: bool = False
    """Whether it was ended because it took too long."""

    @property
    def last_words(self) -> str:
        """The end of what it said for people, in one line."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return " / ".join(lines[-3:]) or "it said nothing"

    @property
    def disk_was_full(self) -> bool:
        """Whether it failed because the disk is full."""
        return "no space left on device" in self.errors


def run(
    argv: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    within: float | None = None,
    waiting: Callable[[float], None] | None = None,
    cancelled: threading.Event | None = None,
) -> Said:
    """Run a command and wait for it to end, however it does.

    After `within` seconds it is ended; `waiting` is told now and then for how long it has run. Raises CancelledError, and OSError
    when there is no such program; the command has ended by then, with all that it started.
    """
    began = time.monotonic()
    late = False
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(argv),
            cwd=folder,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            while process.poll() is None and not late:
                check_cancelled(cancelled)
                passed = time.monotonic() - began
                if waiting is not None:
                    waiting(passed)
                late = within is not None and passed > within
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
        finally:
            _end(process)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace").strip())
    return Said(process.returncode, texts[0], texts[1], late)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that is not wanted any more, with what it started: that shares its session."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
