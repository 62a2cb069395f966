"""Where the embedded cluster keeps its state, and the locks of this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from harness.clusters.base import ClusterError
from harness.programs import paths as programs
from harness.programs.errors import ProgramError
from harness.programs.paths import APPLICATION

STATE_VARIABLE: Final = "DRILL_STATE_DIR"


def state_root() -> Path:
    """Return the folder of all clusters of this user: `DRILL_STATE_DIR`, or the user's state.

    It is one for all of them, because kwokctl knows the ports of one folder's clusters only.
    """
    import platformdirs

    given = os.environ.get(STATE_VARIABLE)
    folder = Path(given) if given else platformdirs.user_state_path(APPLICATION)
    return folder.expanduser().absolute()


def creation_lock() -> Path:
    """Return the lock under which clusters are created, whatever their folder: ports are shared."""
    folder = make_folder(Path(tempfile.gettempdir()) / f"{APPLICATION}-{os.getuid()}")
    if folder.stat().st_uid != os.getuid():
        msg = f"The folder {folder} belongs to somebody else; remove it, or set TMPDIR."
        raise ClusterError(msg)
    return folder / "creation.lock"


def make_folder(folder: Path) -> Path:
    """Make a folder for this user alone; ClusterError names it when that fails."""
    try:
        return programs.make_folder(folder)
    except ProgramError as error:
        raise ClusterError(str(error)) from error
