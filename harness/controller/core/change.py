"""Is this a new revision? The decision table of spec change-detection B3, with decisions D10 and U1.

The table is complete for hashes and fences; what is still to come is the evidence behind `Migration` (decision D11) and
the checksums of ConfigMaps and Secrets (B10), which are not tracked yet.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import PREFIX, template_hash

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

REVISION: Final = "deployment.kubernetes.io/revision"
SETTLED: Final = frozenset({"Initialized", "Succeeded"})


@dataclass(frozen=True, slots=True)
class Fence:
    """Where an object stood when it was read: `<uid>/<counter>` or `<uid>/<counter>/<revision>` (B2)."""

    uid: str = ""
    counter: str = ""
    revision: str = ""

    @classmethod
    def parse(cls, token: str) -> Fence:
        """Read a token; parts that are missing are empty."""
        uid, _, rest = token.partition("/")
        counter, _, revision = rest.partition("/")
        return cls(uid, counter, revision)

    def __str__(self) -> str:
        token = f"{self.uid}/{self.counter}"
        return f"{token}/{self.revision}" if self.revision else token

    @property
    def trusted(self) -> bool:
        """Whether the object's counter can prove that nothing happened."""
        return bool(self.uid) and self.counter not in ("", "0")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hash and fence, always of one and the same read."""

    hash: str
    fence: Fence
    volatile: bool = False
    """The counter moves on every write, whoever makes it (core Services)."""


@dataclass(frozen=True, slots=True)
class Tracking:
    """What the Canary's status remembers."""

    phase: str
    applied: str
    promoted: str
    fence: str

    @classmethod
    def of(cls, status: JSON) -> Tracking:
        """Read it from a raw status."""
        return cls(
            str(status.get("phase") or ""),
            str(status.get("lastAppliedSpec") or ""),
            str(status.get("lastPromotedSpec") or ""),
            str(status.get("lastTrackedRevision") or ""),
        )


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
    MIGRATION_FAILED = "migration-failed"  # 2
    MIGRATION_ADOPTED = "migration-adopted"
    MIGRATION_CHANGED = "migration-changed"
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
class _Case:
    """Everything a row may look at."""

    stored: Tracking
    now: Snapshot
    migration: Migration
    primary_equal: bool

    @property
    def old(self) -> Fence:
        return Fence.parse(self.stored.fence)

    @property
    def same_hash(self) -> bool:
        return self.now.hash == self.stored.applied

    @property
    def back(self) -> bool:
        return self.now.hash == self.stored.promoted

    @property
    def unfenced(self) -> bool:
        return not self.stored.fence and self.stored.applied.startswith(PREFIX)

    @property
    def foreign(self) -> bool:
        return not self.stored.applied.startswith(PREFIX)

    @property
    def settled(self) -> bool:
        return self.stored.phase in SETTLED

    @property
    def same_counter(self) -> bool:
        return self.now.fence.trusted and self.now.fence.counter == self.old.counter

    @property
    def same_revision(self) -> bool:
        current = self.now.fence
        return current.trusted and bool(current.revision) and current.revision == self.old.revision

    @property
    def recreated(self) -> bool:
        return self.now.fence.uid != self.old.uid


_Guard = Callable[[_Case], bool]

# row, whether it applies, changed?, persist?  First match wins.
_TABLE: Final[tuple[tuple[Row, _Guard, bool, bool], ...]] = (
    (Row.FIRST_SYNC, lambda c: not c.stored.applied, True, False),
    # D10: a v2 hash without a fence (pruned by an old CRD) can still be compared by hash.
    (Row.NO_FENCE_SAME, lambda c: c.unfenced and c.same_hash, False, True),
    (Row.NO_FENCE_ROLLBACK, lambda c: c.unfenced and c.back, False, True),
    (Row.NO_FENCE_CHANGED, lambda c: c.unfenced, True, False),
    # B4: written by a version that hashed another way.
    (Row.MIGRATION_CHANGED, lambda c: c.foreign and not c.settled, True, False),
    (Row.MIGRATION_FAILED, lambda c: c.foreign and c.migration is Migration.FAILED, False, False),
    (
        Row.MIGRATION_CHANGED,
        lambda c: c.foreign and c.migration is Migration.DIFFERENT,
        True,
        False,
    ),
    (Row.MIGRATION_ADOPTED, lambda c: c.foreign, False, True),
    # U1: restored or recreated, but what it holds is what runs already.
    (
        Row.REBASED,
        lambda c: c.recreated and c.same_hash and c.back and c.primary_equal,
        False,
        True,
    ),
    (Row.RECREATED, lambda c: c.recreated, True, False),
    (Row.UNCHANGED, lambda c: c.same_hash and c.now.fence == c.old, False, False),
    (Row.VOLATILE, lambda c: c.same_hash and c.now.volatile, False, False),
    (Row.FENCE_REFRESHED, lambda c: c.same_hash, False, True),
    (Row.DRIFT_ABSORBED, lambda c: c.same_counter, False, True),
    (Row.SCALED_AND_DRIFTED, lambda c: c.same_revision, False, True),
    (Row.MANUAL_ROLLBACK, lambda c: c.back, False, True),
    (Row.CHANGED, lambda _: True, True, False),
)


def evaluate(
    stored: Tracking,
    now: Snapshot,
    *,
    migration: Migration = Migration.UNAVAILABLE,
    primary_equal: bool = False,
) -> Verdict:
    """Decide whether `now` is a new revision for a Canary that remembers `stored`.

    `primary_equal` says that the primary already is what the target's template makes (U1).
    """
    case = _Case(stored, now, migration, primary_equal)
    row, _, changed, persist = next(entry for entry in _TABLE if entry[1](case))
    return Verdict(
        row,
        changed,
        tracking_fields(stored, now) if persist else {},
        error=row is Row.MIGRATION_FAILED,
    )


def tracking_fields(stored: Tracking, now: Snapshot) -> JSON:
    """Return the status fields of a PERSIST (B5): an idle canary's promoted hash moves along with the applied one."""
    fields: JSON = {"lastAppliedSpec": now.hash, "lastTrackedRevision": str(now.fence)}
    if stored.promoted and stored.promoted == stored.applied:
        fields["lastPromotedSpec"] = now.hash
    return fields


def deployment_snapshot(target: JSON) -> Snapshot:
    """Return hash and fence of a Deployment.

    The revision annotation moves only with the template, so it proves more than the generation, which scaling moves too. But it is
    written after the fact: it counts only once the Deployment's controller has seen this generation, and never while paused.
    """
    meta, spec = target["metadata"], target["spec"]
    generation = int(meta.get("generation") or 0)
    observed = int((target.get("status") or {}).get("observedGeneration") or 0)
    revision = ""
    if not spec.get("paused") and observed == generation:
        revision = str((meta.get("annotations") or {}).get(REVISION) or "")
    fence = Fence(str(meta.get("uid") or ""), str(generation), revision)
    return Snapshot(template_hash(spec["template"]), fence)


def images_differ(one: JSON, other: JSON) -> bool:
    """Whether two pod specs differ in the image of any container, by name, or in the set of names."""
    return _images(one) != _images(other)


def _images(pod_spec: JSON) -> dict[tuple[str, str], str]:
    return {
        (group, container["name"]): container.get("image", "")
        for group in ("initContainers", "containers")
        for container in pod_spec.get(group) or []
    }
