"""The logs of a cluster's own nodes and components, kept beside a report that is not as expected.

Only of a cluster that was made on this machine for drills; on another, what other people's pods say is nobody's to copy.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.base import Cluster

FOLDER: Final = "cluster-logs"
MOST_BYTES: Final = 2_000_000
"""Of one file; the end of a longer one is kept, since the drill was the last thing that happened."""


async def keep(
    cluster: Cluster, folder: Path, publishable: Callable[[str], str], say: Callable[[str], None]
) -> None:
    """Copy the logs into `folder/cluster-logs`, without secrets; nothing where the cluster has none to give, and no error ever."""
    target = folder / FOLDER
    try:
        target.mkdir(parents=True, exist_ok=True)
        await cluster.save_logs(target)
        for path in [one for one in target.rglob("*") if one.is_symlink() or one.is_file()]:
            _clean(path, publishable)
    except (ClusterError, OSError) as error:
        # What cannot be cleaned must not stay.
        shutil.rmtree(target, ignore_errors=True)
        say(f"the cluster's logs could not be kept: {error}")
        return
    for path in sorted((one for one in target.rglob("*") if one.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()
    if not any(target.iterdir()):
        target.rmdir()


def _clean(path: Path, publishable: Callable[[str], str]) -> None:
    if path.is_symlink():
        path.unlink()  # it points at a file that is here, too, or out of here
        return
    with path.open("rb") as file:
        size = path.stat().st_size
        file.seek(max(0, size - MOST_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    path.write_text(publishable(text), encoding="utf-8")
