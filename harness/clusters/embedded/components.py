"""The six programs of an embedded cluster, and where each comes from.

Versions are read from the Go module lock files in fixtures, so that they are written down once.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ChoiceError, ClusterError
from harness.data import data_path
from harness.programs.modules import go_version, required_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_KUBERNETES: Final = "k8s.io/kubernetes"
_ETCD: Final = "go.etcd.io/etcd/server/v3"
_KWOK: Final = "sigs.k8s.io/kwok"
_DEFAULT: Final = "control-plane"
_LOCKS: Final = ("control-plane-1.34", _DEFAULT, "control-plane-1.36")
"""The lock folders of the versions of Kubernetes, the oldest first."""
_SPELLED: Final = re.compile(r"v?(\d+\.\d+)(\.\d+)?")


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
    Component("etcd", _DEFAULT, _ETCD, _ETCD, 35),
    Component("kube-apiserver", _DEFAULT, _KUBERNETES, f"{_KUBERNETES}/cmd/kube-apiserver", 195),
    Component(
        "kube-controller-manager",
        _DEFAULT,
        _KUBERNETES,
        f"{_KUBERNETES}/cmd/kube-controller-manager",
        60,
    ),
    Component("kube-scheduler", _DEFAULT, _KUBERNETES, f"{_KUBERNETES}/cmd/kube-scheduler", 20),
)
"""The programs with the default version of Kubernetes."""


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


@functools.cache
def kubernetes_versions() -> dict[str, str]:
    """Return the versions of Kubernetes that a cluster can have, e.g. `v1.35.4`, each with its lock folder; the oldest first."""
    return {pinned_version(lock, _KUBERNETES): lock for lock in _LOCKS}


def kubernetes_version(text: str | None) -> str:
    """Return the whole version, e.g. `v1.36.3`, for what a user wrote: `1.36`, `v1.36`, `v1.36.3`; the default for None.

    Raises ChoiceError with the allowed ones.
    """
    if text is None:
        return pinned_version(_DEFAULT, _KUBERNETES)
    versions = kubernetes_versions()
    spelled = _SPELLED.fullmatch(text.strip())
    if spelled is not None:
        minor, patch = spelled[1], spelled[2] or "."
        for version in versions:
            if version.startswith(f"v{minor}{patch}") and (
                patch == "." or version == f"v{minor}{patch}"
            ):
                return version
    msg = f"Kubernetes {text} is not available for an embedded cluster; allowed: {', '.join(versions)}."
    raise ChoiceError(msg)


def components(kubernetes: str | None = None) -> tuple[Component, ...]:
    """Return the programs of a cluster of that version; etcd, kwok and kwokctl are the same for every version.

    So data that one control plane wrote are served by another. Raises ChoiceError for an unknown version.
    """
    lock = kubernetes_versions()[kubernetes_version(kubernetes)]
    return tuple(
        replace(component, lock=lock) if component.module == _KUBERNETES else component
        for component in COMPONENTS
    )


def lock_files(lock: str) -> tuple[Path, Path]:
    """Return go.mod and go.sum of a lock folder."""
    folder = data_path("fixtures", "go", lock)
    return folder / "go.mod", folder / "go.sum"


@functools.cache
def pinned_version(lock: str, module: str) -> str:
    """Return the version that a lock folder pins a module to; ClusterError when it does not."""
    path, _ = lock_files(lock)
    try:
        found = required_version(path.read_text("utf-8"), module)
    except OSError as error:
        msg = f"Cannot read {path}: {error.strerror}."
        raise ClusterError(msg) from error
    if found is None:
        msg = f"{path} does not name the module {module}."
        raise ClusterError(msg)
    return found


def needed_go(wanted: Sequence[Component] = COMPONENTS) -> tuple[int, ...]:
    """Return the lowest Go version that all lock files of these programs accept, e.g. `(1, 26, 0)`."""
    texts = (lock_files(lock)[0].read_text("utf-8") for lock in {one.lock for one in wanted})
    return max(go_version(text) for text in texts)
