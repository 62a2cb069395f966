"""A folder of programs: each is there whole or not at all, and one process at a time adds to it."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.programs.errors import CancelledError, ProgramError
from harness.programs.paths import make_folder

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

Progress = Callable[[str], None]
"""Takes one line for the person who waits, without a newline."""

_NOTICE_SECONDS: Final = 15.0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Cache:
    """One folder with some or all of the programs; each is there whole, or not at all."""

    folder: Path

    def find(self, name: str) -> Path | None:
        """Return the path of a program that is there and can be run."""
        path = self.folder / name
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size and os.access(path, os.X_OK):
                return path
        return None

    def draft(self, name: str) -> Path:
        """Return where to write a program before it is complete."""
        return make_folder(self.folder) / f".{name}.draft"

    def keep(self, name: str) -> Path:
        """Take the draft of a program in, at once."""
        draft, path = self.draft(name), self.folder / name
        with disk_errors(path):
            draft.chmod(0o755)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(path)
        return path

    def drop_drafts(self) -> None:
        """Remove what an earlier attempt left half-written; only under the lock."""
        for draft in self.folder.glob(".*.draft"):
            draft.unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(
        self, progress: Progress, what: str, cancelled: threading.Event | None = None
    ) -> Iterator[None]:
        """Hold the folder alone among all processes of this machine; says that it waits, and for what.

        `what` completes "Another process …", e.g. `is building the control plane`. Raises CancelledError.
        """
        import filelock

        lock = filelock.FileLock(make_folder(self.folder) / ".lock")
        began = told = time.monotonic()
        waited = False
        while True:
            try:
                lock.acquire(timeout=0 if not waited else 0.5)
                break
            except filelock.Timeout:
                check_cancelled(cancelled)
                now = time.monotonic()
                if not waited or now - told > _NOTICE_SECONDS:
                    told = now
                    progress(
                        f"Another process {what}; waiting for it ({now - began:.0f} s so far)."
                    )
                waited = True
        try:
            self.drop_drafts()
            yield
        finally:
            lock.release()


def check_cancelled(cancelled: threading.Event | None) -> None:
    """Raise CancelledError when whoever wanted the programs does not want them any more."""
    if cancelled is not None and cancelled.is_set():
        msg = "Getting the programs was cancelled."
        raise CancelledError(msg)


def full_disk(path: Path) -> ProgramError:
    """Return the error for a full disk."""
    return ProgramError(
        f"The disk of {path.parent} is full: the programs of the embedded cluster need about 0.5 GB, each Flagger 0.1 GB, "
        "and building them about 5 GB; make room, or set DRILL_CACHE_DIR to a folder on another disk."
    )


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an error of the disk into one sentence that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise full_disk(path) from error
        msg = f"Cannot read or write {path}: {error.strerror or error}."
        raise ProgramError(msg) from error
