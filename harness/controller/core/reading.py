"""What was read in one pass, and what follows from it directly: settings, names, the kind of target, the router, configs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from harness.controller.core import autoscalers
from harness.controller.core import conditions as cond
from harness.controller.core.configs import Configs, Copies, copies, digest, look, rewrite
from harness.controller.core.decision import JSON, Note, Severity, World
from harness.controller.core.names import Names, names_of
from harness.controller.core.ownership import controller_of, foreign
from harness.controller.core.routers.base import Router, Split, Wish
from harness.controller.core.routers.registry import router_for
from harness.controller.core.services import REVISION_LABEL
from harness.controller.core.settings import Settings
from harness.controller.core.strategies.traffic import RUNNING, split_of
from harness.controller.core.support import Refusal, refusal
from harness.controller.core.targets.base import Pair, Target
from harness.controller.core.targets.registry import target_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.snapshots import Snapshot


@dataclass(frozen=True)
class Reading:
    """What was read, and the time."""

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
    def names(self) -> Names:
        """All names."""
        return names_of(self.canary, self.world.target, self.world.policy)

    @cached_property
    def refused(self) -> Refusal | None:
        """Why the Canary cannot be served, if so."""
        return refusal(self.canary, self.names, self.world)

    @cached_property
    def workload(self) -> Target:
        """The kind of target; rows that ask come after the row for a refused Canary."""
        found = target_for(self.canary)
        if found is None:
            msg = f"a target of a kind that is not implemented: {self.canary['spec'].get('targetRef')}"
            raise LookupError(msg)
        return found

    @cached_property
    def router(self) -> Router:
        """The way to split traffic; rows that ask come after the row for a refused Canary."""
        found = router_for(self.canary)
        if found is None:
            msg = f"a provider that is not implemented: {self.canary['spec'].get('provider')}"
            raise LookupError(msg)
        return found

    @cached_property
    def settings(self) -> Settings:
        """What the Canary asks for."""
        router = router_for(self.canary)
        splits = router is not None and router.splits
        return Settings.of(
            self.canary, splits=splits, mirrors=router is not None and router.mirrors
        )

    @property
    def target(self) -> JSON:
        """The target; rows that ask come after the row for a missing one."""
        if self.world.target is None:
            msg = f"{self.kind} {self.names.target!r} was asked about but not read"
            raise LookupError(msg)
        return self.world.target

    @property
    def primary(self) -> JSON:
        """The primary; rows that ask come after the rows for a missing one."""
        if self.world.primary is None:
            msg = f"{self.kind} {self.names.primary!r} was asked about but not read"
            raise LookupError(msg)
        return self.world.primary

    @property
    def kind(self) -> str:
        """The kind of target, as people write it."""
        return self.workload.kind

    @property
    def target_name(self) -> str:
        """Kind and name of the target."""
        return f"{self.kind} {self.names.target}"

    @property
    def primary_name(self) -> str:
        """What serves as primary, in words; a Knative Service has no second one."""
        if self.workload.plural == "kservices":
            return f"The primary revision of {self.target_name}"
        if not self.workload.copies:
            held = self.workload.remembered(self.pair).get("parked") or {}
            return f"ReplicaSet {held['name']}" if held else f"The ReplicaSet of {self.target_name}"
        return f"{self.kind} {self.names.primary}"

    @property
    def primary_short(self) -> str:
        """The same without its kind, where the kind goes without saying."""
        return self.names.primary if self.workload.copies else self.primary_name

    @property
    def serves(self) -> str:
        """Say that the primary serves."""
        return f"{self.primary_name} serves"

    @property
    def goes(self) -> str:
        """Say that the target goes to zero, where it can."""
        return f", {self.names.target} goes to zero" if self.workload.scales else ""

    @cached_property
    def primary_exists(self) -> bool:
        """Whether there is a primary; a Knative Service has one revision of its own in that role."""
        return self.workload.exists(self.pair)

    @cached_property
    def foreign_primary(self) -> str:
        """Why an object with the primary's name is not ours, in words; empty when it is.

        One that nobody controls is ours if it selects what a primary does: what a deleted Canary leaves when its objects are kept. Anything
        else is an application of the user's own that happens to have the name.
        """
        primary = self.world.primary
        if primary is None:
            return ""
        if owner := foreign(primary, self.canary):
            return f"belongs to {owner}"
        if not self.workload.pods or controller_of(primary) is not None:
            return ""
        wanted = self.names.primary_value
        selected = (primary["spec"].get("selector") or {}).get("matchLabels") or {}
        if selected.get(self.names.label) == wanted:
            return ""
        return f"belongs to no Canary and does not select {self.names.label}={wanted}"

    @cached_property
    def snapshot(self) -> Snapshot:
        """Hash and fence of the target as read in this pass; never of a second read (D6)."""
        return self.workload.snapshot(self.target)

    @cached_property
    def configs(self) -> Configs:
        """ConfigMaps and Secrets that the target's template refers to."""
        if not self.workload.pods:
            return Configs()
        return look(self.target["spec"]["template"], self.world.objects)

    @cached_property
    def copies(self) -> Copies:
        """What has to be written so that the primary's configs hold what the target's hold now; nothing where both share what cannot change."""
        if not self.workload.copies:
            return Copies()
        return copies(self.canary, self.names, self.configs, self.world.objects, self.world.policy)

    @cached_property
    def revision(self) -> str:
        """What the primary's `flagger-id` says when it was made from the target as it is: hash, and digest of its configs."""
        return revision_name(self.snapshot.hash, self.configs.tracked)

    @cached_property
    def scaler(self) -> autoscalers.Scaler | None:
        """The autoscaler that the Canary refers to; None when it refers to none."""
        return autoscalers.of(self.canary, self.world.objects)

    @cached_property
    def pair(self) -> Pair:
        """Target and primary, for the kind of target."""
        scaler = self.scaler
        return Pair(
            self.canary,
            self.names,
            self.target,
            self.world.primary,
            self.world.objects,
            self.revision if self.workload.pods else self.snapshot.hash,
            partial(rewrite, configs=self.configs),
            scaled=scaler is not None,
            least=scaler.least if scaler is not None else 1,
            policy=self.world.policy,
            rests=scaler is not None and scaler.rests,
            selected=self._selected,
        )

    @property
    def _selected(self) -> frozenset[str]:
        selectors = [
            service["spec"].get("selector") or {} for service in self.world.services.values()
        ]
        return frozenset(str(one[REVISION_LABEL]) for one in selectors if REVISION_LABEL in one)

    @cached_property
    def wish(self) -> Wish:
        """What the router is to do, by the status as it is."""
        return self.wish_for(split_of(self.status))

    def wish_for(self, split: Split, status: JSON | None = None) -> Wish:
        """Return what the router is to do for another split, or another status."""
        canary = self.canary if status is None else {**self.canary, "status": status}
        state = canary.get("status") or {}
        return Wish(
            canary,
            self.names,
            split,
            self.world.objects,
            self.world.target,
            running=state.get("phase") in RUNNING and cond.find(state, cond.REPAIRING) is None,
        )

    @cached_property
    def route_waits(self) -> str:
        """What the route still waits for; empty when it is in force."""
        return self.router.waiting(self.wish)

    def note(self, severity: Severity, message: str) -> Note:
        """Return an event of this stay in this phase."""
        generation = self.canary["metadata"].get("generation")
        moment = self.status.get("lastTransitionTime")
        return Note(severity, message, f"{self.phase}|{moment}|{generation}|{message}")


def revision_name(hash_: str, tracked: Mapping[str, str] | None) -> str:
    """Return the name of a revision: the template's hash, and a digest of its configs when there are any."""
    short = digest(tracked or {})
    return f"{hash_}.{short}" if short else hash_
