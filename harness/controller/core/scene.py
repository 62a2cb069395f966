"""One pass's view of a Canary: every fact that the transition table asks about, worked out once, on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from harness.controller.core import conditions as cond
from harness.controller.core import primary as primaries
from harness.controller.core import pruned
from harness.controller.core.canonical import PREFIX, template_hash
from harness.controller.core.change import Migration, Row, Tracking, Verdict, evaluate
from harness.controller.core.decision import JSON, Note, Severity, World
from harness.controller.core.evidence import (
    last_status_write,
    revision_proven,
    template_written,
)
from harness.controller.core.migration import Review, review
from harness.controller.core.moments import seconds
from harness.controller.core.names import Names, names_of
from harness.controller.core.ownership import foreign
from harness.controller.core.readiness import Readiness, rolled_out, wanted
from harness.controller.core.settings import Settings
from harness.controller.core.snapshots import Fence, Snapshot, deployment_snapshot, observed
from harness.controller.core.support import Refusal, refusal
from harness.controller.core.templates import Difference, differences


@dataclass(frozen=True)
class Scene:
    """What was read, the time, and what follows from both."""

    world: World
    canary: JSON
    now: float
    """Seconds since the epoch."""

    @cached_property
    def status(self) -> JSON:
        """The Canary's raw status."""
        return self.canary.get("status") or {}

    @cached_property
    def phase(self) -> str:
        """The current phase; empty for a Canary never seen before."""
        return str(self.status.get("phase") or "")

    @cached_property
    def settings(self) -> Settings:
        """What the Canary asks for."""
        return Settings.of(self.canary)

    @cached_property
    def names(self) -> Names:
        """All names."""
        return names_of(self.canary, self.world.target)

    @cached_property
    def refused(self) -> Refusal | None:
        """Why the Canary cannot be served, if so."""
        return refusal(self.canary, self.names, self.world.target)

    @property
    def target(self) -> JSON:
        """The target; rows that ask come after the row for a missing one."""
        if self.world.target is None:
            msg = f"Deployment {self.names.target!r} was asked about but not read"
            raise LookupError(msg)
        return self.world.target

    @property
    def primary(self) -> JSON:
        """The primary; rows that ask come after the rows for a missing one."""
        if self.world.primary is None:
            msg = f"Deployment {self.names.primary!r} was asked about but not read"
            raise LookupError(msg)
        return self.world.primary

    @cached_property
    def foreign_primary(self) -> str:
        """The other controller that owns the primary, if there is one."""
        return foreign(self.world.primary, self.canary) if self.world.primary else ""

    @cached_property
    def initialised(self) -> bool:
        """Whether the primary has ever taken over, so that the apex selects it and the target may be scaled down (P1)."""
        return bool(self.status.get("lastPromotedSpec")) or self.phase not in (
            "",
            "Initializing",
            "Failed",
        )

    @cached_property
    def snapshot(self) -> Snapshot:
        """Hash and fence of the target as read in this pass; never of a second read (D6)."""
        return deployment_snapshot(self.target)

    @cached_property
    def kept_fence(self) -> str:
        """The fence that had to be kept in an annotation (D10); empty when there is none."""
        return pruned.kept_fence(self.canary)

    @cached_property
    def tracking(self) -> Tracking:
        """What is remembered of the target.

        What another controller promoted is remembered in its form; when the primary still runs what the target holds, that is it.
        """
        stored = Tracking.of(self.status, self.kept_fence)
        if not stored.promoted or stored.foreign or stored.promoted.startswith(PREFIX):
            return stored
        known = self.world.target is not None and self.world.primary is not None
        return (
            replace(stored, promoted=self.snapshot.hash)
            if known and not self.differences
            else stored
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the target is a new revision."""
        claimed = self._claimed
        if claimed.row is Row.SCALED_AND_DRIFTED and not self._revision_proven:
            # The annotation may name the revision before: without a ReplicaSet that shows it, a change must not be absorbed.
            fence = replace(self.snapshot.fence, revision="")
            return evaluate(self.tracking, replace(self.snapshot, fence=fence))
        return claimed

    @property
    def proof_needed(self) -> bool:
        """Whether ReplicaSets have to be read before the revision annotation can be believed (row 8)."""
        return self.world.revisions is None and self._claimed.row is Row.SCALED_AND_DRIFTED

    @cached_property
    def _revision_proven(self) -> bool:
        return revision_proven(self.target, self.world.revisions or ())

    @cached_property
    def _claimed(self) -> Verdict:
        """The verdict if the target's revision annotation is up to date."""
        stored, now = self.tracking, self.snapshot
        # Templates are compared only for the rows that ask: it is the costly part of a pass.
        migrates = stored.foreign and stored.settled
        recreated = Fence.parse(stored.fence).uid != now.fence.uid
        return evaluate(
            stored,
            now,
            migration=self.review.migration if migrates else Migration.UNAVAILABLE,
            primary_equal=recreated and self.primary_runs_target,
        )

    @cached_property
    def tracking_due(self) -> bool:
        """Whether there is something to remember, and now is the time.

        Not while the Deployment's controller has yet to take up its last change: the fence would lack its revision, and be written
        twice. Nothing depends on it meanwhile; the verdict stands.
        """
        return bool(self.verdict.persist) and self._may_track

    @property
    def fence_only(self) -> bool:
        """Whether nothing but the fence is stale, which can wait for the next status write."""
        return self.verdict.row is Row.FENCE_REFRESHED

    @cached_property
    def fence_returns(self) -> bool:
        """Whether a fence that was kept elsewhere can go back where it belongs (D10)."""
        homeless = bool(self.kept_fence) and not self.status.get(pruned.FENCE_FIELD)
        return homeless and not self.world.prunes_fence and self._may_track

    @property
    def _may_track(self) -> bool:
        return not self.world.tracking_held and observed(self.target)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Where target and primary differ in more than the primary's rewriting."""
        return differences(self.names, self.target, self.primary)

    @cached_property
    def review(self) -> Review:
        """Whether the target changed while nobody watched: since the last status, or since the promotion under way.

        A primary of ours names the revision it was made from, which is better evidence than any time.
        """
        if self.world.primary is None:
            return Review(Migration.FAILED)
        if self.primary_is_ours:
            return Review(Migration.DIFFERENT if self.primary_elsewhere else Migration.EQUAL)
        copied = not self.tracking.settled
        since = template_written(self.primary) if copied else last_status_write(self.canary)
        revisions = self.world.revisions or ()
        return review(self.names, self.target, self.primary, since, revisions, copied=copied)

    @cached_property
    def revisions_needed(self) -> bool:
        """Whether ReplicaSets have to be read before the review can be made."""
        known = self.world.revisions is not None or self.world.primary is None
        return not known and not self.primary_is_ours and bool(self.differences)

    @cached_property
    def primary_is_ours(self) -> bool:
        """Whether this controller made the primary's template, so that it names its revision."""
        return bool(self.primary_revision)

    @cached_property
    def primary_runs_target(self) -> bool:
        """Whether the primary runs what the target holds, apart from fields that its maker did not know (U1, D11)."""
        return self.world.primary is not None and all(found.lost for found in self.differences)

    @cached_property
    def primary_holds_target(self) -> bool:
        """Whether the primary's template is exactly what the target's makes."""
        return self.world.primary is not None and primaries.holds(
            self.names, self.target, self.primary
        )

    @cached_property
    def primary_revision(self) -> str:
        """Hash of the template that the primary was copied from; empty when unknown."""
        return primaries.revision_of(self.world.primary) if self.world.primary else ""

    @cached_property
    def primary_elsewhere(self) -> bool:
        """Whether the primary is known to hold another revision than the target.

        After a promotion that failed, even the promoted template has to be promoted again.
        """
        known = self.primary_is_ours and self.primary_revision != self.snapshot.hash
        return known and not self.primary_holds_target

    @cached_property
    def overtaken(self) -> bool:
        """Whether the target moved on after the primary got its template (D2, G2)."""
        return self.review.migration is Migration.DIFFERENT

    @cached_property
    def primary_hash(self) -> str:
        """A hash that stands for what the primary runs: of the template it was made from, or one that no target can have."""
        return self.primary_revision or template_hash(self.primary["spec"]["template"])

    @cached_property
    def new_revision(self) -> bool:
        """Whether a run must start, or start over."""
        return self.verdict.changed or (self.verdict.rolled_back and self.primary_elsewhere)

    @cached_property
    def primary_carries_applied(self) -> bool:
        """Whether the primary holds the revision under promotion; taken for granted when another controller promoted it."""
        return self.primary_revision in ("", self.tracking.applied)

    @cached_property
    def nothing_to_run(self) -> bool:
        """Whether target and primary are both at zero: a run would judge no pod (P12)."""
        return wanted(self.target) == 0 and wanted(self.primary) == 0

    @cached_property
    def target_ready(self) -> Readiness:
        """Whether the target is rolled out; at zero it is not."""
        if wanted(self.target) == 0:
            return Readiness(f"{self.names.target}: scaled to zero")
        return rolled_out(self.target, self.settings.canary_ready)

    @cached_property
    def primary_ready(self) -> Readiness:
        """Whether the primary is rolled out; at zero only when the target is at zero too (P12, A12)."""
        if wanted(self.primary) == 0 and wanted(self.target) > 0:
            return Readiness(f"{self.names.primary}: scaled to zero")
        return rolled_out(self.primary, self.settings.primary_ready)

    @cached_property
    def ready_since(self) -> float | None:
        """Since when the target is ready, as the status says; None when it does not say so."""
        entry = cond.find(self.status, cond.CANARY_READY) or {}
        return seconds(entry.get("lastTransitionTime")) if entry.get("status") == "True" else None

    @cached_property
    def clock(self) -> float:
        """When the deadline began to count (P11): scale-up, promotion, or the creation of the primary.

        Losing readiness for a moment does not restart it (case C11: flapping pods must end too), unless the target had been ready for
        as long as the deadline itself.
        """
        ready = cond.find(self.status, cond.CANARY_READY) or {}
        lost = ready.get("lastTransitionTime") if ready.get("reason") == cond.LOST else None
        times = (
            seconds(lost),
            cond.since(self.status, cond.PROMOTED, "lastUpdateTime"),
            seconds(self.status.get("lastTransitionTime")),
        )
        return next((time for time in times if time is not None), self.now)

    @cached_property
    def deadline_in(self) -> float:
        """Seconds until the deadline; not positive when it has passed."""
        return self.clock + self.settings.deadline - self.now

    @cached_property
    def iterations(self) -> int:
        """Iterations passed in this run."""
        return int(self.status.get("iterations") or 0)

    @cached_property
    def due_in(self) -> float:
        """Seconds until the next iteration counts: one interval after readiness, or after the one before."""
        times = (self.ready_since, seconds(self.status.get("lastTransitionTime")))
        last = max((time for time in times if time is not None), default=self.now)
        return last + self.settings.interval - self.now

    @cached_property
    def too_many_failed_checks(self) -> bool:
        """Whether the threshold is reached."""
        return int(self.status.get("failedChecks") or 0) >= self.settings.threshold

    def note(self, severity: Severity, message: str) -> Note:
        """Return an event of this stay in this phase."""
        generation = self.canary["metadata"].get("generation")
        moment = self.status.get("lastTransitionTime")
        return Note(severity, message, f"{self.phase}|{moment}|{generation}|{message}")
