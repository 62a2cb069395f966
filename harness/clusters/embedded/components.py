"""The six programs of an embedded cluster, and where each comes from.

Versions are read from the Go module lock files in fixtures, so that they are written down once.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.data import data_path

if TYPE_CHECKING:
    from pathlib import Path

_KUBERNETES: Final = "k8s.io/kubernetes"
_ETCD: Final = "go.etcd.io/etcd/server/v3"
_KWOK: Final = "sigs.k8s.io/kwok"


@dataclass(frozen=True, slots=True)
class Component:
    """One program, as it is built and as it is published."""

    name: str
    lock: str
    """The folder in fixtures/go with its go.mod and go.sum."""
    module: str
    package: str
    seconds: int
    """What building it alone takes on two cores with nothing cached, after those above it."""

    @property
    def version(self) -> str:
        """The pinned version of its module, e.g. `v1.35.4`."""
        return pinned_version(self.lock, self.module)


COMPONENTS: Final = (
    Component("kwokctl", "kwok", _KWOK, f"{_KWOK}/cmd/kwokctl", 95),
    Component("kwok", "kwok", _KWOK, f"{_KWOK}/cmd/kwok", 65),
    Component("etcd", "control-plane", _ETCD, _ETCD, 35),
    Component(
        "kube-apiserver", "control-plane", _KUBERNETES, f"{_KUBERNETES}/cmd/kube-apiserver", 195
    ),
    Component(
        "kube-controller-manager",
        "control-plane",
        _KUBERNETES,
        f"{_KUBERNETES}/cmd/kube-controller-manager",
        60,
    ),
    Component(
        "kube-scheduler", "control-plane", _KUBERNETES, f"{_KUBERNETES}/cmd/kube-scheduler", 20
    ),
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """Absolute paths of the six programs."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kwok: Path
    kwokctl: Path

    @classmethod
    def from_paths(cls, paths: dict[str, Path]) -> Binaries:
        """Take the paths by program name, e.g. `kube-apiserver`."""
        return cls(**{name.replace("-", "_"): path for name, path in paths.items()})

    def by_name(self) -> dict[str, Path]:
        """Return the paths by program name."""
        return {
            field.name.replace("_", "-"): getattr(self, field.name) for field in fields(Binaries)
        }


def lock_files(lock: str) -> tuple[Path, Path]:
    """Return go.mod and go.sum of a lock folder."""
    folder = data_path("fixtures", "go", lock)
    return folder / "go.mod", folder / "go.sum"


@functools.cache
def pinned_version(lock: str, module: str) -> str:
    """Return the version that a lock folder pins a module to; ClusterError when it does not."""
    path, _ = lock_files(lock)
    try:
        found = re.search(rf"^\s+{re.escape(module)} (v\S+)", path.read_text("utf-8"), re.MULTILINE)
    except OSError as error:
        msg = f"Cannot read {path}: {error.strerror}."
        raise ClusterError(msg) from error
    if found is None:
        msg = f"{path} does not name the module {module}."
        raise ClusterError(msg)
    return found[1]


def needed_go() -> tuple[int, ...]:
    """Return the lowest Go version that all lock files accept, e.g. `(1, 26, 0)`."""
    needed: list[tuple[int, ...]] = []
    for lock in dict.fromkeys(component.lock for component in COMPONENTS):
        path, _ = lock_files(lock)
        line = re.search(r"^go (\d+(?:\.\d+)*)$", path.read_text("utf-8"), re.MULTILINE)
        if line is None:
            msg = f"{path} has no `go` line."
            raise ClusterError(msg)
        needed.append(tuple(int(part) for part in line[1].split(".")))
    return max(needed)
