"""ReplicaSets that are the primary of a rollout themselves (spec freeze-and-adopt 5): which one serves, whoever owns it.

The rollout object controls those that it was promoted to, and its status names the one that serves. That one is the primary even while it
is lent to the target after a restoration. One that was parked later is about to be it; one that was parked earlier is on its way out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.checks.paths import dig

if TYPE_CHECKING:
    from harness.model.timeline import JSON

_NUMBER: Final = "rollout-drill/parked"
"""Annotation of a ReplicaSet: a number that grows with every parking."""


@dataclass(slots=True)
class Kept:
    """What the statuses of the rollout objects name."""

    _named: dict[str, str] = field(default_factory=dict)
    """Name of a rollout object -> its ReplicaSet."""
    _sets: set[str] = field(default_factory=set)

    def name(self, rollout: str, replica_set: str) -> None:
        """A rollout object names this ReplicaSet as its primary from now on, or none."""
        self._sets.discard(self._named.pop(rollout, ""))
        if replica_set:
            self._named[rollout] = replica_set
            self._sets.add(replica_set)

    def named(self, replica_set: str) -> bool:
        """Whether it is what some rollout object names."""
        return replica_set in self._sets

    def serves(self, replica_set: str, rollout: str, sets: dict[str, JSON]) -> bool:
        """Whether the ReplicaSet is a primary, or about to be; `rollout`: the rollout object that controls it, if one does."""
        if replica_set in self._sets or not rollout:
            return replica_set in self._sets
        named = self._named.get(rollout)
        return named is None or _number(sets.get(replica_set)) > _number(sets.get(named))


def _number(replica_set: JSON | None) -> int:
    text = str(dig(replica_set, "metadata.annotations", {}).get(_NUMBER, ""))
    return int(text) if text.isdigit() else 0
