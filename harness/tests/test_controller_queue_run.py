"""A limit on analyses, seen from one Canary: gates, suspension and deadlines in a run (deviation D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core import line
from harness.tests.controller_limited import (
    FAR,
    THIRD,
    Limited,
    limited,
    queued,
    release,
    told,
    waiting,
)
from harness.tests.controller_runs import hook
from harness.tests.controller_sim import (
    Sim,
    canary,
    image_of,
    merge,
    no,
    yes,
)
from harness.tests.controller_stories_routed import GATEWAY

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
START_GATE = hook("confirm-rollout", "start")
MORE = hook("confirm-traffic-increase", "more")
FINISH = hook("confirm-promotion", "finish")
UNDO = hook("rollback", "undo")
STEPS: JSON = {"stepWeight": 20, "maxWeight": 60, "iterations": 0}


# -- a gate in a run ---------------------------------------------------------------------------------------------------------


def at_the_gate(**kinds: Any) -> Limited:
    """A run by weights at 20 %, whose next step a person has not allowed."""
    sim = limited(spec=GATEWAY, **STEPS | {"webhooks": [MORE, UNDO]}, **kinds)
    release(sim)
    while sim.status.get("canaryWeight") != 20:
        sim.run(0.1)
    assert line.holds(sim.canary)
    sim.script["more"] = no()
    sim.run(6)
    assert sim.condition("Held")["reason"] == "ConfirmTrafficIncrease"
    return sim


def behind_the_gate(**kinds: Any) -> Limited:
    """The same, allowed now, but without a slot."""
    sim = at_the_gate(**kinds)
    sim.turn = THIRD
    sim.script["more"] = yes()
    sim.run(5)
    return sim


def test_a_gate_that_waits_for_a_person_holds_no_slot() -> None:
    sim = at_the_gate()
    assert sim.phase == "Progressing"
    assert not line.holds(sim.canary)
    assert not line.waits(sim.canary), "and is not in the line either"


def test_a_gate_that_opens_regains_a_slot_first_and_nothing_is_asked_meanwhile() -> None:
    sim = behind_the_gate()
    assert sim.phase == "Progressing"
    assert waiting(sim)["reason"] == "StartLimit"
    assert "could go on with its analysis" in waiting(sim)["message"]
    assert line.entrant(sim.canary, sim.now).regaining
    assert line.waits(sim.canary)
    assert sim.condition("Held") == {}
    many, wrote, weight = len(sim.calls), len(sim.actions), sim.status["canaryWeight"]
    sim.run(FAR)
    assert (len(sim.calls), len(sim.actions)) == (many, wrote)
    assert (sim.phase, sim.status["canaryWeight"]) == ("Progressing", weight)
    sim.give()
    sim.settle()
    assert waiting(sim) == {}
    assert line.holds(sim.canary)
    assert len(told(sim, "The turn of")) == 1
    sim.run(until="Succeeded")
    assert sim.calls[many:], "and the gate is asked anew"


def test_a_gate_that_opens_while_a_slot_is_free_changes_nothing_at_all() -> None:
    sim = at_the_gate()
    sim.script["more"] = yes()
    sim.run(until="Succeeded")
    assert not told(sim, "Waiting for its turn")
    assert "queue-run" not in sim.rows


def test_a_gate_that_closes_again_gives_the_slot_back() -> None:
    sim = behind_the_gate()
    sim.script["more"] = no()
    sim.give()
    sim.run(5)
    assert sim.condition("Held")["reason"] == "ConfirmTrafficIncrease"
    assert not line.holds(sim.canary)


def test_an_allowed_promotion_needs_no_slot() -> None:
    sim = limited(webhooks=[FINISH])
    sim.script["finish"] = no()
    release(sim)
    sim.run(until="WaitingPromotion")
    assert not line.holds(sim.canary)
    sim.turn = THIRD
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")
    assert not told(sim, "Waiting for its turn")


def test_a_new_revision_at_a_gate_starts_over_without_taking_a_slot() -> None:
    sim = at_the_gate()
    sim.turn = THIRD
    release(sim, "app:3")
    sim.run(5)
    assert sim.phase == "Progressing"
    assert (waiting(sim)["status"], waiting(sim)["reason"]) == ("True", "StartLimit")
    assert not line.holds(sim.canary)
    assert sim.status["canaryWeight"] == 0
    since = waiting(sim)
    release(sim, "app:4")
    sim.run(5)
    assert waiting(sim) == since, "the place is kept"
    sim.run(FAR)
    assert sim.phase == "Progressing"
    sim.give()
    sim.script["more"] = yes()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:4"


@pytest.mark.parametrize("leave", [False, True], ids=["failed checks", "put back"])
def test_a_roll_back_waits_for_no_turn(leave: bool) -> None:  # noqa: FBT001 - a parameter
    sim = behind_the_gate()
    if leave:
        release(sim, "app:1")
    else:
        sim.edit("canaries", "web", {"status": {"failedChecks": 9}})
    sim.run(until="Failed")
    assert waiting(sim) == {}


# -- the deadline ------------------------------------------------------------------------------------------------------------


def slow_again(name: str, template: JSON, _: int) -> float | None:
    """Pods of the third image need 15 s, those of the fourth are never ready."""
    late = {"app:3": 15.0, "app:4": None}
    return late.get(image_of({"spec": {"template": template}}), 1.0) if name == "web" else 1.0


def test_no_deadline_runs_in_the_line_and_what_was_left_of_it_counts_on() -> None:
    sim = at_the_gate(delay=slow_again)
    sim.turn = THIRD
    release(sim, "app:4")
    sim.run(FAR)
    assert sim.phase == "Progressing"
    sim.give()
    sim.settle()
    begun = sim.t
    sim.run(until="Failed")
    # The wait began a moment after the restart; nothing of the deadline was used up before it.
    assert sim.t - begun == pytest.approx(20, abs=1)


def test_a_deadline_that_was_half_over_is_half_over_after_the_wait() -> None:
    sim = limited(delay=slow_again)
    release(sim, "app:4")
    sim.run(12)
    assert sim.phase == "Progressing"
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(FAR)
    sim.turn = THIRD
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(FAR)
    assert sim.phase == "Progressing"
    sim.restart()
    sim.give()
    sim.settle()
    begun = sim.t
    sim.run(until="Failed")
    assert sim.t - begun == pytest.approx(8, abs=1)


# -- what frees a slot -------------------------------------------------------------------------------------------------------


def suspend(sim: Sim) -> None:
    sim.edit("canaries", "web", {"spec": {"suspend": True}})


def resume(sim: Sim) -> None:
    sim.edit("canaries", "web", {"spec": {"suspend": False}})


def take_target(sim: Sim) -> None:
    sim.kept = sim.objects.pop(("deployments", "web"))  # type: ignore[attr-defined]
    sim._version += 1


def bring_target(sim: Sim) -> None:
    sim.objects["deployments", "web"] = sim.kept  # type: ignore[attr-defined]
    sim._version += 1


def spoil(sim: Sim) -> None:
    sim.edit("canaries", "web", {"spec": {"provider": "smi"}})


def mend(sim: Sim) -> None:
    sim.edit("canaries", "web", {"spec": {"provider": "kubernetes"}})


BLOCKED = [
    pytest.param(suspend, resume, id="suspended"),
    pytest.param(take_target, bring_target, id="target missing"),
    pytest.param(spoil, mend, id="refused"),
]


@pytest.mark.parametrize(("block", "free"), BLOCKED)
def test_who_cannot_go_on_gives_its_slot_up_and_regains_one(
    block: Callable[[Sim], None], free: Callable[[Sim], None]
) -> None:
    sim = limited()
    release(sim)
    sim.run(4)
    assert line.holds(sim.canary)
    block(sim)
    sim.settle()
    assert not line.holds(sim.canary)
    assert (waiting(sim)["status"], waiting(sim)["reason"]) == ("True", "SlotGivenUp")
    wrote = len(sim.actions)
    sim.run(FAR)
    assert len(sim.actions) == wrote
    sim.turn = THIRD
    free(sim)
    sim.run(FAR)
    assert sim.phase == "Progressing"
    assert waiting(sim)["reason"] == "StartLimit"
    assert line.waits(sim.canary)
    sim.give()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


@pytest.mark.parametrize(("block", "free"), BLOCKED)
def test_without_a_limit_none_of_it_is_said(
    block: Callable[[Sim], None], free: Callable[[Sim], None]
) -> None:
    sim = limited()
    sim.limited = False
    release(sim)
    sim.run(4)
    block(sim)
    sim.run(5)
    free(sim)
    sim.run(5)
    assert "Queued" not in str(sim.status)
    assert not sim.asked


def test_a_canary_that_is_deleted_holds_nothing_and_waits_for_nothing() -> None:
    sim = limited()
    release(sim)
    sim.run(4)
    going = merge(sim.canary, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert line.holds(sim.canary)
    assert not line.holds(going)
    going["status"]["conditions"].append({"type": "Queued", "status": "True"})
    assert not line.waits(going)


@pytest.mark.parametrize(
    ("phase", "held", "expected"),
    [
        ("Progressing", "", True),
        ("Progressing", "Unsteady", True),
        ("Progressing", "ConfirmTrafficIncrease", False),
        ("WaitingPromotion", "ConfirmPromotion", False),
        ("WaitingPromotion", "", False),
        ("Waiting", "ConfirmRollout", False),
        *((phase, "", False) for phase in ("", "Initializing", "Initialized", "Promoting")),
        *((phase, "", False) for phase in ("Finalising", "Succeeded", "Failed", "Frozen")),
    ],
)
def test_who_has_a_slot(phase: str, held: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    conditions = [{"type": "Held", "status": "True", "reason": held}] if held else []
    found = merge(canary(), {"status": {"phase": phase, "conditions": conditions}})
    assert line.holds(found) is expected


# -- crashes ----------------------------------------------------------------------------------------------------------------


def test_a_crash_after_every_write_ends_in_the_same_place() -> None:
    sim = behind_the_gate()
    sim.kill_each = True
    sim.give()
    sim.run(until="Succeeded")
    other = queued()
    other.kill_each = True
    suspended = False
    other.give()
    while other.phase != "Succeeded":
        other.run(1)
        if other.status.get("iterations") and not suspended:
            suspended = True
            suspend(other)
            other.run(5)
            resume(other)
    for one in (sim, other):
        assert waiting(one) == {}
        assert image_of(one.primary) == "app:2"
