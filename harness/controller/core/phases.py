"""The transition table: the first row whose phase and condition match decides the pass (spec state-machine 2 and 3).

The table is level-triggered: it never asks what happened, only what is. Each pass does the next thing that is needed, and
the watch brings its result back.

Differences to Flagger that show here, each on purpose:
- The target's readiness is not asked once its template was copied; from Promoting on, only the primary counts.
- An unhealthy primary neither blocks nor fails a new revision, which may be the repair (P2, P3).
- skipAnalysis goes through Promoting and Finalising like every promotion, so it waits for the primary (P8).
- The last iteration promotes at once; there are no extra ticks.
- A bootstrap that fails touches neither the target nor the apex, and a new template retries it (P1).
- A threshold that is reached rolls back at once, also while a gate is closed (case C15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import lifecycle, pruned, tracking, upkeep
from harness.controller.core.actions import (
    base,
    bootstrap,
    deletion,
    failure,
    general,
    promotion,
    run,
)
from harness.controller.core.change import Row
from harness.controller.core.scene import Scene
from harness.controller.core.strategies.traffic import kept_canary

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
    do: base.Action


ANY: Final = None
NEW: Final = frozenset({""})
BOOT: Final = frozenset({"Initializing", "Failed"})
FAILED: Final = frozenset({"Failed"})
ENDED: Final = frozenset({"Succeeded", "Failed"})
IDLE: Final = frozenset({"Initialized", "Succeeded", "Failed"})
WAITING: Final = frozenset({"Waiting"})
BEFORE: Final = IDLE | WAITING
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


def going(guard: Guard) -> Guard:
    """Add: and the Canary is being deleted."""
    return lambda s: lifecycle.deleting(s.canary) and guard(s)


def _late(s: Scene) -> bool:
    return s.deadline_in <= 0


def _promoted(s: Scene) -> bool:
    return s.primary_carries_applied and s.primary_ready.ready


def _lost(s: Scene) -> bool:
    """The status names a revision that the primary did not get and the target does not hold: hashes drifted, or others wrote."""
    return not s.primary_carries_applied and s.pair.revision != s.applied_revision


def _has(kind: str) -> Guard:
    return lambda s: cond.find(s.status, kind) is not None


def _warned_wrong(s: Scene) -> bool:
    told = (cond.find(s.status, cond.WARNED) or {}).get("message") or ""
    return bool(told != " ".join(s.warnings))


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
    return s.workload.scales and not s.target_idle and not kept_canary(s.status)


def _after(outcome: str) -> Guard:
    def guard(s: Scene) -> bool:
        told = cond.find(s.status, cond.POST_ROLLOUT) or {}
        return told.get("status") == "Unknown" and (outcome == "asking") == (
            s.after.outcome == "asking"
        )

    return guard


def _gate(outcome: str) -> Guard:
    """Return a guard on the hooks before a run; asked only when there is something to start."""
    return lambda s: (s.new_revision or s.phase == "Waiting") and s.start_checkup.outcome == outcome


def _step(outcome: str) -> Guard:
    """Return a guard on the round of this step of the analysis."""
    return lambda s: s.due and s.checkup.outcome == outcome


def _stepped(guard: Guard) -> Guard:
    """Add: and the round agreed to everything."""
    passed = _step("passed")
    return lambda s: passed(s) and guard(s)


def _cut_off(s: Scene) -> bool:
    """A promotion was cut off before its status: Knative's newest revision is the primary's, so that none is left to be analysed."""
    return s.workload.plural == "kservices" and s.workload.holds(s.pair)


def _taken_back(s: Scene) -> bool:
    """Nothing waits any more: the target holds again what is promoted, or what failed before."""
    return not s.new_revision and not s.tracking.foreign


# fmt: off
TABLE: Final[tuple[Rule, ...]] = (
    # a Canary that goes
    Rule("deleted",            ANY,        going(lambda s: not lifecycle.held(s.canary)),     base.rest),
    Rule("release",            ANY,        going(lambda s: s.phase == "Terminated"),          deletion.release),
    Rule("nothing-to-revert",  ANY,        going(lambda s: bool(lifecycle.irrevocable(s))),   deletion.nothing_to_revert),
    Rule("terminating",        ANY,        going(lambda s: s.phase != "Terminating"),         deletion.announce),
    Rule("restore-pods",       ANY,        going(lambda s: bool(lifecycle.pods_back(s))),     deletion.restore),
    Rule("give-up",            ANY,        going(lambda s: not s.reverted.ready and _late(s)), deletion.give_up),
    Rule("restore-wait",       ANY,        going(lambda s: not s.reverted.ready),             deletion.wait_for_target),
    Rule("count-pods",         ANY,        going(lambda s: s.to_be_counted and bool(lifecycle.traffic_back(s))), deletion.count_pods),
    Rule("give-back",          ANY,        going(lambda s: bool(lifecycle.traffic_back(s))),  deletion.give_back),
    Rule("reverted",           ANY,        going(always),                                     deletion.reverted),

    # what stands above every phase
    Rule("suspended",          ANY,        lambda s: s.settings.suspended,                    general.suspended),
    Rule("resumed",            ANY,        _has(cond.CHANGE_PENDING),                         general.resumed),
    Rule("refused",            ANY,        lambda s: s.refused is not None,                   general.refuse),
    Rule("accepted",           ANY,        _has(cond.ACCEPTED),                               general.accept),
    Rule("finalizer",          ANY,        lambda s: lifecycle.held(s.canary) != s.settings.revert, general.keep_finalizer),
    Rule("target-missing",     ANY,        lambda s: s.world.target is None,                  general.target_missing),
    Rule("foreign-primary",    ANY,        lambda s: bool(s.foreign_primary),                 general.foreign_primary),
    Rule("first-sight",        NEW,        always,                                            bootstrap.announce),
    Rule("degraded",           ANY,        _told_wrong,                                       tracking.tell_degraded),
    Rule("annotation-spent",   ANY,        _annotation_spent,                                 tracking.drop_annotation),
    Rule("warn",               ANY,        _warned_wrong,                                     general.warn),
    Rule("hindered",           ANY,        lambda s: bool(upkeep.hindrance(s)),               general.hindered),
    Rule("upkeep",             ANY,        lambda s: bool(upkeep.upkeep(s)),                  general.mend),
    Rule("comparison-failed",  IDLE,       lambda s: s.tracking.foreign and s.verdict.error,  tracking.comparison_failed),
    Rule("bootstrap-wait",     BOOT,       booting(lambda s: not s.primary_exists and not s.workload.pods), bootstrap.wait_for_first),
    Rule("primary-missing",    ANY,        lambda s: not s.primary_exists,                    general.primary_missing),

    # bootstrap: nothing live is touched before the primary is ready
    Rule("read-revisions",     BOOT,       booting(lambda s: s.primary_ready.ready and s.revisions_needed), tracking.read_revisions),
    Rule("lead-to-primary",    BOOT,       booting(lambda s: s.primary_ready.ready and bool(upkeep.traffic(s))), bootstrap.lead_to_primary),
    Rule("initialise",         BOOT,       booting(lambda s: s.primary_ready.ready and not s.route_waits), bootstrap.initialise),
    Rule("repair-bootstrap",   FAILED,     booting(lambda s: s.primary_elsewhere),            bootstrap.repair),
    Rule("bootstrap-broken",   FAILED,     booting(always),                                   bootstrap.wait_for_primary),
    Rule("bootstrap-failed",   BOOT,       booting(_late),                                    bootstrap.failed),
    Rule("bootstrap-route",    BOOT,       booting(lambda s: s.primary_ready.ready),          bootstrap.wait_for_route),
    Rule("bootstrap-wait",     BOOT,       booting(always),                                   bootstrap.wait_for_primary),

    # the end of the run before
    Rule("post-rollout-ask",   ENDED,      _after("asking"),                                  general.ask_after),
    Rule("post-rollout",       ENDED,      _after("answered"),                                general.told_after),

    # idle, or waiting for a gate: is there a new revision?
    Rule("read-revisions",     IDLE,       lambda s: s.tracking.settled and _unjudged(s),     tracking.read_revisions),
    Rule("read-revisions",     IDLE,       lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("hold-start",         IDLE,       lambda s: s.new_revision and s.nothing_to_run,     run.hold_start),
    Rule("withdrawn",          WAITING,    _taken_back,                                       run.withdrawn),
    Rule("ask-start",          BEFORE,     _gate("asking"),                                   run.ask_start),
    Rule("rejected",           BEFORE,     _gate("rollback"),                                 run.rejected),
    Rule("hold-rollout",       BEFORE,     _gate("held"),                                     run.hold_rollout),
    Rule("start",              IDLE,       lambda s: s.new_revision,                          run.start),
    Rule("start-waiting",      WAITING,    always,                                            run.start),
    Rule("rebase",             IDLE,       _row(Row.REBASED),                                 tracking.rebase),
    Rule("adopt",              IDLE,       _row(Row.MIGRATION_ADOPTED),                       tracking.adopt),
    Rule("track",              IDLE,       lambda s: s.tracking_due,                          tracking.track),
    Rule("track-configs",      IDLE,       lambda s: s.configs_due,                           tracking.track_configs),
    Rule("fence-returns",      IDLE,       lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("idle-pods",          IDLE,       _idle_pods,                                        failure.idle_pods),
    Rule("idle",               IDLE,       always,                                            base.rest),

    # a run
    Rule("read-revisions",     RUN,        lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("restart",            RUN,        lambda s: s.new_revision,                          run.restart),
    Rule("abort",              RUN,        lambda s: s.verdict.rolled_back,                   failure.abort),
    Rule("promoted-already",   RUN,        _cut_off,                                          promotion.promote),
    Rule("track-run",          RUN,        lambda s: s.tracking_due and not s.fence_only,     tracking.track),
    Rule("track-configs",      RUN,        lambda s: s.configs_due,                           tracking.track_configs),
    Rule("fence-returns",      RUN,        lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("failed-checks",      RUN,        lambda s: s.too_many_failed_checks,                failure.failed_checks),
    Rule("scale-up-again",     RUN,        lambda s: s.workload.scales and s.target_idle,     run.scale_up_again),
    Rule("readiness-lost",     RUN,        lambda s: not s.target_ready.ready and s.ready_since is not None, run.mark_lost),
    Rule("not-ready-late",     RUN,        lambda s: not s.target_ready.ready and _late(s),   failure.not_ready),
    Rule("not-ready",          RUN,        lambda s: not s.target_ready.ready,                run.wait_for_target),
    Rule("ready",              RUN,        lambda s: s.ready_since is None,                   run.mark_ready),
    Rule("run-route",          RUN,        lambda s: bool(s.route_waits),                     run.wait_for_route),
    Rule("skip-analysis",      RUN,        lambda s: s.settings.skip_analysis,                promotion.promote),
    Rule("asking",             RUN,        _step("asking"),                                   base.ask),
    Rule("rollback-hook",      RUN,        _step("rollback"),                                 failure.asked_for),
    Rule("check-failed",       RUN,        _step("failed"),                                   run.check_failed),
    Rule("held",               RUN,        _step("held"),                                     run.hold),
    Rule("begin",              RUN,        _stepped(lambda s: not s.begun),                   run.begin),
    Rule("shift-all",          RUN,        _stepped(lambda s: s.at_end and s.shifts_all and not s.shifted_all), run.shift_all),
    Rule("weight",             RUN,        _stepped(lambda s: s.mirroring and s.settings.strategy == "weights"), run.increase),
    Rule("analysed",           RUN,        _stepped(lambda s: s.at_end),                      promotion.promote),
    Rule("weight",             RUN,        _stepped(lambda s: s.settings.strategy == "weights"), run.increase),
    Rule("iteration",          RUN,        _stepped(always),                                  run.advance),
    Rule("track-run",          RUN,        lambda s: s.tracking_due,                          tracking.track),
    Rule("between-iterations", RUN,        always,                                            run.wait_for_interval),

    # promotion: only the primary counts now
    Rule("read-revisions",     ENDING,     _unjudged,                                         tracking.read_revisions),
    Rule("adopt-promotion",    ENDING,     lambda s: s.tracking.foreign or _lost(s),          tracking.adopt_promotion),
    Rule("promote-again",      PROMOTING,  lambda s: not s.primary_carries_applied and s.pair.revision == s.applied_revision,
                                                                                              promotion.promote),
    Rule("step-back-wait",     PROMOTING,  lambda s: _promoted(s) and _stepwise(s) and s.due_in > 0, promotion.wait_to_step_back),
    Rule("step-back",          PROMOTING,  lambda s: _promoted(s) and _stepwise(s) and s.weight > s.settings.promotion_step, promotion.step_back),
    Rule("promoted",           PROMOTING,  _promoted,                                         promotion.finalise),
    Rule("succeed",            FINALISING, lambda s: _promoted(s) and not s.route_waits,      promotion.succeed),
    Rule("finalising-route",   FINALISING, _promoted,                                         promotion.wait_for_route),
    Rule("promotion-failed",   ENDING,     _late,                                             promotion.failed),
    Rule("promotion-wait",     ENDING,     always,                                            bootstrap.wait_for_primary),

    # phases of other controllers that this one never enters
    Rule("unknown-phase",      ANY,        always,                                            base.rest),
)
# fmt: on


# Why a pass did not ask whether there is a new revision; rows that are missing here are followed by another pass at once.
SKIPPED: Final[Mapping[str, str]] = {
    "deleted": "deleting",
    "restore-wait": "deleting",
    "suspended": "suspended",
    "refused": "unsupported",
    "target-missing": "target-missing",
    "foreign-primary": "foreign-primary",
    "hindered": "hindered",
    "primary-missing": "primary-missing",
    "start-waiting": "waiting",
    "bootstrap-broken": "initializing",
    "bootstrap-failed": "initializing",
    "bootstrap-route": "initializing",
    "bootstrap-wait": "initializing",
    "step-back-wait": "promoting",
    "finalising-route": "promoting",
    "promotion-failed": "promoting",
    "promotion-wait": "promoting",
    "unknown-phase": "unknown-phase",
}


def _stepwise(s: Scene) -> bool:
    """Whether the traffic goes back to the primary step by step, and is not there yet."""
    steps = s.settings.strategy == "weights" and s.settings.promotion_step > 0
    return steps and s.weight > 0


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
    asked = "verdict" in vars(scene) and rule.name not in ("suspended", "refused")
    return scene.verdict.row.value if asked else SKIPPED.get(rule.name, "")
