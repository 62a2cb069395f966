"""The observations of a recording in the order in which the API server made them true.

Every kind has its own watch, so what was written first may be seen a few milliseconds later. Two subjects would then differ by
luck: were the primary's pods ready in the phase before, or only in the next one? Within one storage resourceVersions count all
writes, whatever the kind, and tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.paths import dig
from harness.model.timeline import ObjectSeen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.timeline import Observation


def in_order(observations: Sequence[Observation]) -> list[Observation]:
    """Return the observations ordered by resourceVersion; what is no object keeps its place behind what was seen before it.

    As they are, where any object lacks a version that is a number.
    """
    keyed: list[tuple[float, int, Observation]] = []
    latest = 0.0
    for index, seen in enumerate(observations):
        if isinstance(seen, ObjectSeen):
            version = str(dig(seen.object, "metadata.resourceVersion", ""))
            if not version.isdecimal():
                return list(observations)
            latest = max(latest, float(version))
            keyed.append((float(version), index, seen))
        else:
            keyed.append((latest, index, seen))
    return [seen for *_, seen in sorted(keyed, key=lambda entry: entry[:2])]
