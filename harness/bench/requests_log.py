"""The requests of one subject, read from the API server's audit log while that is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.bench.audit import read_line
from harness.run.audit import Tail

if TYPE_CHECKING:
    from pathlib import Path

    from harness.bench.audit import Sent


class RequestsLog:
    """Everything that one user has sent so far."""

    def __init__(self, path: Path, user: str) -> None:
        self.sent: list[Sent] = []
        self._tail = Tail(path)
        self._user = user

    def read(self) -> None:
        """Take in what was written since the last time; often enough, since a log that is rotated twice in between has a hole."""
        for line in self._tail.lines():
            sent = read_line(line, self._user)
            if sent is not None:
                self.sent.append(sent)

    def close(self) -> None:
        """Close the file."""
        self._tail.close()
