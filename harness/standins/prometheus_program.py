"""Where a Prometheus comes from: the one that is named or found, or Debian's package, unpacked and never installed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.programs.cache import Cache, check_cancelled
from harness.programs.errors import ProgramError
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    import threading

    from harness.programs.cache import Progress

VARIABLE: Final = "DRILL_PROMETHEUS"
PROGRAM: Final = "prometheus"
_INSIDE: Final = Path("usr", "bin", PROGRAM)
_WITHIN: Final = 300.0
"""Seconds for the download of a package of some twenty megabytes."""
_VERSION: Final = re.compile(r"version (\d+\.\d+\.\d+)")
_LAST: Final = 200


def obtain(progress: Progress, cancelled: threading.Event | None = None) -> Path:
    """Return the path of a Prometheus. Raises ProgramError, which says what could be done."""
    given = os.environ.get(VARIABLE)
    if given:
        path = Path(given).expanduser()
        if not path.is_file() or not os.access(path, os.X_OK):
            msg = f"{VARIABLE} is {given!r}, which is no program."
            raise ProgramError(msg)
        return path
    found = shutil.which(PROGRAM)
    if found:
        return Path(found)
    cache = Cache(cache_root() / "programs" / PROGRAM)
    return cache.find(PROGRAM) or _unpacked(cache, progress, cancelled)


def version(program: Path) -> str:
    """Return its version, e.g. `2.42.0`; an empty text when it does not say."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(done.stdout + done.stderr)
    return found[1] if found else ""


def _unpacked(cache: Cache, progress: Progress, cancelled: threading.Event | None) -> Path:
    hint = f"install it, or name one with {VARIABLE}=FILE"
    tools = [shutil.which(name) for name in ("apt-get", "dpkg-deb")]
    if None in tools or not _debian():
        msg = f"There is no prometheus on PATH, and this is not Debian, whose package could be unpacked; {hint}."
        raise ProgramError(msg)
    with cache.lock(progress, "is unpacking Prometheus", cancelled):
        known = cache.find(PROGRAM)
        if known is not None:
            return known
        progress(
            "Unpacking Debian's package prometheus for the drills' metrics; it is not installed."
        )
        check_cancelled(cancelled)
        with tempfile.TemporaryDirectory(dir=cache.folder) as folder:
            _run(["apt-get", "-q", "download", PROGRAM], folder, hint)
            check_cancelled(cancelled)
            (package,) = Path(folder).glob("*.deb")
            _run(["dpkg-deb", "-x", package.name, "unpacked"], folder, hint)
            shutil.copyfile(Path(folder, "unpacked") / _INSIDE, cache.draft(PROGRAM))
        return cache.keep(PROGRAM)


def _debian() -> bool:
    try:
        facts = platform.freedesktop_os_release()
    except OSError:
        return False
    return "debian" in (facts.get("ID", ""), *facts.get("ID_LIKE", "").split())


def _run(argv: list[str], folder: str, hint: str) -> None:
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, timeout=_WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"Debian's package prometheus cannot be had: {argv[0]}: {error}; {hint}."
        raise ProgramError(msg) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:_LAST]
        msg = f"Debian's package prometheus cannot be had: {argv[0]}: {last}; {hint} (apt-get update may help)."
        raise ProgramError(msg)
