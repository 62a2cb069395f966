"""The six programs of an embedded cluster, from wherever `--binaries` says: given, cached, downloaded or built."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ChoiceError, ClusterError, Progress
from harness.clusters.embedded import build, cache, download
from harness.clusters.embedded.components import (
    COMPONENTS,
    Binaries,
    components,
    kubernetes_version,
)
from harness.programs.cache import check_cancelled
from harness.programs.errors import ProgramError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from harness.clusters.embedded.components import Component
    from harness.programs.cache import Cache

VARIABLE: Final = "DRILL_BINARIES"
"""Stands for `--binaries` where that says `auto`."""
ALLOWED: Final = "auto, build, download, path:DIR"
_PATH: Final = "path:"


def ensure_binaries(
    source: str,
    progress: Progress,
    cancelled: threading.Event | None = None,
    *,
    kubernetes: str | None = None,
    mirrors: download.Mirrors = download.OFFICIAL,
) -> Binaries:
    """Return the programs, getting them first if need be. Blocks, for minutes when they are built. Raises ClusterError.

    `auto`: those of the environment variable DRILL_BINARIES, else the cached ones, else the official download where its
    address answers, else a build. Setting `cancelled` makes it give up soon. `kubernetes`: another version of API server,
    controller manager and scheduler than the default one, as in `components.kubernetes_version`; a given folder has those in
    a folder of its own, e.g. DIR/v1.36.3.
    """
    if sys.platform != "linux":
        msg = (
            f"The embedded cluster needs Linux, this is {sys.platform}; use --cluster context:NAME."
        )
        raise ClusterError(msg)
    chosen = os.environ.get(VARIABLE, "auto") if source == "auto" else source
    wanted = components(kubernetes)
    if chosen.startswith(_PATH):
        folder = Path(chosen.removeprefix(_PATH)).expanduser().absolute()
        return _given(folder, wanted, kubernetes_version(kubernetes))
    if chosen not in ("auto", "build", "download"):
        where = f"--binaries {source}" if source == chosen else f"{VARIABLE}={chosen}"
        msg = f"{where}: unknown source of programs; allowed: {ALLOWED}."
        raise ChoiceError(msg)
    try:
        if chosen == "build":
            _build(wanted, progress, cancelled)
            return _collected(wanted, cache.built)
        if chosen == "download":
            _download(wanted, progress, cancelled, mirrors)
            return _collected(wanted, cache.official, cache.built)
        return _auto(wanted, progress, cancelled, mirrors)
    except ProgramError as error:
        raise ClusterError(str(error)) from error


def lacking(kubernetes: str | None = None) -> list[str]:
    """Return the names of programs that are not on this machine yet, and would be downloaded or built when they are needed."""
    return [component.name for component in _missing(components(kubernetes))]


def _auto(
    wanted: Sequence[Component],
    progress: Progress,
    cancelled: threading.Event | None,
    mirrors: download.Mirrors,
) -> Binaries:
    missing = _missing(wanted)
    if missing and download.reachable(missing[-1], mirrors):
        try:
            _download(missing, progress, cancelled, mirrors)
        except ProgramError as error:
            check_cancelled(cancelled)
            progress(f"{error} Building from source instead.")
    _build(_missing(wanted), progress, cancelled)
    return _collected(wanted, cache.built, cache.official)


def _build(
    wanted: Sequence[Component], progress: Progress, cancelled: threading.Event | None
) -> None:
    for folder, some in _by_folder(wanted, cache.built):
        build.build(folder, some, progress, cancelled)


def _download(
    wanted: Sequence[Component],
    progress: Progress,
    cancelled: threading.Event | None,
    mirrors: download.Mirrors,
) -> None:
    for folder, some in _by_folder(wanted, cache.official):
        _build(download.download(folder, some, progress, cancelled, mirrors), progress, cancelled)


def _by_folder(
    wanted: Sequence[Component], folder_of: Callable[[Component], Cache]
) -> list[tuple[Cache, list[Component]]]:
    groups: dict[Cache, list[Component]] = {}
    for component in wanted:
        groups.setdefault(folder_of(component), []).append(component)
    return list(groups.items())


def _given(folder: Path, wanted: Sequence[Component], kubernetes: str) -> Binaries:
    paths = {
        one.name: folder / one.name if one in COMPONENTS else folder / kubernetes / one.name
        for one in wanted
    }
    lacking = [str(path.relative_to(folder)) for path in paths.values() if not path.is_file()]
    if lacking:
        msg = f"The folder {folder} has no {', no '.join(lacking)}; all six programs must be there."
        raise ChoiceError(msg)
    locked = [name for name, path in paths.items() if not os.access(path, os.X_OK)]
    if locked:
        msg = f"Not executable in {folder}: {', '.join(locked)}; make them so with chmod +x."
        raise ClusterError(msg)
    return Binaries.from_paths(paths)


def _missing(wanted: Sequence[Component]) -> list[Component]:
    return [
        component
        for component in wanted
        if not any(
            folder(component).find(component.name) for folder in (cache.built, cache.official)
        )
    ]


def _collected(wanted: Sequence[Component], *folders: Callable[[Component], Cache]) -> Binaries:
    paths: dict[str, Path] = {}
    for component in wanted:
        places = [folder(component) for folder in folders]
        found = next(filter(None, (place.find(component.name) for place in places)), None)
        if found is None:
            msg = f"{component.name} is not in {places[0].folder} any more; run the command again."
            raise ClusterError(msg)
        paths[component.name] = found
    return Binaries.from_paths(paths)
