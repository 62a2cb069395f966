"""What the harness changes in a scenario's objects for the cluster where they go, and what it says about that.

Pure functions over raw objects; who asks the cluster is `harness.run.place`. A scenario is written once and runs everywhere; on a
cluster that others use, its pods have to stay where they may be, and must be in nobody's way.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.timeline import JSON


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What is different on one cluster; the default changes nothing."""


def adapted(objects: Sequence[JSON], adaptation: Adaptation) -> tuple[list[JSON], list[str]]:
    """Return copies of rendered objects as this cluster gets them, and a sentence for each sort of change that was made."""
    del adaptation
    return [copy.deepcopy(obj) for obj in objects], []
