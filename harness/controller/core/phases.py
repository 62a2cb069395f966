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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import actions, upkeep
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


def _analysed(s: Scene) -> bool:
    n = s.settings.iterations
    return s.iterations >= n or (s.iterations + 1 == n and s.due_in <= 0)


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
    Rule("upkeep",             ANY,        lambda s: bool(upkeep.upkeep(s)),                  actions.mend),
    Rule("primary-missing",    ANY,        lambda s: s.world.primary is None,                 actions.primary_missing),

    # bootstrap: nothing live is touched before the primary is ready
    Rule("initialise",         BOOT,       booting(lambda s: s.primary_ready.ready),          actions.initialise),
    Rule("repair-bootstrap",   FAILED,     booting(lambda s: s.primary_elsewhere),            actions.repair_bootstrap),
    Rule("bootstrap-broken",   FAILED,     booting(always),                                   actions.wait_for_primary),
    Rule("bootstrap-failed",   BOOT,       booting(_late),                                    actions.bootstrap_failed),
    Rule("bootstrap-wait",     BOOT,       booting(always),                                   actions.wait_for_primary),

    # idle: is there a new revision?
    Rule("comparison-failed",  IDLE,       lambda s: s.verdict.error,                         actions.comparison_failed),
    Rule("hold-start",         IDLE,       lambda s: s.new_revision and s.nothing_to_run,     actions.hold_start),
    Rule("start",              IDLE,       lambda s: s.new_revision,                          actions.start),
    Rule("start-waiting",      WAITING,    always,                                            actions.start),
    Rule("rebase",             IDLE,       lambda s: s.verdict.row is Row.REBASED,            actions.rebase),
    Rule("track",              IDLE,       lambda s: bool(s.verdict.persist),                 actions.track),
    Rule("idle-pods",          IDLE,       _idle_pods,                                        actions.idle_pods),
    Rule("idle",               IDLE,       always,                                            actions.rest),

    # a run
    Rule("restart",            RUN,        lambda s: s.new_revision,                          actions.restart),
    Rule("abort",              RUN,        lambda s: s.verdict.rolled_back,                   actions.abort),
    Rule("track-run",          RUN,        lambda s: bool(s.verdict.persist),                 actions.track),
    Rule("scale-up-again",     RUN,        lambda s: wanted(s.target) == 0,                   actions.scale_up_again),
    Rule("readiness-lost",     RUN,        lambda s: not s.target_ready.ready and s.ready_since is not None, actions.mark_lost),
    Rule("not-ready-late",     RUN,        lambda s: not s.target_ready.ready and _late(s),   actions.roll_back_not_ready),
    Rule("not-ready",          RUN,        lambda s: not s.target_ready.ready,                actions.wait_for_target),
    Rule("failed-checks",      RUN,        lambda s: s.too_many_failed_checks,                actions.roll_back_failed_checks),
    Rule("ready",              RUN,        lambda s: s.ready_since is None,                   actions.mark_ready),
    Rule("skip-analysis",      RUN,        lambda s: s.settings.skip_analysis,                actions.promote),
    Rule("analysed",           RUN,        _analysed,                                         actions.promote),
    Rule("iteration",          RUN,        lambda s: s.due_in <= 0,                           actions.advance),
    Rule("between-iterations", RUN,        always,                                            actions.wait_for_interval),

    # promotion: only the primary counts now
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


def decide(world: World, canary: JSON, now: float) -> Decision:
    """Return what one pass does for a Canary.

    `world`: what was read besides it. `now`: seconds since the epoch. Pure: the same arguments always give the same decision.
    """
    scene = Scene(world, canary, now)
    for rule in TABLE:
        if (rule.phases is None or scene.phase in rule.phases) and rule.when(scene):
            return replace(rule.do(scene), row=rule.name)
    msg = "the last row of the table matches everything"
    raise AssertionError(msg)
