"""What every kind of cluster offers to the runner: facts for the report, and a way in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.timeline import ClusterFacts

Progress = Callable[[str], None]
"""Takes one line for the person who waits, without a newline."""

MATCH_LABEL_KEYS: Final = "match-label-keys"
"""`matchLabelKeys` in pod (anti-)affinity terms, on by default since Kubernetes 1.31."""
SIMULATED_PODS: Final = "simulated-pods"
"""Pods obey the label `rollout-drill/pod`, and no container runs."""
REAL_PODS: Final = "real-pods"
"""Containers run, and answer requests."""

_SINCE: Final = {MATCH_LABEL_KEYS: (1, 31)}
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


class ClusterError(Exception):
    """A cluster cannot be made, opened or removed; the message is one sentence for the user."""


class ChoiceError(ClusterError):
    """An option names a cluster, or a source of its programs, that does not exist: the user's to mend, not the cluster's."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that answers, opened under a name that the user gave."""

    name: str
    """`embedded`, `embedded:NAME` or `context:NAME`, as it can be given again."""
    facts: ClusterFacts
    kubeconfig: Path
    """Readable by this user only where it was made by us."""
    context: str | None = None
    """The context to use in `kubeconfig`; None where the file has only one."""


def capabilities(kubernetes: str, *, simulated: bool) -> tuple[str, ...]:
    """Return what a cluster of that version can do, in the words of a scenario's `requires`."""
    found = _VERSION.match(kubernetes)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    features = [name for name, since in _SINCE.items() if version >= since]
    return (*features, SIMULATED_PODS if simulated else REAL_PODS)
