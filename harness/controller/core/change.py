"""Is this a new revision? The decision table of spec change-detection B3, with decisions D10 and U1.

What is compared are the stored pair (applied hash and fence, in the Canary's status) and the pair of the object just read
(`snapshots.py`). Statuses that another controller or version wrote need evidence from outside (`migration.py`).
Of ConfigMaps and Secrets (B10) the checksums are compared in `changes.py`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import PREFIX
from harness.controller.core.snapshots import Fence

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core.decision import JSON
    from harness.controller.core.snapshots import Snapshot

SETTLED: Final = frozenset({"Initialized", "Succeeded"})


@dataclass(frozen=True, slots=True)
class Tracking:
    """What is remembered of the target."""

    phase: str
    applied: str
    promoted: str
    fence: str

    @classmethod
    def of(cls, status: JSON, kept: str = "") -> Tracking:
        """Read it from a raw status; `kept` is a fence that had to be kept elsewhere (D10), used when the status has none."""
        return cls(
            str(status.get("phase") or ""),
            str(status.get("lastAppliedSpec") or ""),
            str(status.get("lastPromotedSpec") or ""),
            str(status.get("lastTrackedRevision") or kept),
        )

    @property
    def foreign(self) -> bool:
        """Whether another controller or version wrote it, one that hashed in another way."""
        return bool(self.applied) and not self.applied.startswith(PREFIX)

    @property
    def settled(self) -> bool:
        """Whether no run was under way."""
        return self.phase in SETTLED


class Migration(enum.Enum):
    """What an independent check says about a status that another controller or version wrote (B4)."""

    UNAVAILABLE = enum.auto()
    EQUAL = enum.auto()
    DIFFERENT = enum.auto()
    FAILED = enum.auto()


class Row(enum.StrEnum):
    """The rows of the table, by name; the number is the spec's."""

    FIRST_SYNC = "first-sync"  # 1
    NO_FENCE_SAME = "no-fence-same"  # 2 in D10's reading
    NO_FENCE_ROLLBACK = "no-fence-rollback"
    NO_FENCE_CHANGED = "no-fence-changed"
    MIGRATION_RESTART = "migration-restart"  # 2
    MIGRATION_FAILED = "migration-failed"
    MIGRATION_CHANGED = "migration-changed"
    MIGRATION_ADOPTED = "migration-adopted"
    REBASED = "rebased"  # U1, before 3
    RECREATED = "recreated"  # 3
    UNCHANGED = "unchanged"  # 4
    FENCE_REFRESHED = "fence-refreshed"  # 5
    VOLATILE = "volatile"  # 6
    DRIFT_ABSORBED = "drift-absorbed"  # 7
    SCALED_AND_DRIFTED = "scaled-and-drifted"  # 8
    MANUAL_ROLLBACK = "manual-rollback"  # 9
    CHANGED = "changed"  # 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row's answer."""

    row: Row
    changed: bool = False
    persist: JSON = field(default_factory=dict)
    """Status fields to write although nothing is started (B5); empty for none."""
    error: bool = False
    """Neither adopt nor start; try again when something moves."""

    @property
    def rolled_back(self) -> bool:
        """Whether somebody put the promoted template back."""
        return self.row in (Row.MANUAL_ROLLBACK, Row.NO_FENCE_ROLLBACK)


@dataclass(frozen=True, slots=True)
class Case:
    """Everything a row may look at."""

    stored: Tracking
    now: Snapshot
    migration: Migration
    primary_equal: bool

    @property
    def old(self) -> Fence:
        """The stored fence."""
        return Fence.parse(self.stored.fence)

    @property
    def same_hash(self) -> bool:
        """The target holds what was applied."""
        return self.now.hash == self.stored.applied

    @property
    def back(self) -> bool:
        """The target holds what was promoted."""
        return self.now.hash == self.stored.promoted

    @property
    def unfenced(self) -> bool:
        """A hash of ours, and no fence."""
        return not self.stored.fence and not self.stored.foreign

    @property
    def same_counter(self) -> bool:
        """Nothing at all happened to the object since."""
        return self.now.fence.trusted and self.now.fence.counter == self.old.counter

    @property
    def same_revision(self) -> bool:
        """Its template was not touched since."""
        current = self.now.fence
        return current.trusted and bool(current.revision) and current.revision == self.old.revision

    @property
    def recreated(self) -> bool:
        """It is another object of the same name."""
        return self.now.fence.uid != self.old.uid


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: the first whose `when` holds decides."""

    row: Row
    when: Callable[[Case], bool]
    changed: bool = False
    persist: bool = False


_CHANGED: Final = {"changed": True}
_PERSIST: Final = {"persist": True}

# fmt: off
TABLE: Final[tuple[Entry, ...]] = (
    Entry(Row.FIRST_SYNC,         lambda c: not c.stored.applied,                                  **_CHANGED),
    # D10: a hash of ours without a fence (pruned by an old CRD) can still be compared by hash.
    Entry(Row.NO_FENCE_SAME,      lambda c: c.unfenced and c.same_hash,                            **_PERSIST),
    Entry(Row.NO_FENCE_ROLLBACK,  lambda c: c.unfenced and c.back,                                 **_PERSIST),
    Entry(Row.NO_FENCE_CHANGED,   lambda c: c.unfenced,                                            **_CHANGED),
    # B4: written by a version that hashed another way.
    Entry(Row.MIGRATION_RESTART,  lambda c: c.stored.foreign and not c.stored.settled,             **_CHANGED),
    Entry(Row.MIGRATION_FAILED,   lambda c: c.stored.foreign and c.migration is Migration.FAILED),
    Entry(Row.MIGRATION_CHANGED,  lambda c: c.stored.foreign and c.migration is Migration.DIFFERENT, **_CHANGED),
    Entry(Row.MIGRATION_ADOPTED,  lambda c: c.stored.foreign,                                      **_PERSIST),
    # U1: restored or recreated, but what it holds is what runs already.
    Entry(Row.REBASED,            lambda c: c.recreated and c.same_hash and c.back and c.primary_equal, **_PERSIST),
    Entry(Row.RECREATED,          lambda c: c.recreated,                                           **_CHANGED),
    Entry(Row.UNCHANGED,          lambda c: c.same_hash and c.now.fence == c.old),
    Entry(Row.VOLATILE,           lambda c: c.same_hash and c.now.volatile),
    Entry(Row.FENCE_REFRESHED,    lambda c: c.same_hash,                                           **_PERSIST),
    Entry(Row.DRIFT_ABSORBED,     lambda c: c.same_counter,                                        **_PERSIST),
    Entry(Row.SCALED_AND_DRIFTED, lambda c: c.same_revision,                                       **_PERSIST),
    Entry(Row.MANUAL_ROLLBACK,    lambda c: c.back,                                                **_PERSIST),
    Entry(Row.CHANGED,            lambda _: True,                                                  **_CHANGED),
)
# fmt: on


def evaluate(
    stored: Tracking,
    now: Snapshot,
    *,
    migration: Migration = Migration.UNAVAILABLE,
    primary_equal: bool = False,
    table: tuple[Entry, ...] = TABLE,
) -> Verdict:
    """Decide whether `now` is a new revision for a Canary that remembers `stored`.

    `primary_equal` says that the primary already runs what the target's template makes (U1). `table` is for tests of the table.
    """
    case = Case(stored, now, migration, primary_equal)
    entry = next(entry for entry in table if entry.when(case))
    return Verdict(
        entry.row,
        entry.changed,
        tracking_fields(stored, now) if entry.persist else {},
        error=entry.row is Row.MIGRATION_FAILED,
    )


def tracking_fields(stored: Tracking, now: Snapshot) -> JSON:
    """Return the status fields of a PERSIST (B5): an idle canary's promoted hash moves along with the applied one."""
    fields: JSON = {"lastAppliedSpec": now.hash, "lastTrackedRevision": str(now.fence)}
    if stored.promoted and stored.promoted == stored.applied:
        fields["lastPromotedSpec"] = now.hash
    return fields
