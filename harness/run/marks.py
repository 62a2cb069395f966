"""Who uses an object that several runs share: a mark of each run on the object itself, as an annotation.

On the object, since that is what runs on different machines have in common; one annotation for each run, so that none ever has to write
what another one wrote. Pure functions; who puts marks on and takes them away is `harness.run.shared`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from harness.run.identity import MANAGED_BY, RUN_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.model.timeline import JSON

PREFIX: Final = "users.rollout-drill/"
"""Of the annotation; the run's id follows. Its value is when the run came."""
STALE: Final = 2 * 3600.0
"""Seconds after which a mark of a run of which nothing else is to be seen counts no longer; no drill takes that long."""


def mark(run: str) -> str:
    """Return the key of a run's annotation."""
    return f"{PREFIX}{run}"


def now(moment: datetime | None = None) -> str:
    """Return the value of a mark that is put on now."""
    return (moment or datetime.now(UTC)).isoformat(timespec="seconds")


def ours(obj: JSON) -> bool:
    """Whether a run of rollout-drill made it, so that marks may be put on it and the last run removes it.

    What a cluster of ours was made with carries no label of a run: it belongs to the cluster, and goes with it.
    """
    labels = obj["metadata"].get("labels") or {}
    return RUN_LABEL in labels and all(labels.get(key) == word for key, word in MANAGED_BY.items())


def marked(obj: JSON) -> dict[str, str]:
    """Return the marks on an object: id of the run -> when it came."""
    annotations = obj["metadata"].get("annotations") or {}
    return {
        key.removeprefix(PREFIX): str(value)
        for key, value in annotations.items()
        if key.startswith(PREFIX)
    }


def users(
    obj: JSON,
    *,
    me: str,
    at: datetime,
    seen: Collection[str],
    stale: float = STALE,
) -> list[str]:
    """Return the runs other than `me` that count as using an object at the time `at`, by their ids.

    A mark counts while it is younger than `stale` seconds, and as long as anything else of its run is `seen`: a namespace in the
    cluster, or a process on this machine. One whose time cannot be read counts: better one object too many than one too few.
    """
    return [
        run
        for run, came in sorted(marked(obj).items())
        if run != me and (run in seen or not _old(came, at, stale))
    ]


def _old(came: str, at: datetime, stale: float) -> bool:
    try:
        moment = datetime.fromisoformat(came)
    except ValueError:
        return False
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (at - moment).total_seconds() >= stale
