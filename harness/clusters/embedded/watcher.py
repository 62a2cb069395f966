"""Deletes an embedded cluster when the process that made it is gone: `python -m harness.clusters.embedded.watcher NAME ID`.

Its standard input is a pipe whose other end only that process holds. When it closes, however the process ended, the
cluster is deleted. It lives in a session of its own, so that Ctrl-C and signals to a group of processes miss it, and ends
by itself when the cluster was deleted by somebody else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.programs.paths import python_path

if TYPE_CHECKING:
    from harness.clusters.embedded.records import Record

POLL_SECONDS: Final = 5.0
"""How soon it sees that the cluster was deleted by somebody else."""
END_SECONDS: Final = 10.0
DISMISSED: Final = b"."


@dataclass(slots=True)
class Watcher:
    """A watcher of a cluster of this process."""

    process: subprocess.Popen[bytes]
    pipe: int
    """The end that must stay open for as long as the cluster is wanted."""

    def dismiss(self) -> None:
        """Tell it that its cluster is deleted, and wait for its end."""
        with contextlib.suppress(OSError):
            os.write(self.pipe, DISMISSED)
        os.close(self.pipe)
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def watch(record: Record) -> Watcher:
    """Start a watcher for a cluster."""
    reading, writing = os.pipe()
    try:
        with (record.folder / "watcher.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, record.name, record.id],
                stdin=reading,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "PYTHONPATH": python_path(), "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
            )
    except OSError as error:
        os.close(writing)
        msg = (
            f"The watcher of embedded cluster {record.name!r} cannot be started: {error.strerror}."
        )
        raise ClusterError(msg) from error
    finally:
        os.close(reading)
    return Watcher(process, writing)


def main(name: str, identity: str) -> None:
    """Wait for the end of the pipe, then delete the cluster if it is still the same one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pipe = sys.stdin.fileno()
    while True:
        readable, _, _ = select.select([pipe], [], [], POLL_SECONDS)
        if readable:
            if os.read(pipe, 1) == DISMISSED:
                return
            break
        if not _is_there(name, identity):
            return
    if _is_there(name, identity):
        from harness.clusters.embedded import cluster

        cluster.down(name)


def _is_there(name: str, identity: str) -> bool:
    from harness.clusters.embedded import records

    record = records.read(name)
    return record is not None and record.id == identity


if __name__ == "__main__":
    main(*sys.argv[1:])
