"""`--out DIR`: can reports go there?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness.cli.errors import UsageProblemError

if TYPE_CHECKING:
    from pathlib import Path


def check_out(out: Path, report: str | None) -> None:
    """Raise UsageProblemError when no reports can go to `out`: better now than after minutes of drills.

    `report` is the name of the file that says that another run's are there already; None: those may be replaced.
    """
    if report is not None and (out / report).exists():
        msg = f"--out {out}: holds the report of another run; choose another folder"
        raise UsageProblemError(msg)
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "cannot be written" if there.is_dir() else "is a file"
        msg = f"--out {out}: {there} {why}; choose another folder"
        raise UsageProblemError(msg)
