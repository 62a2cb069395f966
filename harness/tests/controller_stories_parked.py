"""Stories of Canaries whose primary is a parked ReplicaSet, and of targets that get their template back (spec freeze-and-adopt 4 to 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.controller.core.ownership import controller_of
from harness.tests.controller_sim import Sim, image, image_of, no, number, service, yes
from harness.tests.controller_stories import (
    Story,
    abort,
    delete,
    delete_mid_run,
    new_image,
    promote,
    restart_mid_run,
    suspend_mid_run,
)
from harness.tests.controller_stories_routed import GATEWAY, MATCH, METRIC, hook

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Write

JSON = dict[str, Any]
REPLICAS = 3
CHECK = str(METRIC["name"])


class Served(Sim):
    """Judges what parking is for: since there is a Canary, the apex leads to as many ready pods as there are to be, at every moment.

    Its target runs before the Canary comes, as it does for whoever begins to use this.
    """

    def _sample(self) -> None:
        super()._sample()
        if self.has_canary and (self.serving() or 0) < REPLICAS and self.served:
            self.problems.append(f"{self.t} s, {self.phase}: {self.serving()} pods serve")
        self.served = self.served or self.serving() == REPLICAS

    served = False


def parked(sim: Sim) -> JSON:
    """The ReplicaSet that serves, as the status names it."""
    name = sim.status["parked"]["name"]
    obj = sim.get("replicasets", name)
    assert obj is not None
    return obj


# -- what happens ------------------------------------------------------------------------------------------------------------


def fail(sim: Sim, name: str = "app:2") -> None:
    new_image(sim, name)
    sim.run(until="Progressing")
    sim.script[CHECK] = number(50)
    sim.run(until="Failed")
    sim.run(15)


def fix(sim: Sim) -> None:
    sim.script[CHECK] = number(100)
    new_image(sim, "app:3")
    sim.run(until="Succeeded")


def then(*acts: Callable[[Sim], None]) -> Callable[[Sim], None]:
    """One after the other."""

    def act(sim: Sim) -> None:
        for one in acts:
            one(sim)

    return act


def promote_twice(sim: Sim) -> None:
    promote(sim)
    sim.run(10)
    new_image(sim, "app:3")
    sim.run(until="Progressing")
    sim.run(until="Succeeded")


def go_back(sim: Sim) -> None:
    """The template that was promoted before is released again: its ReplicaSet is gone by then."""
    promote(sim)
    sim.run(10)
    new_image(sim, "app:1")
    sim.run(until="Progressing")
    sim.run(until="Succeeded")


def scale(sim: Sim) -> None:
    """Somebody scales the restored target, which owns the pods that serve."""
    sim.edit("deployments", "web", {"spec": {"replicas": 5}})
    sim.run(10)


def scale_set(sim: Sim) -> None:
    """Somebody scales the parked ReplicaSet, whose Deployment's controller notes there what it had asked for itself."""
    sim.edit("replicasets", sim.status["parked"]["name"], {"spec": {"replicas": 5}})
    sim.run(5)


def release_alone(sim: Sim) -> None:
    """The Canary goes, and the target is released without it."""
    delete(sim)
    sim.edit("deployments", "web", image("app:9"))
    sim.run(20)


def gate(sim: Sim) -> None:
    new_image(sim)
    sim.run(9)
    sim.script["start"] = yes()
    sim.run(until="Succeeded")


def remove_when(verb: str, plural: str) -> Callable[[Sim], None]:
    """The Canary is deleted right before such a write of the restoration."""

    def act(sim: Sim) -> None:
        gone: list[bool] = []

        def watch(write: Write) -> None:
            if (write.verb, write.resource) == (verb, plural) and not gone:
                gone.append(True)
                sim.remove("canaries", "web")

        new_image(sim)
        sim.run(until="Progressing")
        sim.script[CHECK] = number(50)
        sim.before_write = watch
        sim.run(until="gone")

    return act


# -- how it ends -------------------------------------------------------------------------------------------------------------


def serves(image: str, phase: str = "Succeeded") -> Callable[[Sim], bool]:
    """All pods that serve run that image, are the Canary's, and the target is at zero."""

    def end(sim: Sim) -> bool:
        owner = controller_of(parked(sim)) or {}
        return (
            (sim.phase, owner["kind"], image_of(parked(sim))) == (phase, "Canary", image)
            and sim.behind("web") == REPLICAS
            and sim.target["spec"]["replicas"] == 0
        )

    return end


def adopted(replicas: int = REPLICAS) -> Callable[[Sim], bool]:
    """The target owns the very pods that serve."""

    def end(sim: Sim) -> bool:
        owner = controller_of(parked(sim)) or {}
        return (
            sim.phase == "Failed"
            and sim.condition("Restored")["reason"] == "Adopted"
            and owner["uid"] == sim.target["metadata"]["uid"]
            and image_of(sim.target) == "app:1"
            and sim.behind("web") == replicas
        )

    return end


def alone(image: str) -> Callable[[Sim], bool]:
    """The Canary is gone, and the target serves."""

    def end(sim: Sim) -> bool:
        held = not sim.has_canary and image_of(sim.target) == image
        paused = bool(sim.target["spec"].get("paused"))
        return held and not paused and not sim.leftovers() and sim.ready_pods("web") == REPLICAS

    return end


ADOPT: JSON = {"interval": "2s", "threshold": 2, "restore": "adopt", "metrics": [METRIC]}
PLAIN: JSON = {"analysis": {**ADOPT, "iterations": 3}}
AB: JSON = {**GATEWAY, "analysis": {**ADOPT, **MATCH, "iterations": 3}}
WEIGHTS: JSON = {**GATEWAY, "analysis": {**ADOPT, "stepWeight": 20, "maxWeight": 60}}
REVERT: JSON = {"revertOnDeletion": True}
OWN: JSON = {"services": service()}
GATED: JSON = {"analysis": {**PLAIN["analysis"], "webhooks": [hook("confirm-rollout", "start")]}}


STORIES = (
    Story("adopt-promote", promote, serves("app:2"), PLAIN, bed=Served),
    Story("adopt-promote-twice", promote_twice, serves("app:3"), PLAIN, bed=Served),
    Story("adopt-go-back", go_back, serves("app:1"), PLAIN, bed=Served),
    Story("adopt-restart", restart_mid_run, serves("app:3"), PLAIN, bed=Served),
    Story("adopt-suspend", suspend_mid_run, serves("app:2"), PLAIN, bed=Served),
    Story("adopt-skip", promote, serves("app:2"), PLAIN | {"skipAnalysis": True}, bed=Served),
    Story("adopt-weights", promote, serves("app:2"), WEIGHTS, bed=Served),
    Story("adopt-ab", promote, serves("app:2"), AB, bed=Served),
    Story(
        "adopt-gated",
        gate,
        serves("app:2"),
        GATED,
        answers={"start": no()},
        bed=Served,
    ),
    Story("adopt-abort", abort, serves("app:1", "Failed"), PLAIN, bed=Served),
    # a failure
    Story("adopt-fail", fail, adopted(), PLAIN, bed=Served),
    Story("adopt-fail-weights", fail, adopted(), WEIGHTS, bed=Served),
    Story("adopt-fail-ab", fail, adopted(), AB, bed=Served),
    Story("adopt-fail-fixed", then(fail, fix), serves("app:3"), PLAIN, bed=Served),
    Story("adopt-fail-twice-fixed", then(fail, fail, fix), serves("app:3"), PLAIN, bed=Served),
    Story(
        "adopt-fail-other",
        then(fail, lambda s: fail(s, "app:4")),
        adopted(),
        PLAIN,
        bed=Served,
    ),
    Story("adopt-fail-scaled", then(fail, scale), adopted(5), PLAIN, bed=Served),
    Story("adopt-fail-scaled-fixed", then(fail, scale, fix), lambda s: s.behind("web") == 5, PLAIN),
    # deletion
    Story("adopt-revert", delete, alone("app:1"), PLAIN | REVERT, others=OWN),
    Story("adopt-revert-mid-run", delete_mid_run, alone("app:2"), PLAIN | REVERT, others=OWN),
    Story("adopt-fail-revert", then(fail, delete), alone("app:1"), PLAIN | REVERT, others=OWN),
    Story(
        "adopt-scaled-fail-alone",
        then(scale_set, fail, release_alone),
        lambda s: [image_of(one) for one in s.replica_sets if one["spec"]["replicas"]] == ["app:9"],
        PLAIN | REVERT,
        others=OWN,
    ),
    Story("adopt-gone-delete", remove_when("delete", "deployments"), alone("app:1"), PLAIN),
    Story("adopt-gone-create", remove_when("create", "deployments"), alone("app:1"), PLAIN),
    Story("adopt-gone-release", remove_when("patch", "replicasets"), alone("app:1"), PLAIN),
)
