"""The processes of an embedded cluster, told from all others by the path they were started from.

kwokctl trusts its pid files: after a crash or a restart of the machine they may name a process of somebody
else, which it would kill. So pid files that do not name ours are removed before kwokctl looks at them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from harness.clusters.embedded.records import Record

SITE: Final = "harness.clusters.knative.process"
"""The module of those processes of ours that belong to a cluster: `python -m MODULE NAME ID …`."""
_LOOK_SECONDS: Final = 0.05


def running(record: Record) -> dict[str, int]:
    """Return the pids of the components that run, by program name, as the pid files tell."""
    found: dict[str, int] = {}
    for file in _pid_files(record):
        pid = _read(file)
        if pid is not None and _is_ours(pid, record):
            found[file.stem] = pid
    return found


def drop_strange_pid_files(record: Record) -> None:
    """Remove pid files whose process is gone, or is not one of this cluster."""
    ours = running(record)
    for file in _pid_files(record):
        if file.stem not in ours:
            file.unlink(missing_ok=True)


def end(record: Record, names: Collection[str], seconds: float) -> list[str]:
    """End some components in an orderly way, and kill those that take longer than `seconds`; return what still runs."""
    found = {name: pid for name, pid in running(record).items() if name in names}
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in found.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while found and time.monotonic() < deadline:
            # One that has ended may stay a zombie for a while, so nothing but a look tells.
            time.sleep(_LOOK_SECONDS)
            found = {name: pid for name, pid in found.items() if _is_ours(pid, record)}
        if not found:
            break
    return [f"{name} ({pid})" for name, pid in found.items()]


def end_all(record: Record, seconds: float) -> list[str]:
    """Wait for this cluster's processes to end, kill those that have not; return what still runs.

    Looks at every process of this user, since a pid file may be missing.
    """
    processes = [process for process in psutil.process_iter() if _is_ours(process.pid, record)]
    _, alive = psutil.wait_procs(processes, timeout=seconds / 2)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _, alive = psutil.wait_procs(alive, timeout=seconds / 2)
    return [f"{_command(process.pid)[0]} ({process.pid})" for process in alive]


def _is_ours(pid: int, record: Record) -> bool:
    program, *arguments = _command(pid)
    if arguments[:4] == ["-m", SITE, record.name, record.id]:
        return True
    return program.startswith(f"{record.workdir / 'bin'}/")


def _command(pid: int) -> list[str]:
    """Return a process' command line; one empty word when it has ended."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return [""]
        return process.cmdline() or [""]
    except psutil.Error:
        return [""]


def _pid_files(record: Record) -> list[Path]:
    folder = record.workdir / "pids"
    return sorted(folder.glob("*.pid")) if folder.is_dir() else []


def _read(file: Path) -> int | None:
    try:
        return int(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
