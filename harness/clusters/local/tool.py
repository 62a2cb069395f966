"""Calling the programs that make such clusters: found on PATH, with a deadline, their words kept in the cluster's log."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.programs import command
from harness.programs.errors import ProgramError

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping, Sequence

CALL_SECONDS: Final = 60.0
"""For what answers at once, unless its engine hangs."""


def which(name: str) -> Path | None:
    """Return a program of PATH."""
    found = shutil.which(name)
    return None if found is None else Path(found)


def program(name: str) -> str:
    """Return the path of a program of PATH. Raises ClusterError when there is none."""
    found = which(name)
    if found is None:
        msg = f"There is no {name} on PATH."
        raise ClusterError(msg)
    return str(found)


def call(
    argv: Sequence[str],
    *,
    what: str,
    within: float = CALL_SECONDS,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
    cancelled: threading.Event | None = None,
) -> str:
    """Run a program and return what it printed; `what` completes "… failed". Blocks.

    Raises ClusterError with its last words, or when it took longer than `within` seconds.
    """
    env = None if environment is None else {**os.environ, **environment}
    try:
        said = command.run(argv, environment=env, within=within, cancelled=cancelled)
    except OSError as error:
        msg = f"{argv[0]} cannot be run: {error.strerror}."
        raise ClusterError(msg) from error
    except ProgramError as error:
        msg = f"{what} was given up: it is not wanted any more."
        raise ClusterError(msg) from error
    where = ""
    if log is not None and log.parent.is_dir():
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(argv)}\n{said.output}\n{said.errors}\n")
        where = f" (log: {log})"
    if said.late:
        msg = f"{what} took longer than {within:.0f} s and was ended; last words: {said.last_words}{where}."
        raise ClusterError(msg)
    if said.code:
        msg = f"{what} failed: {said.last_words}{where}."
        raise ClusterError(msg)
    return said.output
