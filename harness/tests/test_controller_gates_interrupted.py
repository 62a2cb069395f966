"""A hook that hangs holds nothing up: a new revision, a suspension or a deletion is acted on at once, and the call is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.tests.controller_runs import asked, hook, metric, weighted
from harness.tests.controller_sim import image, image_of, yes

if TYPE_CHECKING:
    from harness.tests.controller_sim import Sim

HANGING = ("start", "undo", "smoke", "load", "m", "more", "finish")
SOON = 0.1


def hanging(name: str) -> Sim:
    """A run whose hook or metric of that name has been asked, and does not answer."""
    sim = weighted(
        hook("confirm-rollout", "start"),
        hook("rollback", "undo"),
        hook("pre-rollout", "smoke"),
        hook("rollout", "load"),
        hook("confirm-traffic-increase", "more"),
        hook("confirm-promotion", "finish"),
        metrics=[metric("m")],
        maxWeight=40,
    )
    sim.outside.timeout = 1000.0
    sim.script[name] = None
    sim.run(60)
    assert asked(sim)[-1][1] == name
    return sim


@pytest.mark.parametrize("name", HANGING)
def test_nothing_happens_while_a_hook_hangs(name: str) -> None:
    sim = hanging(name)
    before = len(sim.calls), len(sim.actions)
    sim.run(500)
    assert (len(sim.calls), len(sim.actions)) == before
    sim.script[name] = yes() if name != "undo" else None
    sim.script.pop(name)
    sim.run(until="Succeeded")


@pytest.mark.parametrize("name", HANGING)
def test_a_new_revision_is_taken_up_at_once(name: str) -> None:
    sim = hanging(name)
    before, phase = len(sim.calls), sim.phase
    sim.edit("deployments", "web", image("app:3"))
    sim.run(SOON)
    if phase in ("Progressing", "WaitingPromotion"):
        assert [m for m in sim.messages() if "starting over" in m]
        assert (sim.phase, sim.status["canaryWeight"], sim.traffic()["web-canary"]) == (
            "Progressing",
            0,
            0,
        )
    else:
        assert [called for _, called in sim.calls[before:]] == [name]
    sim.script.pop(name)
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:3"


@pytest.mark.parametrize("name", HANGING)
def test_a_suspension_is_obeyed_at_once_and_the_question_asked_again_afterwards(name: str) -> None:
    sim = hanging(name)
    before, phase, weight = len(sim.calls), sim.phase, sim.status["canaryWeight"]
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.script.pop(name)  # an answer that comes now is nobody's
    sim.run(100)
    assert (len(sim.calls), sim.phase, sim.status["canaryWeight"]) == (before, phase, weight)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(SOON)
    assert len(sim.calls) > before
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"


@pytest.mark.parametrize("name", HANGING)
@pytest.mark.parametrize("revert", [False, True], ids=["plain", "reverting"])
def test_a_deletion_is_taken_up_at_once(name: str, *, revert: bool) -> None:
    sim = hanging(name)
    sim.edit("canaries", "web", {"spec": {"revertOnDeletion": revert}})
    sim.run(SOON)
    before = len(sim.calls)
    sim.remove("canaries", "web")
    sim.run(SOON)
    assert sim.phase == ("Terminating" if revert and not sim.ready_pods("web") else "gone")
    sim.run(until="gone")
    assert len(sim.calls) == before


@pytest.mark.parametrize("name", HANGING)
def test_the_promoted_template_put_back_ends_it_at_once(name: str) -> None:
    sim = hanging(name)
    ran = sim.phase in ("Progressing", "WaitingPromotion")
    sim.edit("deployments", "web", image("app:1"))
    sim.run(SOON)
    assert sim.phase == ("Failed" if ran else "Initialized")
    assert sim.traffic()["web-canary"] == 0
    sim.run(5)
    assert sim.ready_pods("web") == 0


def test_an_edited_hook_is_another_question() -> None:
    sim = hanging("load")
    before = len(sim.calls)
    hooks = [dict(entry) for entry in sim.canary["spec"]["analysis"]["webhooks"]]
    hooks[3]["url"] = "http://other.test/"
    sim.edit("canaries", "web", {"spec": {"analysis": {"webhooks": hooks}}})
    sim.run(SOON)
    assert "load" in [name for _, name in sim.calls[before:]]


def test_post_rollout_hooks_do_not_hold_a_deletion_or_a_suspension_up() -> None:
    sim = weighted(hook("post-rollout", "after"), spec={"revertOnDeletion": True})
    sim.outside.timeout = 1000.0
    sim.script["after"] = None
    sim.run(until="Succeeded")
    sim.run(5)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(5)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(5)
    assert len(asked(sim)) == 2
    sim.remove("canaries", "web")
    sim.run(5, until="gone")
