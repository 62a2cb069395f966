"""What is remembered about a cluster that another tool made for us: `<state>/local/KIND/NAME/record.json`, and its kubeconfig beside it.

Written before the tool is called, so that a crash at any moment leaves something to clean by.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from harness.clusters.embedded.paths import make_folder, state_root
from harness.clusters.embedded.records import (
    check_name,
    is_alive,
    this_process,
    write_private,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """One cluster, as it was asked for."""

    kind: str
    """`kind` or `k3s`."""
    name: str
    """As the tool knows it, too."""
    nodes: int
    """Nodes that take pods."""
    tool: str
    """The program that makes and deletes it: kind, k3d or k3s."""
    owner_pid: int
    """The process that made it."""
    owner_started: float
    owner_bound: bool
    """Whether it goes when its owner goes."""
    ready: bool = False
    """Whether it has been ready; before that it is still being made."""
    found: bool = False
    """Whether it was there before, made by somebody else: such a one is used, and never deleted."""
    images: list[str] = field(default_factory=list)
    """Names of the images that were loaded into it, each with a digest of its archive."""
    created: float = field(default_factory=time.time)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells it from a later cluster of the same name."""

    @property
    def folder(self) -> Path:
        """Our own folder of it."""
        return state_root() / "local" / self.kind / self.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, mode 0600; the user's own file is never touched."""
        return self.folder / "kubeconfig"

    @property
    def log(self) -> Path:
        """What the tool said."""
        return self.folder / "tool.log"

    @property
    def title(self) -> str:
        """How messages name it: `kind:NAME`."""
        return f"{self.kind}:{self.name}"

    @property
    def owner_alive(self) -> bool:
        """Whether the process that made it still runs."""
        return is_alive(self.owner_pid, self.owner_started)


def new(kind: str, name: str, nodes: int, tool: str, *, bound: bool, found: bool = False) -> Record:
    """Return a record that this process owns. Raises ChoiceError for a name that is none."""
    pid, started = this_process()
    return Record(kind, check_name(name), nodes, tool, pid, started, bound, found=found)


def write(record: Record) -> None:
    """Write a record for this user alone, all of it or nothing. Raises ClusterError."""
    folder = make_folder(record.folder)
    write_private(folder / "record.json", json.dumps(asdict(record), indent=1))


def read(kind: str, name: str) -> Record | None:
    """Return a record; None when there is none, or none that can be understood."""
    path = state_root() / "local" / kind / check_name(name) / "record.json"
    try:
        return Record(**json.loads(path.read_text("utf-8")))
    except (OSError, TypeError, ValueError):
        return None


def read_all(*kinds: str) -> list[Record]:
    """Return all records of these kinds, by kind and name."""
    found: list[Record] = []
    for kind in kinds:
        folder = state_root() / "local" / kind
        names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        found += [record for name in names if (record := read(kind, name)) is not None]
    return found


def forget(record: Record) -> None:
    """Remove our folder of it."""
    shutil.rmtree(record.folder, ignore_errors=True)
