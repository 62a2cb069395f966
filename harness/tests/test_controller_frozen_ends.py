"""How a freeze ends, and what happens meanwhile, in virtual time (spec freeze-and-adopt 3)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core import frozen
from harness.tests.controller_freezing import (
    AB,
    METRIC,
    begun,
    freeze,
    matched,
    order,
    said,
    spec,
)
from harness.tests.controller_limited import THIRD, Limited
from harness.tests.controller_sim import Sim, never_ready
from harness.tests.controller_sim_make import canary, daemonset, image, image_of
from harness.tests.controller_sim_outside import no, number, yes

JSON = dict[str, Any]


# -- ways out ----------------------------------------------------------------------------------------------------------------


def test_the_promoted_template_put_back_ends_it() -> None:
    sim = freeze(begun(**AB))
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    sim.run(5)
    assert sim.condition("Promoted")["reason"] == "ManualRollback"
    assert matched(sim) == "nobody" or matched(sim) == "web-primary"
    assert sim.ready_pods("web") == 0
    sim.run(60)
    assert sim.phase == "Failed"


def test_the_flag_taken_away_rolls_back_once() -> None:
    sim = freeze(begun(**AB))
    sim.edit("canaries", "web", {"spec": {"analysis": {"freezeOnFailure": False}}})
    sim.run(until="Failed")
    sim.run(60)
    assert sim.phases().count("Failed") == 1
    assert "freezeOnFailure" in sim.condition("Promoted")["message"]
    assert sim.ready_pods("web") == 0


def test_skip_analysis_promotes_what_is_frozen() -> None:
    sim = freeze(begun(**AB))
    sim.edit("canaries", "web", {"spec": {"skipAnalysis": True}})
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"
    finalising = next(t for t, phase, _ in sim.history if phase == "Finalising")
    assert next(t for t, weight in sim.weights[::-1] if weight == 0) >= finalising


def test_an_order_promotes_the_revision_that_it_names_and_is_forgotten() -> None:
    sim = freeze(begun(**AB))
    order(sim, f"promote {sim.status['lastAppliedSpec']}")
    sim.run(until="Succeeded")
    sim.run(5)
    assert image_of(sim.primary) == "app:2"
    assert frozen.ORDER not in (sim.canary["metadata"].get("annotations") or {})


def test_an_order_takes_the_revision_back_that_it_names() -> None:
    sim = freeze(begun(**AB))
    order(sim, f"rollback {sim.status['lastAppliedSpec']}")
    sim.run(until="Failed")
    sim.run(5)
    assert image_of(sim.primary) == "app:1"
    assert sim.ready_pods("web") == 0
    assert frozen.ORDER not in (sim.canary["metadata"].get("annotations") or {})


@pytest.mark.parametrize("text", ["promote", "promote v2:0123456789abcdef", "yes", ""])
def test_an_order_for_another_revision_does_nothing_and_is_said(text: str) -> None:
    sim = freeze(begun(**AB))
    order(sim, text)
    sim.run(30)
    assert sim.phase == "Frozen"
    assert "promote v2:" in sim.condition("Warned")["message"]
    order(sim, f"rollback {sim.status['lastAppliedSpec']}")
    sim.run(until="Failed")
    sim.run(5)
    assert not sim.condition("Warned")


def test_an_order_that_nothing_frozen_waits_for_is_removed() -> None:
    sim = begun(**AB)
    order(sim, f"promote {sim.status['lastAppliedSpec']}")
    sim.run(0.5)
    assert frozen.ORDER not in (sim.canary["metadata"].get("annotations") or {})
    assert sim.phase == "Progressing"


def test_pods_that_are_not_ready_are_not_promoted_by_order() -> None:
    sim = Sim(never_ready("web"))
    begun(sim, more={"progressDeadlineSeconds": 20}, **AB)
    sim.run(until="Frozen")
    sim.run(1)
    order(sim, f"promote {sim.status['lastAppliedSpec']}")
    sim.run(60)
    assert sim.phase == "Frozen"
    assert said(sim, "Deployment web is not promoted before it is ready") == 1


def test_a_rollback_hook_is_asked_every_interval_and_ends_it_even_when_it_changes_its_mind() -> (
    None
):
    hook = {"type": "rollback", "name": "undo", "url": "http://undo.test/"}
    sim = begun(**AB | {"webhooks": [hook]})
    sim.script["undo"] = no()
    freeze(sim)
    before = len(sim.calls)
    sim.run(10)
    assert 4 <= len(sim.calls) - before <= 6
    sim.script["undo"] = yes()
    while sim.phase == "Frozen" and sim.status["canaryWeight"]:
        sim.run(0.05)
    sim.script["undo"] = no()
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "RollbackHook"
    sim.run(30)
    assert sim.phase == "Failed"


# -- what else happens meanwhile ---------------------------------------------------------------------------------------------


def test_suspended_it_stays_frozen_whatever_comes() -> None:
    sim = freeze(begun(**AB))
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.edit("deployments", "web", image("app:3"))
    sim.run(60)
    assert sim.phase == "Frozen"
    sim.script["request-success-rate"] = number(100)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")


def test_a_deleted_canary_gives_the_traffic_to_the_target_as_it_is() -> None:
    sim = freeze(begun(more={"revertOnDeletion": True}, **AB))
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert image_of(sim.target) == "app:2"
    assert sim.ready_pods("web") == 3


@pytest.mark.parametrize(
    "status",
    [
        {"lastAppliedSpec": "5454669676", "lastTrackedRevision": None},
        {"lastTrackedRevision": None},
    ],
)
def test_a_status_of_another_version_starts_nothing(status: JSON) -> None:
    sim = freeze(begun(**AB))
    sim.edit_status(status)
    sim.restart()
    sim.run(60)
    assert sim.phase == "Frozen"
    assert said(sim, "Deployment web stays frozen") == 1
    assert sim.status["lastTrackedRevision"]
    sim.script["request-success-rate"] = number(100)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")


def test_a_daemon_set_is_frozen_as_well() -> None:
    sim = Sim()
    sim.add("daemonsets", daemonset())
    sim.add(
        "canaries",
        canary(
            targetRef={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"},
            **spec(routed=False, iterations=3, metrics=[METRIC]),
        ),
    )
    sim.run(until="Initialized")
    sim.edit("daemonsets", "web", image("app:2"))
    sim.run(until="Progressing")
    freeze(sim)
    assert sim.ready_pods("web") == 2
    sim.script["request-success-rate"] = number(100)
    sim.edit("daemonsets", "web", image("app:3"))
    sim.run(until="Succeeded")


# -- a limit on analyses -----------------------------------------------------------------------------------------------------


def test_a_replacement_waits_for_its_turn_with_its_traffic_where_it_is() -> None:
    sim = Limited()
    begun(sim, **AB)
    freeze(sim)
    sim.script["request-success-rate"] = number(100)
    sim.turn = THIRD
    sim.edit("deployments", "web", image("app:3"))
    sim.run(60)
    assert sim.phase == "Frozen"
    assert sim.condition("Queued")["status"] == "True"
    assert matched(sim) == "web-canary"
    sim.give()
    sim.run(until="Succeeded")
    assert not sim.condition("Queued")
    assert said(sim, "The turn of web has come") == 1


def test_a_replacement_that_is_withdrawn_leaves_the_line() -> None:
    sim = Limited()
    begun(sim, **AB)
    freeze(sim)
    sim.turn = THIRD
    sim.edit("deployments", "web", image("app:3"))
    sim.run(5)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(5)
    assert sim.phase == "Frozen"
    assert not sim.condition("Queued")
