"""The journal: what this run is about to create, written and synced to disk before it is created.

One JSON-lines file per run in the state folder. A run that ends well removes its file; what a killed run left is read again by
`drill sweep`. Lines: `run` (once, how to reach the cluster), `make` (before a creation), `made` (with the UID, after it), `gone`.
Only announcements must be on disk before anything goes on: a `made` that a power cut takes away is made up for by the object's label,
a `gone` by looking.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from harness.clusters.embedded.records import is_alive, this_process
from harness.kube.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

STATE_DIR_VARIABLE: Final = "DRILL_STATE_DIR"


def state_dir() -> Path:
    """Return the folder for journals and warm clusters (`DRILL_STATE_DIR`, else the user's state folder)."""
    given = os.environ.get(STATE_DIR_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_state_dir("rollout-drill"))


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Which object: enough to find it again without discovery."""

    group: str
    version: str
    plural: str
    kind: str
    name: str
    namespace: str | None = None

    @property
    def label(self) -> str:
        """`Kind name` or `Kind namespace/name`, for messages."""
        return (
            f"{self.kind} {self.namespace}/{self.name}"
            if self.namespace
            else f"{self.kind} {self.name}"
        )

    @property
    def resource(self) -> Resource:
        """The object's type."""
        return Resource(
            self.group, self.version, self.plural, self.kind, self.namespace is not None
        )


@dataclass(slots=True)
class Entry:
    """An object of the journal."""

    key: ObjectKey
    drill: str
    """Label value of the drill it was made for; empty for what the whole run shares."""
    uid: str = ""
    """Empty when the run was killed between announcing and creating it."""


@dataclass(slots=True)
class Reach:
    """How the run reached its cluster."""

    run: str
    cluster: str
    kubeconfig: str
    context: str | None
    pid: int
    pid_started: float
    """Start time of that process, since pids are used again."""

    def alive(self) -> bool:
        """Whether the run's process still exists."""
        return is_alive(self.pid, self.pid_started)


@dataclass(slots=True)
class Journal:
    """The journal of one cluster of one run, open for writing."""

    path: Path
    reach: Reach
    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def open(cls, run: str, cluster: str, kubeconfig: Path, context: str | None) -> Journal:
        """Start the journal of `run` on `cluster`.

        Raises OSError when the state folder cannot be written; then nothing may be created.
        """
        folder = state_dir() / "journals"
        folder.mkdir(parents=True, exist_ok=True)
        reach = Reach(run, cluster, str(kubeconfig), context, *this_process())
        journal = cls(folder / f"{run}.{cluster}.jsonl", reach)
        journal._append([{"run": _plain(reach)}], sync=True)
        return journal

    def make(self, key: ObjectKey, drill: str = "") -> Entry:
        """Announce that `key` is about to be created; returns once the line is on disk."""
        return self.make_all([key], drill)[0]

    def make_all(self, keys: Sequence[ObjectKey], drill: str = "") -> list[Entry]:
        """Announce several objects; returns once all lines are on disk."""
        entries = [Entry(key, drill) for key in keys]
        self.entries += entries
        self._append([{"make": _plain(key), "for": drill} for key in keys], sync=True)
        return entries

    def made(self, entry: Entry, uid: str) -> None:
        """Note the UID that the API server gave the object."""
        if entry.uid != uid:
            entry.uid = uid
            self._append([{"made": _plain(entry.key), "uid": uid}])

    def gone(self, *entries: Entry) -> None:
        """Note that the objects do not exist (any more)."""
        keys = {entry.key for entry in entries}
        self.entries[:] = [entry for entry in self.entries if entry.key not in keys]
        self._append([{"gone": _plain(entry.key)} for entry in entries])

    def close(self) -> None:
        """Remove the file when nothing is left in it; otherwise it stays for `drill sweep`."""
        if not self.entries:
            self.path.unlink(missing_ok=True)

    def pointless(self) -> bool:
        """Whether the way to the cluster is gone: an embedded cluster that was removed took everything with it."""
        return not Path(self.reach.kubeconfig).exists()

    def discard(self) -> None:
        """Remove the file, whatever is in it."""
        self.path.unlink(missing_ok=True)

    def _append(self, rows: Iterable[dict[str, Any]], *, sync: bool = False) -> None:
        # Written at once in any case: what the system has survives a SIGKILL. Synced, it survives a power cut too.
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
            if sync:
                file.flush()
                os.fsync(file.fileno())


def _plain(value: ObjectKey | Reach) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def read(path: Path) -> Journal | None:
    """Read a journal back; None when it has no usable first line (killed while it was being written)."""
    journal: Journal | None = None
    entries: dict[ObjectKey, Entry] = {}
    for row in _rows(path):
        if "run" in row:
            journal = Journal(path, Reach(**row["run"]))
        elif journal is None:
            return None
        elif "make" in row:
            key = ObjectKey(**row["make"])
            entries[key] = Entry(key, row.get("for", ""))
        elif "made" in row:
            if (entry := entries.get(ObjectKey(**row["made"]))) is not None:
                entry.uid = row["uid"]
        elif "gone" in row:
            entries.pop(ObjectKey(**row["gone"]), None)
    if journal is not None:
        journal.entries += entries.values()
    return journal


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            # A line cut off by a kill is the last one; what it would have said did not happen yet.
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


def all_journals() -> list[Journal]:
    """Return every readable journal of the state folder, oldest first."""
    folder = state_dir() / "journals"
    found = (read(path) for path in sorted(folder.glob("*.jsonl")))
    return [journal for journal in found if journal is not None]
