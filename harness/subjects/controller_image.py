"""The image of the bundled controller, made of the Python that runs the harness: no registry, no container engine, no network."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import harness
from harness import __version__
from harness.data import data_path
from harness.programs import python_files
from harness.programs.image_archive import Image, write
from harness.programs.paths import cache_root, make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

DISTRIBUTION: Final = "rollout-drill"
IMAGE: Final = f"rollout-drill/controller:{__version__}"
"""In no registry: it is loaded into the nodes."""
_LEFT_OUT: Final = ("tests", "_data")
"""Of the package: tests, and data, which are somewhere else in a checkout."""
_DATA: Final = (
    *(("fixtures", each) for each in ("crds", "go", "manifests", "rbac", "stages")),
    ("reports", "templates"),
    ("scenarios",),
)
"""What the `drill` command reads, so that a CronJob can run it from the same image."""
_DIGITS: Final = 12
_IN_USE: Final = 3600.0
"""Seconds for which nobody removes an archive."""
_making = threading.Lock()
_made: dict[str, Path] = {}
"""Name of an image -> its archive, as far as this process has looked."""


def made(
    progress: Callable[[str], None],
    cancelled: threading.Event | None = None,
    *,
    name: str = IMAGE,
    target: Path | None = None,
) -> Path:
    """Return the archive of the image called `name`, written to `target`, or to the cache if it is not there yet. Blocks.

    Raises ProgramError: not on Linux, something does not tell its files, no space.
    """
    if target is not None:
        _make(name, dict(contents()), target, progress, cancelled)
        return target
    with _making:  # several drills of a run want the same one
        if name not in _made or not _made[name].is_file():
            files = dict(contents())
            folder = make_folder(cache_root() / "images")
            stem = name.replace("/", "-").replace(":", "-")
            path = folder / f"{stem}-{_digest(files)}.tar"
            if not path.is_file():
                _make(name, files, path, progress, cancelled)
                _forget(folder.glob(f"{stem}-*.tar"), path)
            _made[name] = path
        return _made[name]


def _make(
    name: str,
    files: Mapping[str, Path | bytes],
    target: Path,
    progress: Callable[[str], None],
    cancelled: threading.Event | None,
) -> None:
    progress(f"Making the image {name} of this Python.")
    image = Image(
        name,
        files,
        entrypoint=["python", "-m", "harness.controller"],
        environment=python_files.environment(),
    )
    write(image, target, cancelled)
    progress(f"The image {name} is {target}, {target.stat().st_size / 1e6:.0f} MB.")


def _forget(paths: Iterable[Path], newest: Path) -> None:
    """Remove what earlier versions left, unless another run may still be loading it."""
    for path in paths:
        with contextlib.suppress(OSError):
            if path != newest and time.time() - path.stat().st_mtime > _IN_USE:
                path.unlink()


def contents() -> Mapping[str, Path | bytes]:
    """Return all files of the image. Raises ProgramError."""
    files = {
        **python_files.interpreter(),
        **python_files.distributions(DISTRIBUTION, _stated()),
        **python_files.package(Path(harness.__file__).parent, harness.__name__, _LEFT_OUT),
    }
    for parts in _DATA:
        files |= python_files.package(
            data_path(*parts), "/".join((harness.__name__, "_data", *parts))
        )
    return {**files, **python_files.shared_libraries(files.values())}


def _stated() -> list[str]:
    """Return what a checkout says that it requires: what was installed of it may have been told so by an older one."""
    project = Path(harness.__file__).parent.with_name("pyproject.toml")
    if not project.is_file():
        return []
    told = tomllib.loads(project.read_text(encoding="utf-8"))
    return python_files.names_in(told["project"]["dependencies"])


def _digest(files: Mapping[str, Path | bytes]) -> str:
    """Return what tells one content from another: of the harness all there is, of the rest which version it is and where it stands."""
    digest = hashlib.sha256("\n".join(python_files.versions(DISTRIBUTION)).encode())
    own = f"{python_files.SITE}/{harness.__name__}/"
    for name, source in sorted(files.items()):
        if name.endswith(".pyc"):
            continue
        digest.update(f"{name}\0{source!s}\0".encode())
        if name.startswith(own) and isinstance(source, Path):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:_DIGITS]
