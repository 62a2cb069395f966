"""What the rows of the transition table ask (`phases.py`): small questions about a Scene that no other module has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.controller.core import adoption, lifecycle, pruned
from harness.controller.core import conditions as cond
from harness.controller.core.frozen import ORDER, UNTOLD
from harness.controller.core.scene import Scene
from harness.controller.core.strategies.traffic import kept_canary

if TYPE_CHECKING:
    from harness.controller.core.adoption import Stage
    from harness.controller.core.change import Row

Guard = Callable[[Scene], bool]


def always(_: Scene) -> bool:
    """Whatever is."""
    return True


def booting(guard: Guard) -> Guard:
    """Add: and the primary has never taken over."""
    return lambda s: not s.initialised and guard(s)


def going(guard: Guard) -> Guard:
    """Add: and the Canary is being deleted."""
    return lambda s: lifecycle.deleting(s.canary) and guard(s)


def late(s: Scene) -> bool:
    """The deadline has passed."""
    return s.deadline_in <= 0


def promoted(s: Scene) -> bool:
    """The primary has what is promoted, and is ready."""
    return s.primary_carries_applied and s.primary_ready.ready


def lost(s: Scene) -> bool:
    """The status names a revision that the primary did not get and the target does not hold: hashes drifted, or others wrote."""
    return not s.primary_carries_applied and s.pair.revision != s.applied_revision


def has(kind: str) -> Guard:
    """Return a guard on a condition that is there."""
    return lambda s: cond.find(s.status, kind) is not None


def warned_wrong(s: Scene) -> bool:
    """What condition Warned says is not what there is to warn of."""
    told = (cond.find(s.status, cond.WARNED) or {}).get("message") or ""
    return bool(told != " ".join(s.warnings))


def unjudged(s: Scene) -> bool:
    """Somebody else's status, and ReplicaSets would tell whether the target changed since (D11)."""
    return s.tracking.foreign and s.revisions_needed


def told_wrong(s: Scene) -> bool:
    """What is said of the CRD is not how it is (D10)."""
    told = cond.find(s.status, pruned.CONDITION) is not None
    return told != s.world.prunes_fence and not s.world.tracking_held


def annotation_spent(s: Scene) -> bool:
    """The fence is in the status again, so that its annotation can go (D10)."""
    settled = bool(s.status.get(pruned.FENCE_FIELD)) and not s.world.prunes_fence
    return settled and pruned.annotated(s.canary) and not s.world.tracking_held


def row(row: Row) -> Guard:
    """Return a guard on the row of the change table, when there is something to remember."""
    return lambda s: s.verdict.row is row and s.tracking_due


def idle_pods(s: Scene) -> bool:
    """Somebody scaled an idle target up (A10)."""
    return s.workload.scales and not s.target_idle and not kept_canary(s.status)


def after(outcome: str) -> Guard:
    """Return a guard on the hooks after a run."""

    def guard(s: Scene) -> bool:
        told = cond.find(s.status, cond.POST_ROLLOUT) or {}
        return told.get("status") == "Unknown" and (outcome == "asking") == (
            s.after.outcome == "asking"
        )

    return guard


def gate(outcome: str) -> Guard:
    """Return a guard on the hooks before a run; asked only when there is something to start."""
    return lambda s: (s.new_revision or s.phase == "Waiting") and s.start_checkup.outcome == outcome


def step(outcome: str) -> Guard:
    """Return a guard on the round of this step of the analysis."""
    return lambda s: s.due and s.checkup.outcome == outcome


def stepped(guard: Guard) -> Guard:
    """Add: and the round agreed to everything."""
    passed = step("passed")
    return lambda s: passed(s) and guard(s)


def hooks(outcome: str) -> Guard:
    """Return a guard on the hooks that are asked while it is frozen."""
    return lambda s: s.frozen_checkup.outcome == outcome


def untold(s: Scene) -> bool:
    """Nobody has been told of the freeze yet."""
    return (cond.find(s.status, cond.ROUTES_KEPT) or {}).get("reason") == UNTOLD


def unprovable(s: Scene) -> bool:
    """Whether the status cannot be compared with the target; a fence that the CRD drops is no proof of anything else (D10)."""
    unfenced = not s.tracking.fence and not s.world.prunes_fence
    return (s.tracking.foreign or unfenced) and not s.world.tracking_held


def to_promote(s: Scene) -> bool:
    """Somebody wants the frozen revision promoted."""
    return s.order.wanted == "promote" or s.settings.skip_analysis


def ordered(s: Scene) -> bool:
    """There is an order for a frozen canary."""
    return ORDER in (s.canary["metadata"].get("annotations") or {})


def cut_off(s: Scene) -> bool:
    """A promotion was cut off before its status, so that nothing is left to be analysed.

    Knative's newest revision is the primary's; or the revision under analysis was parked since the status was written.
    """
    if s.workload.plural == "kservices":
        return s.workload.holds(s.pair)
    told = s.workload.remembered(s.pair).get("parked") or {}
    known = s.status.get("parked") or {}
    return told.get("uid") != known.get("uid") and s.primary_revision == s.pair.revision


def parked_unsaid(s: Scene) -> bool:
    """The status does not say yet which ReplicaSet serves."""
    told = s.workload.remembered(s.pair) if s.primary_exists else {}
    return any(s.status.get(key) != value for key, value in told.items())


def left(s: Scene) -> bool:
    """What served before the last promotion is still there."""
    return bool(s.workload.leftovers(s.pair)) and not parked_unsaid(s)


def first_park(s: Scene) -> bool:
    """Whether the target is about to give its pods to its Canary: until they are ready there is nothing to be parked."""
    return not s.initialised and not s.workload.copies


def taken_back(s: Scene) -> bool:
    """Nothing waits any more: the target holds again what is promoted, or what failed before."""
    return not s.new_revision and not s.tracking.foreign


def adopting(*stages: Stage) -> Guard:
    """Return a guard on how far a restoration by adoption has come."""
    return lambda s: adoption.at(s) in stages


def stepwise(s: Scene) -> bool:
    """Whether the traffic goes back to the primary step by step, and is not there yet."""
    steps = s.settings.strategy == "weights" and s.settings.promotion_step > 0
    return steps and s.weight > 0
