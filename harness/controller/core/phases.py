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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import adoption, lifecycle, pruned, restore, spread, tracking, upkeep
from harness.controller.core import conditions as cond
from harness.controller.core import guards as when
from harness.controller.core.actions import adoption as adopt
from harness.controller.core.actions import (
    base,
    bootstrap,
    deletion,
    failure,
    frozen,
    general,
    promotion,
    queue,
    run,
    unmeasured,
)
from harness.controller.core.actions import restore as reverted
from harness.controller.core.adoption import Stage
from harness.controller.core.change import Row
from harness.controller.core.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON, Decision, World


@dataclass(frozen=True, slots=True)
class Rule:
    """One row."""

    name: str
    phases: frozenset[str] | None
    """None: any phase."""
    when: when.Guard
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
AFTER: Final = IDLE | RUN
"""Phases in which what served before the last promotion may go."""
PROMOTING: Final = frozenset({"Promoting"})
FINALISING: Final = frozenset({"Finalising"})
FROZEN: Final = frozenset({"Frozen"})
OVER: Final = ENDED | FROZEN
"""A run has ended."""
ENDING: Final = PROMOTING | FINALISING


# fmt: off
TABLE: Final[tuple[Rule, ...]] = (
    # a target that is made again: what was begun is finished, whatever becomes of its Canary meanwhile
    Rule("adopt-withdraw",     ANY,        adoption.overruled,                                adopt.withdraw),
    Rule("adopt-wait",         ANY,        when.adopting(Stage.GOING, Stage.ADOPTING, Stage.TAKEN, Stage.UNSEEN), adopt.wait),
    Rule("adopt-create",       ANY,        when.adopting(Stage.CREATE),                       adopt.create),
    Rule("adopt-release",      ANY,        when.adopting(Stage.RELEASE),                      adopt.release),
    Rule("adopt-verify",       ANY,        when.adopting(Stage.VERIFY),                       adopt.verify),
    Rule("adopt-lost",         ANY,        when.adopting(Stage.LOST),                         adopt.lost),
    Rule("adopt-others",       ANY,        when.adopting(Stage.OTHERS),                       adopt.others),
    Rule("adopt-overtaken",    ANY,        when.adopting(Stage.OVERTAKEN),                    adopt.overtaken),

    # a Canary that goes
    Rule("deleted",            ANY,        when.going(lambda s: not lifecycle.held(s.canary)), base.rest),
    Rule("adopt-resume",       ANY,        when.going(adoption.resting),                      adopt.resume),
    Rule("release",            ANY,        when.going(lambda s: s.phase == "Terminated"),     deletion.release),
    Rule("nothing-to-revert",  ANY,        when.going(lambda s: bool(lifecycle.irrevocable(s))), deletion.nothing_to_revert),
    Rule("terminating",        ANY,        when.going(lambda s: s.phase != "Terminating"),    deletion.announce),
    Rule("restore-pods",       ANY,        when.going(lambda s: bool(lifecycle.pods_back(s))), deletion.restore),
    Rule("give-up",            ANY,        when.going(lambda s: not s.reverted.ready and when.late(s)), deletion.give_up),
    Rule("restore-wait",       ANY,        when.going(lambda s: not s.reverted.ready),        deletion.wait_for_target),
    Rule("count-pods",         ANY,        when.going(lambda s: s.to_be_counted and bool(lifecycle.traffic_back(s))), deletion.count_pods),
    Rule("give-back",          ANY,        when.going(lambda s: bool(lifecycle.traffic_back(s))), deletion.give_back),
    Rule("reverted",           ANY,        when.going(when.always),                           deletion.reverted),

    # what stands above every phase
    Rule("give-slot-up",       RUN,        queue.stalled,                                     queue.give_up),
    Rule("suspended",          ANY,        lambda s: s.settings.suspended,                    general.suspended),
    Rule("resumed",            ANY,        when.has(cond.CHANGE_PENDING),                     general.resumed),
    Rule("refused",            ANY,        lambda s: s.refused is not None,                   general.refuse),
    Rule("accepted",           ANY,        when.has(cond.ACCEPTED),                           general.accept),
    Rule("finalizer",          ANY,        lambda s: lifecycle.held(s.canary) != (s.settings.revert or adoption.holds(s)), general.keep_finalizer),
    Rule("order-spent",        ANY,        lambda s: when.ordered(s) and s.phase not in FROZEN, frozen.order_spent),
    Rule("adopt-renew",        ANY,        lambda s: when.adopting(Stage.DELETE)(s) and adoption.outdated(s), adopt.renew),
    Rule("adopt-delete",       ANY,        when.adopting(Stage.DELETE),                       adopt.delete),
    Rule("pause-again",        ANY,        adoption.resumed,                                  adopt.pause_again),
    Rule("target-missing",     ANY,        lambda s: s.world.target is None,                  general.target_missing),
    Rule("foreign-primary",    ANY,        lambda s: bool(s.foreign_primary),                 general.foreign_primary),
    Rule("first-sight",        NEW,        when.always,                                       bootstrap.announce),
    Rule("degraded",           ANY,        when.told_wrong,                                   tracking.tell_degraded),
    Rule("annotation-spent",   ANY,        when.annotation_spent,                             tracking.drop_annotation),
    Rule("warn",               ANY,        when.warned_wrong,                                 general.warn),
    Rule("hindered",           ANY,        lambda s: bool(upkeep.hindrance(s)),               general.hindered),
    Rule("upkeep",             ANY,        lambda s: bool(upkeep.upkeep(s)),                  general.mend),
    Rule("adopt-spent",        ANY,        adoption.spent,                                    adopt.went_on),
    Rule("comparison-failed",  IDLE,       lambda s: s.tracking.foreign and s.verdict.error,  tracking.comparison_failed),
    Rule("bootstrap-wait",     BOOT,       when.booting(lambda s: not s.primary_exists and not s.workload.pods), bootstrap.wait_for_first),
    Rule("primary-missing",    ANY,        lambda s: not s.primary_exists and not when.first_park(s), general.primary_missing),

    # bootstrap: nothing live is touched before the primary is ready
    Rule("read-revisions",     BOOT,       when.booting(lambda s: s.primary_ready.ready and s.revisions_needed), tracking.read_revisions),
    Rule("lead-to-primary",    BOOT,       when.booting(lambda s: s.primary_ready.ready and bool(upkeep.traffic(s))), bootstrap.lead_to_primary),
    Rule("initialise",         BOOT,       when.booting(lambda s: s.primary_ready.ready and not s.route_waits), bootstrap.initialise),
    Rule("repair-bootstrap",   FAILED,     when.booting(lambda s: s.primary_elsewhere),       bootstrap.repair),
    Rule("bootstrap-broken",   FAILED,     when.booting(when.always),                         bootstrap.wait_for_primary),
    Rule("bootstrap-failed",   BOOT,       when.booting(when.late),                           bootstrap.failed),
    Rule("bootstrap-route",    BOOT,       when.booting(lambda s: s.primary_ready.ready),     bootstrap.wait_for_route),
    Rule("bootstrap-wait",     BOOT,       when.booting(when.always),                         bootstrap.wait_for_primary),

    # the end of the run before
    Rule("freeze-told",        FROZEN,     when.untold,                                       frozen.tell),
    Rule("post-rollout-ask",   OVER,       when.after("asking"),                              general.ask_after),
    Rule("post-rollout",       OVER,       when.after("answered"),                            general.told_after),

    # analysis.restore: revert; what failed is taken out of the target, unless another revision is there already
    Rule("restore-off",        FAILED,     restore.called_off,                                reverted.call_off),
    Rule("restored",           FAILED,     restore.came_back,                                 reverted.restored),
    Rule("not-kept",           FAILED,     restore.changed_on_the_way,                        reverted.not_kept),
    Rule("read-revisions",     FAILED,     restore.revisions_needed,                          tracking.read_revisions),
    Rule("restore-target",     FAILED,     restore.due,                                       reverted.revert),
    Rule("adopt-needless",     FAILED,     adoption.needless,                                 reverted.put_back),
    Rule("adopt-intend",       FAILED,     adoption.due,                                      adopt.intend),
    Rule("put-back",           FAILED,     restore.put_back,                                  reverted.put_back),

    # idle, or waiting for a gate: is there a new revision?
    Rule("read-revisions",     IDLE,       lambda s: s.tracking.settled and when.unjudged(s), tracking.read_revisions),
    Rule("read-revisions",     IDLE,       lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("unqueued",           IDLE,       queue.pointless,                                   queue.leave),
    Rule("hold-start",         IDLE,       lambda s: s.new_revision and s.nothing_to_run,     run.hold_start),
    Rule("withdrawn",          WAITING,    when.taken_back,                                   run.withdrawn),
    Rule("queued",             BEFORE,     lambda s: queue.joined(s) and queue.turn_missing(s) and queue.to_start(s), queue.queue),
    Rule("ask-start",          BEFORE,     when.gate("asking"),                               run.ask_start),
    Rule("rejected",           BEFORE,     when.gate("rollback"),                             run.rejected),
    Rule("hold-rollout",       BEFORE,     when.gate("held"),                                 run.hold_rollout),
    Rule("queue",              BEFORE,     lambda s: queue.turn_missing(s) and queue.to_start(s), queue.queue),
    Rule("start",              IDLE,       lambda s: s.new_revision,                          run.start),
    Rule("start-waiting",      WAITING,    when.always,                                       run.start),
    Rule("rebase",             IDLE,       when.row(Row.REBASED),                             tracking.rebase),
    Rule("adopt",              IDLE,       when.row(Row.MIGRATION_ADOPTED),                   tracking.adopt),
    Rule("track",              IDLE,       lambda s: s.tracking_due,                          tracking.track),
    Rule("track-configs",      IDLE,       lambda s: s.configs_due,                           tracking.track_configs),
    Rule("fence-returns",      IDLE,       lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("parked",             IDLE,       when.parked_unsaid,                                tracking.remember),
    Rule("discard",            AFTER,      lambda s: s.drained_in <= 0 and when.left(s),      general.discard),
    Rule("idle-pods",          IDLE,       when.idle_pods,                                    failure.idle_pods),
    Rule("draining",           IDLE,       when.left,                                         general.drain),
    Rule("idle",               IDLE,       when.always,                                       base.rest),

    # a run
    Rule("read-revisions",     RUN,        lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("restart",            RUN,        lambda s: s.new_revision,                          run.restart),
    Rule("abort",              RUN,        lambda s: s.verdict.rolled_back,                   failure.abort),
    Rule("promoted-already",   RUN,        when.cut_off,                                      promotion.promote),
    Rule("track-run",          RUN,        lambda s: s.tracking_due and not s.fence_only,     tracking.track),
    Rule("track-configs",      RUN,        lambda s: s.configs_due,                           tracking.track_configs),
    Rule("fence-returns",      RUN,        lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("rolling-back",       RUN,        when.has(cond.ROLLING_BACK),                       failure.carry_out),
    Rule("freeze",             RUN,        lambda s: s.too_many_failed_checks and s.settings.freeze, frozen.failed_checks),
    Rule("failed-checks",      RUN,        lambda s: s.too_many_failed_checks,                failure.failed_checks),
    Rule("scale-up-again",     RUN,        lambda s: s.workload.scales and s.target_idle,     run.scale_up_again),
    Rule("readiness-lost",     RUN,        lambda s: not s.target_ready.ready and s.ready_since is not None, run.mark_lost),
    Rule("nodes-joined",       RUN,        lambda s: not s.target_ready.ready and spread.still_joining(s.target, s.status), run.nodes_joined),
    Rule("queued-run",         RUN,        lambda s: queue.joined(s) and queue.turn_missing(s), queue.queue),
    Rule("regained",           RUN,        queue.joined,                                      queue.regained),
    Rule("freeze-late",        RUN,        lambda s: not s.target_ready.ready and when.late(s) and s.settings.freeze, frozen.not_ready),
    Rule("not-ready-late",     RUN,        lambda s: not s.target_ready.ready and when.late(s), failure.not_ready),
    Rule("not-ready",          RUN,        lambda s: not s.target_ready.ready,                run.wait_for_target),
    Rule("ready",              RUN,        lambda s: s.ready_since is None,                   run.mark_ready),
    Rule("nodes-counted",      RUN,        lambda s: spread.moved(s.target, s.status),        run.count_nodes),
    Rule("run-route",          RUN,        lambda s: bool(s.route_waits),                     run.wait_for_route),
    Rule("skip-analysis",      RUN,        lambda s: s.settings.skip_analysis,                promotion.promote),
    Rule("asking",             RUN,        when.step("asking"),                               base.ask),
    Rule("rollback-hook",      RUN,        when.step("rollback"),                             failure.asked_for),
    Rule("measured",           RUN,        lambda s: s.due and unmeasured.measured(s),        unmeasured.over),
    Rule("unmeasured",         RUN,        when.step("unmeasured"),                           unmeasured.wait),
    Rule("check-failed",       RUN,        when.step("failed"),                               run.check_failed),
    Rule("held",               RUN,        when.step("held"),                                 run.hold),
    Rule("queue-run",          RUN,        when.stepped(lambda s: queue.turn_missing(s) and queue.regains(s)), queue.queue),
    Rule("begin",              RUN,        when.stepped(lambda s: not s.begun),               run.begin),
    Rule("shift-all",          RUN,        when.stepped(lambda s: s.at_end and s.shifts_all and not s.shifted_all), run.shift_all),
    Rule("weight",             RUN,        when.stepped(lambda s: s.mirroring and s.settings.strategy == "weights"), run.increase),
    Rule("analysed",           RUN,        when.stepped(lambda s: s.at_end),                  promotion.promote),
    Rule("weight",             RUN,        when.stepped(lambda s: s.settings.strategy == "weights"), run.increase),
    Rule("iteration",          RUN,        when.stepped(when.always),                         run.advance),
    Rule("track-run",          RUN,        lambda s: s.tracking_due,                          tracking.track),
    Rule("between-iterations", RUN,        when.always,                                       run.wait_for_interval),

    # a failed analysis that is frozen: another revision, or somebody, ends it
    Rule("frozen-unproven",    FROZEN,     when.unprovable,                                   frozen.unproven),
    Rule("read-revisions",     FROZEN,     lambda s: s.proof_needed,                          tracking.read_revisions),
    Rule("frozen-unqueued",    FROZEN,     queue.pointless,                                   queue.leave),
    Rule("frozen-given-up",    FROZEN,     lambda s: s.given_up,                              frozen.hook_back),
    Rule("frozen-queued",      FROZEN,     lambda s: queue.joined(s) and queue.turn_missing(s), queue.queue),
    Rule("frozen-ask",         FROZEN,     when.hooks("asking"),                              frozen.ask),
    Rule("frozen-rollback",    FROZEN,     when.hooks("rollback"),                            frozen.hook_asked),
    Rule("frozen-hold",        FROZEN,     lambda s: s.new_revision and when.hooks("held")(s), frozen.hold),
    Rule("frozen-queue",       FROZEN,     lambda s: s.new_revision and queue.turn_missing(s), queue.queue),
    Rule("replace",            FROZEN,     lambda s: s.new_revision,                          frozen.replaced),
    Rule("frozen-withdrawn",   FROZEN,     when.has(cond.HELD),                               frozen.withdrawn),
    Rule("frozen-taken-back",  FROZEN,     lambda s: s.verdict.rolled_back,                   frozen.taken_back),
    Rule("frozen-order-back",  FROZEN,     lambda s: s.order.wanted == "rollback",            frozen.ordered_back),
    Rule("frozen-flag-off",    FROZEN,     lambda s: not s.settings.freeze,                   frozen.flag_off),
    Rule("frozen-hindered",    FROZEN,     lambda s: s.order.wanted == "promote" and not s.target_ready.ready, frozen.hindered),
    Rule("frozen-promote",     FROZEN,     lambda s: when.to_promote(s) and s.target_ready.ready, frozen.promoted),
    Rule("track",              FROZEN,     lambda s: s.tracking_due,                          frozen.track),
    Rule("track-configs",      FROZEN,     lambda s: s.configs_due,                           tracking.track_configs),
    Rule("fence-returns",      FROZEN,     lambda s: s.fence_returns,                         tracking.return_fence),
    Rule("frozen-readiness",   FROZEN,     lambda s: s.target_ready.ready != s.frozen_ready_told, frozen.readiness),
    Rule("frozen",             FROZEN,     when.always,                                       frozen.rest),

    # promotion: only the primary counts now
    Rule("read-revisions",     ENDING,     when.unjudged,                                     tracking.read_revisions),
    Rule("adopt-promotion",    ENDING,     lambda s: s.tracking.foreign or when.lost(s),      tracking.adopt_promotion),
    Rule("promote-again",      PROMOTING,  lambda s: not s.primary_carries_applied and s.pair.revision == s.applied_revision,
                                                                                              promotion.promote),
    Rule("step-back-wait",     PROMOTING,  lambda s: when.promoted(s) and when.stepwise(s) and s.due_in > 0, promotion.wait_to_step_back),
    Rule("step-back",          PROMOTING,  lambda s: when.promoted(s) and when.stepwise(s) and s.weight > s.settings.promotion_step, promotion.step_back),
    Rule("promoted",           PROMOTING,  when.promoted,                                     promotion.finalise),
    Rule("succeed",            FINALISING, lambda s: when.promoted(s) and not s.route_waits,  promotion.succeed),
    Rule("finalising-route",   FINALISING, when.promoted,                                     promotion.wait_for_route),
    Rule("promotion-failed",   ENDING,     when.late,                                         promotion.failed),
    Rule("promotion-wait",     ENDING,     when.always,                                       bootstrap.wait_for_primary),

    # phases of other controllers that this one never enters
    Rule("unknown-phase",      ANY,        when.always,                                       base.rest),
)
# fmt: on


# Why a pass did not ask whether there is a new revision; rows that are missing here are followed by another pass at once.
SKIPPED: Final[Mapping[str, str]] = {
    "adopt-wait": "restoring",
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


def decide(world: World, canary: JSON, now: float) -> Decision:
    """Return what one pass does for a Canary.

    `world`: what was read besides it. `now`: seconds since the epoch. Pure: the same arguments when.always give the same decision.
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
