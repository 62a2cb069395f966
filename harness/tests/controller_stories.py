"""Stories of releases for the simulated cluster: what is set up, what happens, and what the end must look like.

Every story is told again and again by tests that disturb the controller meanwhile, so a story only says what users and the
world do, and waits for phases, never for passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.tests.controller_handover import keyed
from harness.tests.controller_sim import (
    Sim,
    canary,
    deployment,
    image,
    image_of,
    never_ready,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.controller.core.calls import Answer

JSON = dict[str, Any]


@dataclass(frozen=True)
class Story:
    """One story. It begins with objects that exist before the controller starts, and goes on from Initialized."""

    name: str
    act: Callable[[Sim], None]
    end: Callable[[Sim], bool]
    """Whether the story went as it says, asked of the undisturbed run."""
    spec: JSON = field(default_factory=dict)
    """Fields of the Canary's spec, over those of `canary()`."""
    target: JSON = field(default_factory=deployment)
    plural: str = "deployments"
    others: Mapping[str, JSON] = field(default_factory=dict)
    """Further objects, by plural."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """What hooks and metrics answer at first, by name; the others are obliging."""
    bed: type[Sim] = Sim
    """One that judges each write, perhaps."""
    repeats: bool = False
    """A crash may make it say something again, since a hook has to be asked again."""

    def begin(self) -> Sim:
        """Return the namespace before the controller has seen it."""
        sim = self.bed()
        sim.script.update(self.answers)
        for plural, obj in self.others.items():
            sim.add(plural, obj)
        sim.add(self.plural, self.target)
        sim.add("canaries", canary(**self.spec))
        return sim

    def tell(self, sim: Sim) -> Sim:
        """Go through the story, and a while beyond its end."""
        sim.run(until="Initialized")
        self.act(sim)
        sim.run(60)
        return sim


def promoted(sim: Sim) -> bool:
    return sim.phase == "Succeeded" and image_of(sim.primary) == "app:2"


def rolled_back(sim: Sim) -> bool:
    return sim.phase == "Failed" and image_of(sim.primary) == "app:1"


def new_image(sim: Sim, name: str = "app:2") -> None:
    sim.edit(sim.plural, "web", image(name))


# -- what happens ------------------------------------------------------------------------------------------------------------


def promote(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Succeeded")


def restart_mid_run(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(3.5)
    new_image(sim, "app:3")
    sim.run(until="Succeeded")


def roll_back(sim: Sim) -> None:
    sim.delay = never_ready("web")
    new_image(sim)
    sim.run(until="Failed")


def fail(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Failed")


def fail_promotion(sim: Sim) -> None:
    sim.delay = never_ready("web-primary")
    fail(sim)


def fail_and_repair(sim: Sim) -> None:
    roll_back(sim)
    sim.run(10)
    new_image(sim, "app:3")
    sim.run(until="Succeeded")


def fail_promotion_and_repair(sim: Sim) -> None:
    fail_promotion(sim)
    sim.run(10)
    new_image(sim, "app:3")
    sim.run(until="Succeeded")


def abort(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(2.5)
    new_image(sim, "app:1")
    sim.run(until="Failed")


def suspend_mid_run(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(1.5)
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.run(30)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")


def delete(sim: Sim) -> None:
    sim.cuts.append(sim.t)
    sim.remove("canaries", "web")
    sim.run(until="gone")


def delete_mid_run(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(2.5)
    delete(sim)


def lose_primary(sim: Sim) -> None:
    sim.run(5)
    sim.cuts.append(sim.t)
    sim.remove(sim.plural, "web-primary")
    sim.run(30)


STORIES = (
    Story("promote", promote, promoted),
    Story("node-spread", promote, promoted, target=keyed()),
    Story("restart", restart_mid_run, lambda s: image_of(s.primary) == "app:3"),
    Story("roll-back", roll_back, rolled_back),
    Story(
        "promotion-failed",
        fail_promotion,
        lambda s: s.condition("Promoted")["reason"] == "PromotionFailed",
    ),
    Story("fail-and-repair", fail_and_repair, lambda s: image_of(s.primary) == "app:3"),
    Story(
        "promotion-failed-and-repair",
        fail_promotion_and_repair,
        lambda s: image_of(s.primary) == "app:3",
    ),
    Story("abort", abort, rolled_back),
    Story("suspend", suspend_mid_run, promoted),
    Story("skip-analysis", promote, promoted, {"skipAnalysis": True}),
    Story("primary-lost", lose_primary, lambda s: image_of(s.primary) == "app:1"),
    Story("deletion", delete, lambda s: s.ready_pods("web-primary") == 0),
)
