"""The transition table: the first row whose phase and condition match decides the pass (spec state-machine 2 and 3).

The table is level-triggered: it never asks what happened, only what is. Each pass does the next thing that is needed, and
the watch brings its result back.

Differences to Flagger that show here, each on purpose:
- The target's readiness is not asked once its template was copied; from Promoting on, only the primary counts.
- An unhealthy primary neither blocks nor fails a new revision, which may be the repair (P2, P3).
- skipAnalysis goes through Promoting and Finalising like every promotion, so it waits for the primary (P8).
- The last iteration promotes at once; there are no extra ticks.
- A bootstrap that fails touches neither the target nor the apex, and a new template retries it (P1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import actions, pruned, tracking, upkeep
from harness.controller.core import conditions as cond
from harness.controller.core.change import Row
from harness.controller.core.readiness import wanted
from harness.controller.core.scene import Scene

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Decision, World

Guard = Callable[[Scene], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row."""

    name: str
    phases: frozenset[str] | None
    """None: any phase."""
    when: Guard
    do: actions.Action


ANY: Final = None
NEW: Final = frozenset({""})
BOOT: Final = frozenset({"Initializing", "Failed"})
FAILED: Final = frozenset({"Failed"})
IDLE: Final = frozenset({"Initialized", "Succeeded", "Failed"})
WAITING: Final = frozenset({"Waiting"})
RUN: Final = frozenset({"Progressing", "WaitingPromotion"})
PROMOTING: Final = frozenset({"Promoting"})
FINALISING: Final = frozenset({"Finalising"})
ENDING: Final = PROMOTING | FINALISING


def always(_: Scene) -> bool:
    """Whatever is."""
    return True


def booting(guard: Guard) -> Guard:
    """Add: and the primary has never taken over."""
    return lambda s: not s.initialised and guard(s)


def _late(s: Scene) -> bool:
    return s.deadline_in <= 0


def _promoted(s: Scene) -> bool:
    return s.primary_carries_applied and s.primary_ready.ready


def _lost(s: Scene) -> bool:
    """The status names a revision that the primary did not get and the target does not hold: hashes drifted, or others wrote."""
    return not s.primary_carries_applied and s.snapshot.hash != s.tracking.applied


def _analysed(s: Scene) -> bool:
    n = s.settings.iterations
    return s.iterations >= n or (s.iterations + 1 == n and s.due_in <= 0)


def _unjudged(s: Scene) -> bool:
    """Somebody else's status, and ReplicaSets would tell whether the target changed since (D11)."""
    return s.tracking.foreign and s.revisions_needed


def _told_wrong(s: Scene) -> bool:
    told = cond.find(s.status, pruned.CONDITION) is not None
    return told != s.world.prunes_fence and not s.world.tracking_held


def _annotation_spent(s: Scene) -> bool:
    settled = bool(s.status.get(pruned.FENCE_FIELD)) and not s.world.prunes_fence
    return settled and pruned.annotated(s.canary) and not s.world.tracking_held


def _row(row: Row) -> Guard:
    return lambda s: s.verdict.row is row and s.tracking_due


def _idle_pods(s: Scene) -> bool:
    kept = (cond.find(s.status, cond.PROMOTED) or {}).get("reason") == "PromotionFailed"
    return wanted(s.target) > 0 and not kept


# fmt: off
TABLE: Final[tuple[Rule, ...]] = (
    # what stands above every phase
    Rule("deleted",            ANY,        lambda s: bool(s.canary["metadata"].get("deletionTimestamp")), actions.rest),
    Rule("suspended",          ANY,        lambda s: s.settings.suspended,                    actions.suspended),
    Rule("refused",            ANY,        lambda s: s.refused is not None,                   actions.refuse),
    Rule("accepted",           ANY,        lambda s: cond.find(s.status, cond.ACCEPTED) is not None, actions.accept),
    Rule("target-missing",     ANY,        lambda s: s.world.target is None,                  actions.target_missing),
    Rule("foreign-primary",    ANY,        lambda s: bool(s.foreign_primary),                 actions.foreign_primary),
    Rule("first-sight",        NEW,        always,                                            actions.announce),
    Rule("degraded",           ANY,        _told_wrong,                                       tracking.tell_degraded),
    Rule("annotation-spent",   ANY,        _annotation_spent,                                 tracking.drop_annotation),
    Rule("upkeep",             ANY,        lambda s: bool(upkeep.upkeep(s)),                  actions.mend),
    Rule("comparison-failed",  IDLE,       lambda s: s.tracking.foreign and s.verdict.error,  tracking.comparison_failed),
    Rule("primary-missing",    ANY,        lambda s: s.world.primary is None,                 actions.primary_missing),

    # bootstrap: nothing live is touched before the primary is ready
    Rule("read-revisions",     BOOT,       booting(lambda s: s.primary_ready.ready and s.revisions_needed), tracking.read_revisions),
    Rule("initialise",         BOOT,       booting(lambda s: s.primary_ready.ready),          actions.initialise),
    Rule("repair-bootstrap",   FAILED,     booting(lambda s: s.primary_elsewhere),            actions.repair_bootstrap),
    Rule("bootstrap-broken",   FAILED,     booting(always),                                   actions.wait_for_primary),
    Rule("bootstrap-failed",   BOOT,       booting(_late),                                    actions.bootstrap_failed),
    Rule("bootstrap-wait",     BOOT,       booting(always),                                   actions.wait_for_primary),

    # idle: is there a new revision?
    Rule("read-revisions",     IDLE,       lambda s: s.tracking.settled and _unjudged(s),     tracking.read_revisions),
    Rule("read-revisions",     IDLE,       lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("hold-start",         IDLE,       lambda s: s.new_revision and s.nothing_to_run,     actions.hold_start),
    Rule("start",              IDLE,       lambda s: s.new_revision,                          actions.start),
    Rule("start-waiting",      WAITING,    always,                                            actions.start),
    Rule("rebase",             IDLE,       _row(Row.REBASED),                                 tracking.rebase),
    Rule("adopt",              IDLE,       _row(Row.MIGRATION_ADOPTED),                       tracking.adopt),
    Rule("track",              IDLE,       lambda s: s.tracking_due,                          tracking.track),
    Rule("fence-returns",      IDLE,       lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("idle-pods",          IDLE,       _idle_pods,                                        actions.idle_pods),
    Rule("idle",               IDLE,       always,                                            actions.rest),

    # a run
    Rule("read-revisions",     RUN,        lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("restart",            RUN,        lambda s: s.new_revision,                          actions.restart),
    Rule("abort",              RUN,        lambda s: s.verdict.rolled_back,                   actions.abort),
    Rule("track-run",          RUN,        lambda s: s.tracking_due and not s.fence_only,     tracking.track),
    Rule("fence-returns",      RUN,        lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("scale-up-again",     RUN,        lambda s: wanted(s.target) == 0,                   actions.scale_up_again),
    Rule("readiness-lost",     RUN,        lambda s: not s.target_ready.ready and s.ready_since is not None, actions.mark_lost),
    Rule("not-ready-late",     RUN,        lambda s: not s.target_ready.ready and _late(s),   actions.roll_back_not_ready),
    Rule("not-ready",          RUN,        lambda s: not s.target_ready.ready,                actions.wait_for_target),
    Rule("failed-checks",      RUN,        lambda s: s.too_many_failed_checks,                actions.roll_back_failed_checks),
    Rule("ready",              RUN,        lambda s: s.ready_since is None,                   actions.mark_ready),
    Rule("skip-analysis",      RUN,        lambda s: s.settings.skip_analysis,                actions.promote),
    Rule("analysed",           RUN,        _analysed,                                         actions.promote),
    Rule("iteration",          RUN,        lambda s: s.due_in <= 0,                           actions.advance),
    Rule("track-run",          RUN,        lambda s: s.tracking_due,                          tracking.track),
    Rule("between-iterations", RUN,        always,                                            actions.wait_for_interval),

    # promotion: only the primary counts now
    Rule("read-revisions",     ENDING,     _unjudged,                                         tracking.read_revisions),
    Rule("adopt-promotion",    ENDING,     lambda s: s.tracking.foreign or _lost(s),          tracking.adopt_promotion),
    Rule("promote-again",      PROMOTING,  lambda s: not s.primary_carries_applied and s.snapshot.hash == s.tracking.applied,
                                                                                              actions.promote),
    Rule("promoted",           PROMOTING,  _promoted,                                         actions.finalise),
    Rule("succeed",            FINALISING, _promoted,                                         actions.succeed),
    Rule("promotion-failed",   ENDING,     _late,                                             actions.promotion_failed),
    Rule("promotion-wait",     ENDING,     always,                                            actions.wait_for_primary),

    # phases of other controllers that this one never enters
    Rule("unknown-phase",      ANY,        always,                                            actions.rest),
)
# fmt: on


# Why a pass did not ask whether there is a new revision; rows that are missing here are followed by another pass at once.
SKIPPED: Final[Mapping[str, str]] = {
    "deleted": "deleting",
    "suspended": "suspended",
    "refused": "unsupported",
    "target-missing": "target-missing",
    "foreign-primary": "foreign-primary",
    "primary-missing": "primary-missing",
    "start-waiting": "waiting",
    "bootstrap-broken": "initializing",
    "bootstrap-failed": "initializing",
    "bootstrap-wait": "initializing",
    "promotion-failed": "promoting",
    "promotion-wait": "promoting",
    "unknown-phase": "unknown-phase",
}


def decide(world: World, canary: JSON, now: float) -> Decision:
    """Return what one pass does for a Canary.

    `world`: what was read besides it. `now`: seconds since the epoch. Pure: the same arguments always give the same decision.
    """
    scene = Scene(world, canary, now)
    for rule in TABLE:
        if (rule.phases is None or scene.phase in rule.phases) and rule.when(scene):
            decision = tracking.along(scene, rule.do(scene))
            if world.prunes_fence:
                status = pruned.without_fence(decision.status)
                decision = replace(decision, status=status, refresh=None)
            return replace(decision, row=rule.name, looked=_looked(scene, rule))
    msg = "the last row of the table matches everything"
    raise AssertionError(msg)


def _looked(scene: Scene, rule: Rule) -> str:
    asked = "verdict" in vars(scene)
    return scene.verdict.row.value if asked else SKIPPED.get(rule.name, "")
