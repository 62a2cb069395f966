"""One pass's view of a Canary: every fact that the transition table asks about, worked out once, on demand.

What was read is in `reading.py`, what has changed in `changes.py`; here is how far a run has come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from harness.controller.core import checkup, frozen, line, services, spread, warnings
from harness.controller.core import conditions as cond
from harness.controller.core.analysis import webhooks
from harness.controller.core.changes import Changes
from harness.controller.core.checkup import Checkup, Moment, Plan
from harness.controller.core.moments import seconds
from harness.controller.core.readiness import Readiness
from harness.controller.core.snapshots import Fence, observed
from harness.controller.core.status import ANALYSED
from harness.controller.core.strategies.traffic import FULL, kept_canary, weight_of
from harness.controller.core.targets.knative import latest_created

LONGEST_DRAIN = 30.0
"""Seconds; an analysis interval if that is shorter. Every node has to hear of it before a pod of the old ones stops to listen."""
_ROLLOUT = "confirm-rollout"
_PROMOTION = "confirm-promotion"
_INCREASE = "confirm-traffic-increase"


@dataclass(frozen=True)
class Scene(Changes):
    """What was read, the time, and what follows from both."""

    @cached_property
    def initialised(self) -> bool:
        """Whether the primary has ever taken over, so that the apex selects it and the target may be scaled down (P1)."""
        return bool(self.status.get("lastPromotedSpec")) or self.phase not in (
            "",
            "Initializing",
            "Failed",
        )

    # -- readiness and the clock -------------------------------------------------------------------------------------

    @cached_property
    def nothing_to_run(self) -> bool:
        """Whether target and primary are both at zero: a run would judge no pod (P12)."""
        return self.workload.empty(self.pair)

    @cached_property
    def target_idle(self) -> bool:
        """Whether the target has no pods, on purpose."""
        return self.workload.idle(self.pair)

    @cached_property
    def target_ready(self) -> Readiness:
        """Whether the revision under analysis is rolled out; at zero it is not."""
        return self.workload.canary_ready(self.pair, self.settings.canary_ready)

    @cached_property
    def primary_ready(self) -> Readiness:
        """Whether the primary is rolled out; at zero only when the target is at zero too (P12, A12)."""
        return self.workload.primary_ready(self.pair, self.settings.primary_ready)

    @cached_property
    def reverted(self) -> Readiness:
        """Whether the target could serve alone."""
        if not self.workload.pods:
            return Readiness()
        rolled = self.workload.rolled_out(self.target, self.settings.canary_ready)
        needed = self.workload.expected(self.target) * self.settings.canary_ready // FULL
        counted = self.world.ready_pods
        if rolled.ready and counted is not None and counted < needed:
            return Readiness(f"{self.names.target}: {counted} of {needed} pods are ready")
        return rolled

    @property
    def to_be_counted(self) -> bool:
        """Whether the target's pods have to be counted before the traffic is theirs."""
        return self.workload.pods and self.world.ready_pods is None

    @cached_property
    def ready_since(self) -> float | None:
        """Since when the target is ready, as the status says; None when it does not say so."""
        entry = cond.find(self.status, cond.CANARY_READY) or {}
        return seconds(entry.get("lastTransitionTime")) if entry.get("status") == "True" else None

    @cached_property
    def clock(self) -> float:
        """When the deadline began to count (P11): scale-up, promotion, or the creation of the primary.

        Losing readiness does not restart it (case C11: flapping pods must end too), unless the target had met its deadline and had been
        ready since for as long as the deadline. More pods by another number of replicas have the deadline for themselves.
        """
        ready = cond.find(self.status, cond.CANARY_READY) or {}
        if ready.get("reason") == cond.RESCALED:
            return seconds(ready.get("lastTransitionTime")) or self.now
        times = (
            cond.since(self.status, cond.UNSTEADY),
            cond.since(self.status, cond.PROMOTED, "lastUpdateTime"),
            seconds(self.status.get("lastTransitionTime")),
        )
        begun = next((time for time in times if time is not None), self.now)
        made = ((self.world.primary or {}).get("metadata") or {}).get("creationTimestamp")
        if self.phase == "Initializing" and made:
            # A quota or a policy may have kept it from being made; that time is none that its pods had.
            return max(begun, seconds(made) or begun)
        return begun

    @cached_property
    def deadline_in(self) -> float:
        """Seconds until the deadline; not positive when it has passed."""
        return self.clock + self.settings.deadline - self.now

    @cached_property
    def rescaled(self) -> bool:
        """Whether the target was changed since the status was last written, but not its template: the number of pods, or its traffic.

        Its own controller has to take that up first, and new pods have to start; those that were ready still are. Nodes that join
        ask a DaemonSet for more pods in the same way.
        """
        if spread.joined(self.target, self.status, self.settings.canary_ready):
            return self.snapshot.hash == self.tracking.applied
        stored = Fence.parse(self.tracking.fence)
        moved = self.workload.pods and stored.counter != self.snapshot.fence.counter
        return (moved or not observed(self.target)) and self.snapshot.hash == self.tracking.applied

    @cached_property
    def steady_in(self) -> float:
        """Seconds until a target that lost readiness in this run has been ready for as long as the deadline; 0 when it never did."""
        if cond.find(self.status, cond.UNSTEADY) is None or self.ready_since is None:
            return 0.0
        return max(self.ready_since + self.settings.deadline - self.now, 0.0)

    @cached_property
    def drained_in(self) -> float:
        """Seconds until pods that served before the last promotion may go: the Services were led away from them just now."""
        begun = cond.since(self.status, cond.PROMOTED, "lastUpdateTime") or self.now
        return begun + min(self.settings.interval, LONGEST_DRAIN) - self.now

    # -- how far the run has come ------------------------------------------------------------------------------------

    @cached_property
    def iterations(self) -> int:
        """Iterations passed in this run."""
        return int(self.status.get("iterations") or 0)

    @cached_property
    def weight(self) -> int:
        """The canary's share of the traffic."""
        return weight_of(self.status)

    @cached_property
    def failed_checks(self) -> int:
        """Checks that failed in this run."""
        return int(self.status.get("failedChecks") or 0)

    @cached_property
    def mirroring(self) -> bool:
        """Whether the canary gets a copy of the traffic."""
        return cond.find(self.status, cond.MIRRORING) is not None

    @cached_property
    def repairing(self) -> bool:
        """Whether this run repairs a promotion that failed: all traffic stays with the canary until the primary is ready again (P2)."""
        return cond.find(self.status, cond.REPAIRING) is not None

    @cached_property
    def repairs(self) -> bool:
        """Whether a run that starts now is such a one. Where traffic cannot be split, nothing can be kept from the primary."""
        kept = self.phase == "Waiting" or (self.phase == "Failed" and kept_canary(self.status))
        return self.router.splits and kept and self.weight == FULL and not self.primary_ready.ready

    @cached_property
    def routes_kept(self) -> bool:
        """Whether a frozen revision, or one that would have been, left its traffic to the present one."""
        return cond.find(self.status, cond.ROUTES_KEPT) is not None

    @property
    def replacing(self) -> bool:
        """Whether this run analyses a revision that took such a one's place."""
        return self.routes_kept and self.phase != frozen.PHASE

    @property
    def keeps_routes(self) -> bool:
        """Whether a run that begins now leaves the traffic where it is."""
        running = self.settings.freeze and self.phase in ANALYSED and bool(self.weight)
        return self.routes_kept or running

    @cached_property
    def order(self) -> frozen.Order:
        """What somebody wants to happen to a frozen canary."""
        return frozen.order(self.canary)

    @cached_property
    def given_up(self) -> bool:
        """Whether a rollback hook has asked for the end of a freeze."""
        return (cond.find(self.status, cond.ROUTES_KEPT) or {}).get("status") == "False"

    @cached_property
    def frozen_ready_told(self) -> bool:
        """What was said last of the frozen pods."""
        entry = cond.find(self.status, cond.CANARY_READY) or {}
        return entry.get("status") == "True"

    @cached_property
    def begun(self) -> bool:
        """Whether the analysis has begun: the hooks before it agreed, and the first traffic was shifted.

        A blue-green run without such hooks and without mirroring begins with readiness alone. What was counted or shifted since tells
        as well, when readiness was lost in between.
        """
        entry = cond.find(self.status, cond.CANARY_READY) or {}
        shifted = self.weight and not (self.repairing or self.replacing)
        went_on = bool(self.iterations or shifted or self.mirroring)
        return went_on or entry.get("reason") == cond.ANALYSING or not self._has_beginning

    @property
    def _has_beginning(self) -> bool:
        moves = self.settings.strategy != "blue-green" or self.settings.mirror
        return moves or bool(webhooks.hooks(self.canary, "pre-rollout"))

    @cached_property
    def at_end(self) -> bool:
        """Whether one more check that passes completes the analysis."""
        if self.settings.strategy == "weights":
            if self.replacing:
                return self.iterations + 1 >= len(self.settings.steps)
            return self.weight >= self.settings.last_weight
        return self.iterations + 1 >= self.settings.iterations

    @property
    def shifts_all(self) -> bool:
        """Whether all traffic goes to the canary before the promotion: blue-green with a router that can, unless it is there already."""
        can = self.router.splits and self.settings.strategy == "blue-green"
        return can and not self.repairing

    @cached_property
    def due_in(self) -> float:
        """Seconds until the next step of the analysis: one interval after readiness, or after the step before."""
        times = (self.ready_since, seconds(self.status.get("lastTransitionTime")))
        last = max((time for time in times if time is not None), default=self.now)
        wait = self.settings.interval
        if self.replacing and not (self.iterations or self.failed_checks):
            # What metrics saw of the revision before is none of this one's (spec freeze-and-adopt 3.3).
            wait = max(wait, frozen.window(self.canary))
        if self.world.policy.limited and self._first_check:
            wait += self.settings.interval * line.jitter(self.canary, self.applied_revision)
        return last + wait - self.now

    @property
    def _first_check(self) -> bool:
        """Whether no check of this run has been made yet."""
        held = cond.find(self.status, cond.HELD) is not None
        if not self.begun or held or self.iterations or self.failed_checks:
            return False
        if self.replacing or self.repairing:
            return True
        if self.settings.mirror:
            return self.mirroring
        return self.settings.strategy != "weights" or self.weight == self.settings.following(0)

    @cached_property
    def due(self) -> bool:
        """Whether the next step is due. What is complete and asks nobody needs no further interval."""
        counted = (
            self.settings.strategy != "weights" and self.iterations >= self.settings.iterations
        )
        return self._fresh or self.due_in <= 0 or (counted and not self._asks)

    @property
    def _fresh(self) -> bool:
        """Whether the run has yet to begin and nobody has been asked: then no interval is waited for."""
        return not (self.begun or self.failed_checks or cond.find(self.status, cond.HELD))

    @property
    def _asks(self) -> bool:
        analysis = self.canary["spec"].get("analysis") or {}
        return bool(analysis.get("webhooks") or analysis.get("metrics"))

    @cached_property
    def too_many_failed_checks(self) -> bool:
        """Whether the threshold is reached."""
        return self.failed_checks >= self.settings.threshold

    # -- questions ---------------------------------------------------------------------------------------------------

    def moment(self, more: str = "") -> Moment:
        """Return what a round of questions needs to know.

        A round that a suspension or another edit of the spec interrupted begins anew: answers of before may be days old.
        """
        parts = (
            self.canary["metadata"].get("generation"),
            self.phase,
            self.status.get("lastTransitionTime"),
            self.iterations,
            self.weight,
            self.failed_checks,
            more,
        )
        return Moment(
            self.canary,
            self.world.answers,
            "/".join(str(part) for part in parts),
            self.phase,
            self.settings.interval,
            self.now,
            latest_created(self.target) if self.workload.plural == "kservices" else "",
            patience=self.world.policy.no_verdict_timeout,
            unmeasured_since=cond.since(self.status, cond.UNMEASURED),
        )

    @cached_property
    def start_checkup(self) -> Checkup:
        """What the hooks before a run say; they were asked when the wait began, and are again an interval later."""
        if self.phase == "Waiting" and self.due_in > 0 and webhooks.hooks(self.canary, _ROLLOUT):
            return Checkup("held", gate=_ROLLOUT, again_in=self.due_in)
        plan = Plan(rollback=self.phase == "Waiting", gates=(_ROLLOUT,))
        return checkup.examine(self.moment(self.pair.revision), plan)

    @cached_property
    def checkup(self) -> Checkup:
        """What hooks and metrics say at this step of the analysis."""
        return checkup.examine(self.moment(), self._plan)

    @property
    def _plan(self) -> Plan:
        waiting = self.phase == "WaitingPromotion"
        weighted = self.settings.strategy == "weights" and not waiting
        if not self.begun:
            increase = weighted and not self.settings.mirror
            return Plan(rollback=True, pre_rollout=True, gates=(_INCREASE,) * increase)
        increase = weighted and not self.mirroring
        gates = (_INCREASE,) * increase + (_PROMOTION,) * (self.at_end and not self.mirroring)
        if self.shifted_all:
            gates = ()
        if self.at_end and not self.mirroring and self.steady_in > 0:
            return Plan(rollback=True, checks=True, unsteady=True)
        return Plan(rollback=True, checks=True, gates=gates)

    @property
    def shifted_all(self) -> bool:
        """Whether the promotion was allowed already, and all traffic is on the canary."""
        allowed = not self.replacing or self.iterations >= self.settings.iterations
        return self.shifts_all and self.weight == FULL and allowed

    @cached_property
    def frozen_checkup(self) -> Checkup:
        """What the hooks say while it is frozen: those for a roll-back, and, before another revision, confirm-rollout."""
        gates = (_ROLLOUT,) * self.new_revision
        held = cond.find(self.status, cond.HELD) is not None
        since = seconds(self.status.get("lastTransitionTime")) or self.now
        due = since + self.settings.interval - self.now
        if gates and held and due > 0 and webhooks.hooks(self.canary, _ROLLOUT):
            return Checkup("held", gate=_ROLLOUT, again_in=due)
        if not gates and not webhooks.hooks(self.canary, "rollback"):
            return Checkup("held")
        moment = self.moment(self.pair.revision)
        if gates:
            return checkup.examine(moment, Plan(rollback=True, gates=gates))
        # A round in which no hook asks for a roll-back is made again an interval later.
        return checkup.examine(moment, Plan(rollback=True, unsteady=True))

    @cached_property
    def after(self) -> Checkup:
        """How the hooks after the run went."""
        moment = replace(self.moment(), occasion=f"after/{self.status.get('lastTransitionTime')}")
        told = self.phase if self.phase in ("Succeeded", frozen.PHASE) else "Failed"
        return checkup.after(moment, told)

    # -- what waits, what cannot work --------------------------------------------------------------------------------

    @cached_property
    def change_pending(self) -> bool:
        """Whether the target has changed while the Canary is suspended; a status of another controller is not judged."""
        judged = self.world.target is not None and self.refused is None and self.initialised
        return judged and not self.tracking.foreign and self.new_revision

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What cannot work as it is, in sentences (O5)."""
        found: tuple[str, ...] = ()
        if self.workload.pods:
            made = services.unchangeable(self.canary, self.names, self.world.services)
            template = self.target["spec"]["template"]
            found = (
                warnings.of(self.pair, beside=not self.workload.copies)
                + made
                + warnings.shared(template, self.world.shared)
            )
        if self.scaler is not None and self.scaler.warning:
            found += (f"{self.scaler.warning}.",)
        if self.settings.freeze and self.router.splits and (gap := frozen.gap(self.pair)):
            found += (gap,)
        if self.phase == frozen.PHASE and self.order.problem:
            found += (self.order.problem,)
        if self.world.policy.limited and (ignored := line.problem(self.canary)):
            found += (ignored,)
        if self.world.refused_write:
            found += (f"The API server refuses a write: {self.world.refused_write}",)
        return found
