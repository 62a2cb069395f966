"""Where the embedded cluster keeps its binaries and its state, and the locks of this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from harness.clusters.base import ClusterError

CACHE_VARIABLE: Final = "DRILL_CACHE_DIR"
STATE_VARIABLE: Final = "DRILL_STATE_DIR"
_APPLICATION: Final = "rollout-drill"


def cache_root() -> Path:
    """Return the folder of binaries and toolchains: `DRILL_CACHE_DIR`, or the user's cache."""
    import platformdirs

    given = os.environ.get(CACHE_VARIABLE)
    return _absolute(Path(given) if given else platformdirs.user_cache_path(_APPLICATION))


def state_root() -> Path:
    """Return the folder of all clusters of this user: `DRILL_STATE_DIR`, or the user's state.

    It is one for all of them, because kwokctl knows the ports of one folder's clusters only.
    """
    import platformdirs

    given = os.environ.get(STATE_VARIABLE)
    return _absolute(Path(given) if given else platformdirs.user_state_path(_APPLICATION))


def creation_lock() -> Path:
    """Return the lock under which clusters are created, whatever their folder: ports are shared."""
    folder = make_folder(Path(tempfile.gettempdir()) / f"{_APPLICATION}-{os.getuid()}")
    if folder.stat().st_uid != os.getuid():
        msg = f"The folder {folder} belongs to somebody else; remove it, or set TMPDIR."
        raise ClusterError(msg)
    return folder / "creation.lock"


def make_folder(folder: Path) -> Path:
    """Make a folder for this user alone; ClusterError names it when that fails."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot make the folder {folder}: {error.strerror}."
        raise ClusterError(msg) from error
    return folder


def _absolute(folder: Path) -> Path:
    return folder.expanduser().absolute()
