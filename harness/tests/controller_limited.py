"""A Canary in virtual time under a limit on analyses: the test says whether it has a turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.controller.core.decision import Turn
from harness.controller.core.policy import Policy
from harness.tests.controller_sim import Sim, canary, deployment, image

if TYPE_CHECKING:
    from harness.controller.core import World

JSON = dict[str, Any]
FIRST = Turn(granted=True)
LIMIT = "at most 5 analyses at a time (--max-concurrent-analyses)"
FAR = 1000.0
"""Seconds: many deadlines."""
THIRD = Turn(granted=False, position=3, waiting=7, limit=LIMIT)


class Limited(Sim):
    """The line asks for nothing itself here: it answers with `turn` whenever it is asked."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.turn = FIRST
        self.asked = 0
        """How often a pass asked for a turn."""
        self.limited = True

    def world(self) -> World:
        policy = Policy(most_analyses=5) if self.limited else Policy()
        return replace(super().world(), policy=policy)

    def controller_pass(self) -> Any:
        plain = self.decide

        def with_turn(world: World, obj: JSON, now: float) -> Any:
            found = plain(world, obj, now)
            if not found.asks_turn:
                return found
            self.asked += 1
            return plain(replace(world, turn=self.turn), obj, now)

        self.decide = with_turn
        try:
            return super().controller_pass()
        finally:
            self.decide = plain

    def give(self, turn: Turn = FIRST) -> None:
        """The line calls the Canary."""
        self.turn = turn
        self._idle_at = None


def limited(delay: Any = None, spec: JSON | None = None, **analysis: Any) -> Limited:
    """A Canary that has just been initialised: blue-green with 2 iterations, an interval of 2 s, a deadline of 20 s."""
    sim = Limited(*([delay] if delay else []))
    sim.add("deployments", deployment())
    whole = {"interval": "2s", "threshold": 2, "iterations": 2} | analysis
    sim.add("canaries", canary(**({"analysis": whole} | (spec or {}))))
    sim.run(until="Initialized")
    sim.settle()
    return sim


def release(sim: Sim, name: str = "app:2") -> None:
    """Give the target another image."""
    if not sim.cuts:
        sim.cuts.append(sim.t)
    sim.edit("deployments", "web", image(name))


def waiting(sim: Sim) -> JSON:
    """Condition Queued."""
    return sim.condition("Queued")


def told(sim: Sim, begin: str) -> list[str]:
    """The events that begin like that."""
    return [message for message in sim.messages() if message.startswith(begin)]


def queued(**kinds: Any) -> Limited:
    """One that has a new revision and no turn."""
    sim = limited(**kinds)
    sim.turn = THIRD
    release(sim)
    sim.settle()
    return sim
