"""Where programs and toolchains are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from harness.programs.errors import ProgramError

CACHE_VARIABLE: Final = "DRILL_CACHE_DIR"
APPLICATION: Final = "rollout-drill"


def cache_root() -> Path:
    """Return the folder of programs and toolchains: `DRILL_CACHE_DIR`, or the user's cache.

    `binaries/` has the control planes, `programs/` what is built from a module at a version, `modules/` single files of
    modules, `toolchains/` Go.
    """
    import platformdirs

    given = os.environ.get(CACHE_VARIABLE)
    folder = Path(given) if given else platformdirs.user_cache_path(APPLICATION)
    return folder.expanduser().absolute()


def make_folder(folder: Path) -> Path:
    """Make a folder for this user alone; ProgramError names it when that fails."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot make the folder {folder}: {error.strerror}."
        raise ProgramError(msg) from error
    return folder


def python_path() -> str:
    """Return the PYTHONPATH with which a child process finds this very package, wherever it stands."""
    package = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
