"""Is the target another revision than the one that is remembered, and what does the primary run? (spec change-detection)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from harness.controller.core import configs, pruned
from harness.controller.core.canonical import PREFIX, template_hash
from harness.controller.core.change import Migration, Row, Tracking, Verdict, evaluate
from harness.controller.core.evidence import (
    last_status_write,
    revision_proven,
    template_written,
)
from harness.controller.core.migration import Review, review
from harness.controller.core.reading import Reading, revision_name
from harness.controller.core.snapshots import Fence, observed

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.templates import Difference


@dataclass(frozen=True)
class Changes(Reading):
    """What was read, and what has changed."""

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
        known = self.world.target is not None and self.primary_exists
        return (
            replace(stored, promoted=self.snapshot.hash)
            if known and not self.differences
            else stored
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the target's template is a new revision."""
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

    # -- configs -----------------------------------------------------------------------------------------------------

    @cached_property
    def stored_configs(self) -> JSON | None:
        """The checksums that the status remembers; None when it never had any."""
        stored: JSON | None = self.status.get("trackedConfigs")
        return stored

    @cached_property
    def configs_changed(self) -> bool:
        """Whether a ConfigMap or Secret that the template refers to is another one than was applied (D8, D9).

        Checksums that another controller or version wrote are not compared but taken over once, unless something shows that the
        content is newer: it computed them in another way.
        """
        if self.stored_configs is None or self.tracking.foreign:
            since = last_status_write(self.canary)
            objects = self.world.objects
            return bool(configs.moved_since(self.stored_configs, self.configs, objects, since))
        return configs.changed(self.stored_configs, self.configs)

    @cached_property
    def configs_due(self) -> bool:
        """Whether checksums are to be remembered for the first time."""
        fresh = self.stored_configs is None and bool(self.configs.references)
        return fresh and not self.tracking.foreign and not self.world.tracking_held

    @property
    def config_fields(self) -> JSON:
        """Status fields that remember the configs as they are; none for a template that refers to none and never did.

        Of a kind that is not read, what is remembered stays.
        """
        now, stored = self.configs, self.stored_configs
        if not now.kinds or (stored is None and not now.references):
            return {}
        unread = {k: v for k, v in (stored or {}).items() if k.partition("/")[0] not in now.kinds}
        return {"trackedConfigs": unread | dict(now.tracked)}

    @cached_property
    def applied_revision(self) -> str:
        """Name of the revision that the status calls applied."""
        stored, kinds = self.stored_configs or {}, self.configs.kinds
        read = {k: v for k, v in stored.items() if k.partition("/")[0] in kinds}
        return revision_name(self.tracking.applied, read)

    # -- what is due to be remembered --------------------------------------------------------------------------------

    @cached_property
    def tracking_due(self) -> bool:
        """Whether there is something to remember, and now is the time.

        Not while the target's controller has yet to take up its last change: the fence would lack its revision, and be written
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
        taken_up = not self.workload.pods or observed(self.target)
        return not self.world.tracking_held and taken_up

    # -- the primary -------------------------------------------------------------------------------------------------

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Where target and primary differ in more than the primary's rewriting."""
        return self.workload.differences(self.pair)

    @cached_property
    def review(self) -> Review:
        """Whether the target changed while nobody watched: since the last status, or since the promotion under way.

        A primary of ours names the revision it was made from, which is better evidence than any time.
        """
        if not self.primary_exists:
            return Review(Migration.FAILED)
        if self.primary_is_ours:
            return Review(Migration.DIFFERENT if self.primary_elsewhere else Migration.EQUAL)
        if not self.workload.pods or self.world.primary is None:
            return Review(Migration.EQUAL, self.differences)
        copied, primary = not self.tracking.settled, self.world.primary
        since = template_written(primary) if copied else last_status_write(self.canary)
        revisions = self.world.revisions or ()
        return review(self.names, self.target, primary, since, revisions, copied=copied)

    @cached_property
    def revisions_needed(self) -> bool:
        """Whether ReplicaSets have to be read before the review can be made."""
        known = self.world.revisions is not None or not self.primary_exists
        return not known and not self.primary_is_ours and bool(self.differences)

    @cached_property
    def primary_revision(self) -> str:
        """Name of the revision that the primary was copied from; empty when unknown."""
        return self.workload.revision_of(self.pair) if self.primary_exists else ""

    @cached_property
    def primary_is_ours(self) -> bool:
        """Whether this controller made the primary's template, so that it names its revision."""
        return bool(self.primary_revision)

    @cached_property
    def primary_runs_target(self) -> bool:
        """Whether the primary runs what the target holds, apart from fields that its maker did not know (U1, D11)."""
        return self.primary_exists and all(found.lost for found in self.differences)

    @cached_property
    def primary_elsewhere(self) -> bool:
        """Whether the primary is known to hold another revision than the target.

        After a promotion that failed, even the promoted template has to be promoted again. Of configs only the digest tells, as the
        template names them and no more.
        """
        if not self.primary_is_ours or self.primary_revision == self.pair.revision:
            return False
        held, wanted = (
            revision.partition(".")[2] for revision in (self.primary_revision, self.pair.revision)
        )
        return held != wanted or not self.workload.holds(self.pair)

    @cached_property
    def overtaken(self) -> bool:
        """Whether the target moved on after the primary got its template (D2, G2)."""
        return self.review.migration is Migration.DIFFERENT

    @cached_property
    def primary_hash(self) -> str:
        """A hash that stands for what the primary runs: of the template it was made from, or one that no target can have."""
        known = self.primary_revision.partition(".")[0]
        if known or self.world.primary is None or not self.workload.pods:
            return known
        return template_hash(self.world.primary["spec"]["template"])

    @cached_property
    def new_revision(self) -> bool:
        """Whether a run must start, or start over."""
        if self.verdict.changed or self.configs_changed:
            return True
        return self.verdict.rolled_back and self.primary_elsewhere

    @cached_property
    def primary_carries_applied(self) -> bool:
        """Whether the primary holds the revision under promotion; taken for granted when another controller promoted it."""
        return self.primary_revision in ("", self.applied_revision)
