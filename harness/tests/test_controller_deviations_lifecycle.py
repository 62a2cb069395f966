"""Faults of calls and of a Canary's end that this controller must not have (A rows of known-deviations).

Here stands what no test of a concern shows yet; which test shows which row is in the controller's README.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.controller.core.calls import Answer, Call
from harness.controller.shell.questions import Questions
from harness.tests.controller_sim import (
    Sim,
    canary,
    deployment,
    image,
    image_of,
    never_ready,
    running,
)

JSON = dict[str, Any]


def call(name: str) -> Call:
    return Call(name, "webhook", name, {})


# -- A7: every end has its own words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "words", "replicas"),
    [("web", "is scaled to zero: not ready", 0), ("web-primary", "web keeps running", 3)],
)
def test_a7_what_failed_says_what_became_of_the_target(
    broken: str, words: str, replicas: int
) -> None:
    sim = running(never_ready(broken))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.settle()
    assert words in sim.condition("Promoted")["message"]
    assert sim.target["spec"]["replicas"] == replicas


def test_a7_terminating_says_that_the_target_comes_back() -> None:
    sim = running(lambda *_: 5.0, revertOnDeletion=True)
    sim.remove("canaries", "web")
    sim.run(1)
    assert sim.phase == "Terminating"
    assert "is being restored before the Canary goes" in sim.condition("Promoted")["message"]


# -- A8, A9: a Canary goes -----------------------------------------------------------------------------------------------------


def test_a8_without_revert_nothing_is_given_back_and_nothing_holds_the_canary() -> None:
    sim = running()
    before = len(sim.actions)
    sim.remove("canaries", "web")
    sim.run(until="gone")
    sim.run(10)
    assert len(sim.actions) == before
    assert (sim.target["spec"]["replicas"], sim.get("deployments", "web-primary")) == (0, None)


def test_a9_with_revert_traffic_follows_the_pods_and_never_ends_on_nobody() -> None:
    sim = running(lambda *_: 3.0, revertOnDeletion=True)
    sim.remove("canaries", "web")
    begins = len(sim.actions)
    sim.cuts.append(sim.t)
    sim.run(until="gone")
    sim.settle()
    order = [action for action in sim.actions[begins:] if action[1] != "canaries"]
    assert order == [("patch", "deployments", "web"), ("patch", "services", "web")]
    serving = [s.serving for s in sim.samples if s.t >= sim.cuts[0] and s.serving is not None]
    assert min(serving) == 3


def test_a9_while_it_terminates_nobody_points_the_apex_back() -> None:
    sim = running(lambda *_: 3.0, revertOnDeletion=True)
    sim.remove("canaries", "web")
    while sim.has_canary:
        sim.run(0.5)
        if sim.has_canary and sim.objects["services", "web"]["spec"]["selector"] == {"app": "web"}:
            break
    selectors = []
    sim.before_write = lambda w: selectors.append(w.body) if w.resource == "services" else None
    sim.run(until="gone")
    assert selectors == []


# -- A13: one pass at a time, and nobody left behind --------------------------------------------------------------------------


def test_a13_another_interval_takes_the_place_of_the_first_one() -> None:
    sim = running(analysis={"interval": "10s", "threshold": 2, "iterations": 3})
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(3)
    sim.edit("canaries", "web", {"spec": {"analysis": {"interval": "2s"}}})
    began = sim.now
    sim.run(until="Promoting")
    counted = [i for _, phase, i in sim.history if phase == "Progressing"]
    assert counted == [0, 1, 2]
    assert sim.now - began == pytest.approx(4.0, abs=0.5)


# -- A14: whatever takes long holds up its own question only --------------------------------------------------------------------


def test_a14_a_hook_that_hangs_holds_up_neither_a_new_revision_nor_a_deletion() -> None:
    sim = Sim()
    sim.outside.timeout = 900.0
    sim.script["slow"] = None
    sim.add("deployments", deployment())
    hooks = [{"type": "rollout", "name": "slow", "url": "http://slow.test/"}]
    analysis = {"interval": "2s", "threshold": 2, "iterations": 2, "webhooks": hooks}
    sim.add("canaries", canary(analysis=analysis, revertOnDeletion=True))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(20)
    asked = len(sim.calls)
    assert (sim.phase, asked) == ("Progressing", 1)
    began = sim.now
    sim.edit("deployments", "web", image("app:3"))
    sim.settle()
    assert any("starting over" in text for text in sim.messages())
    assert sim.now == began
    sim.run(5)
    sim.remove("canaries", "web")
    sim.run(10, until="gone")
    assert image_of(sim.target) == "app:3"


def test_a14_a_call_that_nobody_waits_for_is_given_up_at_once() -> None:
    async def story() -> None:
        begun: list[str] = []
        ended: list[str] = []
        woken = asyncio.Event()

        async def ask(given: Call) -> Answer:
            begun.append(given.key)
            try:
                if given.key == "slow":
                    await asyncio.Event().wait()
                return Answer(1.0, ok=True)
            finally:
                ended.append(given.key)

        questions = Questions(ask, woken.set)
        questions.asked((call("slow"),))
        await asyncio.sleep(0)
        questions.asked((call("slow"),))
        await asyncio.sleep(0)
        assert (begun, ended) == (["slow"], [])
        questions.asked((call("quick"),))
        await woken.wait()
        assert sorted(ended) == ["quick", "slow"]
        assert set(questions.answers) == {"quick"}
        questions.forget()
        assert questions.answers == {}
        questions.asked((call("slow"),))
        await asyncio.sleep(0)
        await questions.close()
        assert ended.count("slow") == 2

    asyncio.run(story())
