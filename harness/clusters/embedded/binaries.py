"""The six programs of an embedded cluster, from wherever `--binaries` says: given, cached, downloaded or built."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ChoiceError, ClusterError, Progress
from harness.clusters.embedded import build, cache, download
from harness.clusters.embedded.components import COMPONENTS, Binaries

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from harness.clusters.embedded.cache import Cache
    from harness.clusters.embedded.components import Component

VARIABLE: Final = "DRILL_BINARIES"
"""Stands for `--binaries` where that says `auto`."""
ALLOWED: Final = "auto, build, download, path:DIR"
_PATH: Final = "path:"


def resolve(
    source: str,
    progress: Progress,
    *,
    cancelled: threading.Event | None = None,
    mirrors: download.Mirrors = download.OFFICIAL,
) -> Binaries:
    """Return the programs, getting them first if need be. Blocks, for minutes when they are built. Raises ClusterError.

    `auto`: those of the environment variable DRILL_BINARIES, else the cached ones, else the official download where its
    address answers, else a build. Setting `cancelled` makes it give up soon.
    """
    if sys.platform != "linux":
        msg = (
            f"The embedded cluster needs Linux, this is {sys.platform}; use --cluster context:NAME."
        )
        raise ClusterError(msg)
    chosen = os.environ.get(VARIABLE, "auto") if source == "auto" else source
    if chosen.startswith(_PATH):
        return _given(Path(chosen.removeprefix(_PATH)).expanduser().absolute())
    if chosen == "build":
        build.build(cache.built(), COMPONENTS, progress, cancelled)
        return _collected(cache.built())
    if chosen == "download":
        _download(COMPONENTS, progress, cancelled, mirrors)
        return _collected(cache.official(), cache.built())
    if chosen == "auto":
        return _auto(progress, cancelled, mirrors)
    where = f"--binaries {source}" if source == chosen else f"{VARIABLE}={chosen}"
    msg = f"{where}: unknown source of programs; allowed: {ALLOWED}."
    raise ChoiceError(msg)


def _auto(
    progress: Progress, cancelled: threading.Event | None, mirrors: download.Mirrors
) -> Binaries:
    folders = (cache.built(), cache.official())
    missing = _missing(folders)
    if missing and download.reachable(missing[-1], mirrors):
        try:
            _download(missing, progress, cancelled, mirrors)
        except ClusterError as error:
            cache.check_cancelled(cancelled)
            progress(f"{error} Building from source instead.")
    missing = _missing(folders)
    if missing:
        build.build(cache.built(), missing, progress, cancelled)
    return _collected(*folders)


def _download(
    wanted: Sequence[Component],
    progress: Progress,
    cancelled: threading.Event | None,
    mirrors: download.Mirrors,
) -> None:
    unchecked = download.download(cache.official(), wanted, progress, cancelled, mirrors)
    if unchecked:
        build.build(cache.built(), unchecked, progress, cancelled)


def _given(folder: Path) -> Binaries:
    paths = {component.name: folder / component.name for component in COMPONENTS}
    lacking = [name for name, path in paths.items() if not path.is_file()]
    if lacking:
        msg = f"The folder {folder} has no {', no '.join(lacking)}; all six programs must be there."
        raise ChoiceError(msg)
    locked = [name for name, path in paths.items() if not os.access(path, os.X_OK)]
    if locked:
        msg = f"Not executable in {folder}: {', '.join(locked)}; make them so with chmod +x."
        raise ClusterError(msg)
    return Binaries.from_paths(paths)


def _missing(folders: Sequence[Cache]) -> list[Component]:
    return [
        component
        for component in COMPONENTS
        if not any(folder.find(component.name) for folder in folders)
    ]


def _collected(*folders: Cache) -> Binaries:
    paths: dict[str, Path] = {}
    for component in COMPONENTS:
        found = next(filter(None, (folder.find(component.name) for folder in folders)), None)
        if found is None:
            msg = f"{component.name} is not in {folders[0].folder} any more; run the command again."
            raise ClusterError(msg)
        paths[component.name] = found
    return Binaries.from_paths(paths)
