"""How many requests the subject makes, counted from the API server's audit log.

The independent witness that a subject looked at its rollouts, or left them alone: it does not rest on what the subject says.
Counting is a pure fold over the log's events; around it is a file that is read as it grows.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from harness.model.timeline import Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from harness.model.timeline import JSON, RolloutKind

POLL_SECONDS: Final = 0.25
"""Between two looks at the file. Reading what was appended costs some microseconds, and no library here tells when a file grows."""
EVERY_SECONDS: Final = 0.5
"""The shortest time between two observations."""
PER_ROLLOUT_SECONDS: Final = 0.005
"""What each rollout adds to that: with hundreds of them a line of the timeline is long, and seldom enough is often enough."""
_READS: Final = frozenset({"get", "list", "watch"})
_CANARY: Final = "-canary"
_BAD: Final = 400


@dataclass(slots=True)
class Counts:
    """What one subject has asked for."""

    total: int = 0
    watches: int = 0
    rollouts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name of a rollout object -> reads and writes."""

    def add(self, event: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Count one event of the log; `names` leads from an object's name to that of its rollout."""
        verb, stage = event.get("verb"), event.get("stage")
        if verb == "watch":
            # Logged when it began and when it ended; one that was refused has no beginning.
            code = (event.get("responseStatus") or {}).get("code") or 0
            self.watches += stage == "ResponseStarted" or code >= _BAD
            return
        if stage not in {"ResponseComplete", "Panic"}:
            return
        self.total += 1
        rollout = names.get((event.get("objectRef") or {}).get("name") or "")
        if rollout is not None:
            reads, writes = self.rollouts.get(rollout, (0, 0))
            read = verb in _READS
            self.rollouts[rollout] = (reads + read, writes + (not read))

    def observation(self, t: float) -> Requests:
        """Return the counts as they are now."""
        return Requests(t, dict(self.rollouts), self.total, self.watches)


def names_of(rollouts: Iterable[JSON], kind: RolloutKind) -> dict[str, str]:
    """Return which rollout an object's name belongs to: its own, its target's, its primary's and its canary Service's."""
    own: dict[str, str] = {}
    derived: dict[str, str] = {}
    for rollout in rollouts:
        name = str(rollout["metadata"]["name"])
        target = str(_at(rollout, kind.target_path) or name)
        own[name] = own[target] = name
        for suffix in (kind.primary_suffix, _CANARY):
            derived[f"{target}{suffix}"] = name
    # What somebody has called `web-canary` is that, and not a part of `web`.
    return {**derived, **own}


def _at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


class Tail:
    """The lines that are appended to a file, also when it is put aside and another one begun; the file may come later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def skip(self) -> None:
        """Pass over everything that is there by now, without reading what may be megabytes of other drills."""
        if self._file is None and not self._open():
            return
        if self._replaced():
            self.close()
            self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        """Yield each line that was completed since the last call."""
        while True:
            if self._file is None and not self._open():
                return
            assert self._file is not None  # noqa: S101 - opened above
            # Looked at first: what is appended until a file is put aside is read then, and nothing is appended afterwards.
            replaced = self._replaced()
            *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
            yield from whole
            if not replaced:
                return
            self.close()

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _open(self) -> bool:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            return False
        return True

    def _replaced(self) -> bool:
        assert self._file is not None  # noqa: S101 - asked for an open file only
        mine = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False  # the next one is not begun yet
        return mine.st_ino != there.st_ino


class AuditTrail:
    """Turns an audit log into observations of what the current subject has asked for since it was started.

    `sink` takes them, `clock` gives the seconds since the drill's time zero.
    """

    def __init__(
        self,
        path: Path,
        names: Mapping[str, str],
        sink: Callable[[Requests], object],
        clock: Callable[[], float],
    ) -> None:
        self._tail = Tail(path)
        self._names = names
        self._sink = sink
        self._clock = clock
        self._name, self._user = "", b""
        self._counts = Counts()
        self._told = Counts()
        self._next = 0.0

    def begin(self, namespace: str, service_account: str) -> None:
        """Count for this service account from now on: it is about to be started."""
        self.flush()
        self._tail.skip()
        self._name = f"system:serviceaccount:{namespace}:{service_account}"
        self._user = json.dumps(self._name).encode()
        self._counts = Counts()
        self._tell()

    def flush(self) -> None:
        """Read what there is, and tell what has not been told."""
        self._read()
        if self._user and self._counts != self._told:
            self._tell()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            self._read()
            if self._counts != self._told and _now() >= self._next:
                self._tell()

    def close(self) -> None:
        """Close the log's file."""
        self._tail.close()

    def _read(self) -> None:
        if not self._user:
            return
        for line in self._tail.lines():
            # Most lines are other subjects'; looking into them all would cost more than counting.
            if self._user in line:
                event = json.loads(line)
                if (event.get("user") or {}).get("username") == self._name:
                    self._counts.add(event, self._names)

    def _tell(self) -> None:
        now = self._counts
        self._told = Counts(now.total, now.watches, dict(now.rollouts))
        self._next = _now() + EVERY_SECONDS + PER_ROLLOUT_SECONDS * len(now.rollouts)
        self._sink(now.observation(self._clock()))


def _now() -> float:
    return asyncio.get_running_loop().time()
