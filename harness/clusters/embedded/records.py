"""What is remembered about an embedded cluster: one folder each, beside kwokctl's own.

`<state>/clusters/NAME` belongs to kwokctl and goes with it; `<state>/records/NAME` is ours. The record is
written before the first process is started, so that a crash at any moment leaves something to clean by.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

import psutil

from harness.clusters.base import ChoiceError, ClusterError
from harness.clusters.embedded.paths import make_folder, state_root

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_CLOCK_SECONDS: Final = 30.0
"""Start times of the same process read twice differ by less than this: the system works them out from its clock, which is corrected
now and then. No number is used again so soon."""


@dataclass(frozen=True, slots=True)
class Record:
    """One embedded cluster, as it was asked for."""

    name: str
    nodes: int
    seed: int
    owner_pid: int
    """The process that made it."""
    owner_started: float
    """When that process started (seconds since the epoch): process numbers are used again."""
    owner_bound: bool
    """Whether the cluster goes when its owner goes."""
    kwokctl: str
    """Path of the program that can delete it."""
    ports: dict[str, int]
    kubernetes: str = ""
    kwok: str = ""
    ready: bool = False
    """Whether it has been ready; before that it is still being made."""
    default_version: bool = True
    """Whether its Kubernetes is the one that a cluster has unless another is asked for."""
    audited: bool = False
    """Whether its API server writes `audit_log`; clusters that an earlier version made do not."""
    addons: list[str] = field(default_factory=list)
    """Names of the add-ons that it has, whose stages are played."""
    created: float = field(default_factory=time.time)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells it from a later cluster of the same name."""

    @property
    def folder(self) -> Path:
        """Our own folder of this cluster."""
        return state_root() / "records" / self.name

    @property
    def workdir(self) -> Path:
        """The folder of kwokctl, with logs, certificates and data."""
        return state_root() / "clusters" / self.name

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, mode 0600."""
        return self.folder / "kubeconfig"

    @property
    def kept_logs(self) -> Path:
        """Where the logs go when it did not become ready."""
        return state_root() / "failed" / self.name

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, apart from the components' logs, in our own folder: it goes with the cluster."""
        return self.folder / "audit" / "audit.log"

    def log(self, component: str) -> Path:
        """Return the path of a component's log."""
        return self.workdir / "logs" / f"{component}.log"

    def owner_alive(self) -> bool:
        """Whether the process that made it still runs."""
        return is_alive(self.owner_pid, self.owner_started)


def is_alive(pid: int, started: float) -> bool:
    """Whether a process that began at that time still runs: numbers are used again."""
    now = process_started(pid)
    return now is not None and abs(now - started) < _CLOCK_SECONDS


def process_started(pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None when there is none."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.Error:
        return None


def this_process() -> tuple[int, float]:
    """Return number and start time of this process."""
    pid = os.getpid()
    return pid, process_started(pid) or 0.0


def check_name(name: str) -> str:
    """Return the name, or raise ClusterError with what is allowed."""
    if not _NAME.fullmatch(name):
        msg = (
            f"{name!r} is no name for a cluster: at most 40 lower-case letters, digits and hyphens "
            "are allowed, with a letter or digit at both ends."
        )
        raise ChoiceError(msg)
    return name


def write(record: Record) -> None:
    """Write a record for this user alone, all of it or nothing."""
    folder = make_folder(record.folder)
    write_private(folder / "record.json", json.dumps(asdict(record), indent=1))


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600 by renaming; ClusterError when the disk refuses."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        msg = f"Cannot write {path}: {error.strerror}."
        raise ClusterError(msg) from error


def read(name: str) -> Record | None:
    """Return the record of a name; None when there is none, or none that can be understood."""
    try:
        text = (state_root() / "records" / check_name(name) / "record.json").read_text("utf-8")
        return Record(**json.loads(text))
    except (OSError, TypeError, ValueError):
        return None


def read_all() -> list[Record]:
    """Return all records, by name."""
    folder = state_root() / "records"
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    found = (read(name) for name in names if _NAME.fullmatch(name))
    return [record for record in found if record is not None]


def keep_logs(record: Record) -> Path:
    """Copy the components' logs, as far as there are any, to where they stay when the cluster goes; return that folder."""
    logs = record.workdir / "logs"
    if logs.is_dir():
        shutil.rmtree(record.kept_logs, ignore_errors=True)
        shutil.copytree(logs, record.kept_logs, dirs_exist_ok=True)
    return record.kept_logs


def forget(record: Record) -> None:
    """Remove our folder of a cluster."""
    shutil.rmtree(record.folder, ignore_errors=True)
