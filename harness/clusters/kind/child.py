"""pytest-kind's KindCluster at work, in a process of its own: `python -m harness.clusters.kind.child VERB JSON`.

Apart, because it prints what kind prints, makes a folder where it stands, and cannot be interrupted; here it stands in the cluster's own
folder, its words are kept, and it is ended with kind when nobody waits any more.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done to which cluster; all paths are absolute."""

    name: str
    folder: str
    kubeconfig: str
    kind: str
    """The program; nothing is downloaded."""
    kubectl: str
    image: str = ""
    config: str = ""


def argv(verb: str, job: Job) -> list[str]:
    """Return the command that does it."""
    return [sys.executable, "-m", __name__, verb, json.dumps(asdict(job))]


def main(verb: str, text: str) -> None:
    """Do one job."""
    with warnings.catch_warnings():
        # Its own dependencies warn about theirs.
        warnings.simplefilter("ignore")
        from pytest_kind import KindCluster
    job = Job(**json.loads(text))
    os.chdir(job.folder)
    cluster = KindCluster(
        job.name,
        kubeconfig=Path(job.kubeconfig),
        image=job.image or None,
        kind_path=Path(job.kind),
        kubectl_path=Path(job.kubectl),
    )
    verbs: dict[str, Callable[[], None]] = {
        "create": lambda: cluster.create(job.config or None),
        "delete": cluster.delete,
    }
    verbs[verb]()


if __name__ == "__main__":
    main(*sys.argv[1:])
