"""Stories of failed analyses that are frozen, and of every way out of that (spec freeze-and-adopt 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.controller.core import frozen
from harness.tests.controller_sim import (
    Sim,
    daemonset,
    image_of,
    never_ready,
    no,
    number,
    service,
    yes,
)
from harness.tests.controller_sim_view import backends
from harness.tests.controller_stories import Story, delete, new_image
from harness.tests.controller_stories_routed import (
    DAEMON,
    GATEWAY,
    KEDA,
    MATCH,
    METRIC,
    SCALED_OBJECT,
    hook,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Write

JSON = dict[str, Any]
BROKEN, HEALTHY = number(50), number(100)
CHECK = str(METRIC["name"])
FREEZE: JSON = {
    "interval": "2s",
    "threshold": 2,
    "freezeOnFailure": True,
    "metrics": [{**METRIC, "interval": "4s"}],
}


class Kept(Sim):
    """Judges what freezing is for: nobody who met the new version is sent back to the old one, or finds nobody at all.

    So it goes from when the canary first gets traffic until the primary runs something new.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reached = 0
        """The highest share that the canary's traffic has had; 100 for an A/B test."""

    def _write(self, write: Write) -> JSON:
        answer = super()._write(write)
        if write.resource == "httproutes":
            share = self._share()
            if share < self.reached and self._old():
                self._found(f"users are sent back: {share} % instead of {self.reached} %")
            self.reached = max(share, self.reached)
        if (write.resource, write.name) == (self.plural, "web"):
            zero = self.target["spec"].get("replicas") == 0
            if zero and self._old() and "Frozen" in self.phases():
                self._found("the frozen pods are taken away")
        return answer

    def _sample(self) -> None:
        super()._sample()
        if self.reached and self._old() and not self.behind("web-canary"):
            self._found("nobody answers those who met the new version")

    def _share(self) -> int:
        route = self.objects["httproutes", "web"]
        if "match" in self.canary["spec"]["analysis"]:
            return 100 * (backends(route, matched=True).keys() == {"web-canary"})
        return backends(route).get("web-canary", 0)

    def _old(self) -> bool:
        return self.has_canary and image_of(self.primary) == "app:1"

    def _found(self, what: str) -> None:
        self.problems.append(f"{self.t} s, {self.phase}: {what}")


# -- what happens ------------------------------------------------------------------------------------------------------------


def freeze(sim: Sim) -> None:
    """The metric turns bad after a step that passed."""
    new_image(sim)
    sim.run(until="Progressing")
    while sim.status["iterations"] < 1 and sim.status["canaryWeight"] in (0, 20, 100):
        sim.run(0.5)
    sim.script[CHECK] = BROKEN
    sim.run(until="Frozen")


def freeze_late(sim: Sim) -> None:
    sim.delay = never_ready("web")
    new_image(sim)
    sim.run(until="Frozen")


def then(
    *acts: Callable[[Sim], None], first: Callable[[Sim], None] = freeze
) -> Callable[[Sim], None]:
    """It is frozen, and after a while this happens."""

    def act(sim: Sim) -> None:
        first(sim)
        for one in acts:
            sim.run(5)
            one(sim)

    return act


def fix(sim: Sim) -> None:
    sim.script[CHECK] = HEALTHY
    new_image(sim, "app:3")
    sim.run(until="Succeeded")


def fail_again(sim: Sim) -> None:
    new_image(sim, "app:4")
    sim.run(until="Progressing")
    sim.run(until="Frozen")


def overtaken(sim: Sim) -> None:
    """The next revision is there before anybody was told."""
    freeze(sim)
    fix(sim)


def new_revision(sim: Sim) -> None:
    """Another revision comes before anything has failed."""
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(4.5)
    new_image(sim, "app:3")
    sim.run(until="Succeeded")


def put_back(sim: Sim) -> None:
    new_image(sim, "app:1")
    sim.run(until="Failed")


def order(verb: str, end: str) -> Callable[[Sim], None]:
    def act(sim: Sim) -> None:
        text = f"{verb} {sim.status['lastAppliedSpec']}"
        sim.edit("canaries", "web", {"metadata": {"annotations": {frozen.ORDER: text}}})
        sim.run(until=end)

    return act


def change(spec: JSON, end: str) -> Callable[[Sim], None]:
    def act(sim: Sim) -> None:
        sim.edit("canaries", "web", {"spec": spec})
        sim.run(until=end)

    return act


def undo(sim: Sim) -> None:
    sim.script["undo"] = yes()
    sim.run(until="Failed")


def gated(sim: Sim) -> None:
    """The gate before the next revision opens after a while."""
    sim.script["start"] = no()
    sim.script[CHECK] = HEALTHY
    new_image(sim, "app:3")
    sim.run(9)
    sim.script["start"] = yes()
    sim.run(until="Succeeded")


def suspended(sim: Sim) -> None:
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.script[CHECK] = HEALTHY
    new_image(sim, "app:3")
    sim.run(20)
    sim.edit("canaries", "web", {"spec": {"suspend": False}})
    sim.run(until="Succeeded")


def lose_pods(sim: Sim) -> None:
    """A frozen pod is replaced by one that takes its time."""
    sim.delay = lambda *_: 5.0
    sim.pods["web"].pop()
    sim.run(10)


# -- how it ends -------------------------------------------------------------------------------------------------------------


def stays(sim: Sim) -> bool:
    told = [alert for _, alert in sim.alerts if "frozen" in alert.message]
    return (
        sim.phase == "Frozen"
        and image_of(sim.primary) == "app:1"
        and sim.target["spec"].get("replicas") != 0
        and [alert.severity for alert in told] == ["error"]
    )


def fixed(sim: Sim) -> bool:
    return sim.phase == "Succeeded" and image_of(sim.primary) == "app:3"


def promoted(sim: Sim) -> bool:
    return sim.phase == "Succeeded" and image_of(sim.primary) == "app:2"


def taken_back(sim: Sim) -> bool:
    return sim.phase == "Failed" and sim.ready_pods("web") == 0


def twice(sim: Sim) -> bool:
    return fixed(sim) and sim.phases().count("Frozen") == 2


def given_back(sim: Sim) -> bool:
    return not sim.has_canary and image_of(sim.target) == "app:2" and sim.behind("web") == 3


PLAIN: JSON = {"analysis": {**FREEZE, "iterations": 4}}
AB: JSON = {**GATEWAY, "analysis": {**FREEZE, **MATCH, "iterations": 4}}
WEIGHTS: JSON = {**GATEWAY, "analysis": {**FREEZE, "stepWeight": 20, "maxWeight": 80}}
SHORT: JSON = {"progressDeadlineSeconds": 20}


def _with(spec: JSON, *hooks: JSON, **more: Any) -> JSON:
    return {**spec, "analysis": {**spec["analysis"], "webhooks": list(hooks)}, **more}


STORIES = (
    Story("freeze", freeze, stays, PLAIN, bed=Kept),
    Story("freeze-ab", freeze, stays, AB, bed=Kept),
    Story("freeze-weights", freeze, stays, WEIGHTS, bed=Kept),
    Story("freeze-late", freeze_late, stays, AB | SHORT, bed=Kept),
    Story("freeze-hooks", freeze, stays, _with(AB, hook("post-rollout", "after")), bed=Kept),
    # another revision
    Story("freeze-fixed", then(fix), fixed, PLAIN, bed=Kept),
    Story("freeze-ab-fixed", then(fix), fixed, AB, bed=Kept),
    Story("freeze-weights-fixed", then(fix), fixed, WEIGHTS, bed=Kept),
    Story("freeze-ab-fails-again", then(fail_again, fix), twice, AB, bed=Kept),
    Story("freeze-weights-fails-again", then(fail_again, fix), twice, WEIGHTS, bed=Kept),
    Story("freeze-ab-overtaken", overtaken, fixed, AB, bed=Kept),
    Story("freeze-ab-restart", new_revision, fixed, AB, bed=Kept),
    Story("freeze-weights-restart", new_revision, fixed, WEIGHTS, bed=Kept),
    Story("freeze-late-fixed", then(fix, first=freeze_late), fixed, PLAIN | SHORT, bed=Kept),
    Story("freeze-suspended", then(suspended), fixed, AB, bed=Kept),
    Story("freeze-pods-lost", then(lose_pods, fix), fixed, AB, bed=Kept),
    Story(
        "freeze-gated",
        then(gated),
        fixed,
        _with(AB, hook("confirm-rollout", "start"), hook("pre-rollout", "smoke")),
        bed=Kept,
    ),
    Story("freeze-daemonset", then(fix), fixed, PLAIN | DAEMON, daemonset(), "daemonsets"),
    Story("freeze-keda", then(fix), fixed, AB | KEDA, others={"scaledobjects": SCALED_OBJECT}),
    # the other ways out
    Story("freeze-skip", then(change({"skipAnalysis": True}, "Succeeded")), promoted, AB, bed=Kept),
    Story("freeze-promote", then(order("promote", "Succeeded")), promoted, WEIGHTS, bed=Kept),
    Story("freeze-rollback", then(order("rollback", "Failed")), taken_back, AB),
    Story("freeze-put-back", then(put_back), taken_back, AB),
    Story("freeze-weights-put-back", then(put_back), taken_back, WEIGHTS),
    Story(
        "freeze-flag-off",
        then(change({"analysis": {"freezeOnFailure": False}}, "Failed")),
        taken_back,
        AB,
    ),
    Story("freeze-undo", then(undo), taken_back, _with(AB, hook("rollback", "undo"))),
    Story(
        "freeze-revert",
        then(delete),
        given_back,
        PLAIN | {"revertOnDeletion": True},
        others={"services": service()},
    ),
    Story(
        "freeze-weights-revert",
        then(delete),
        lambda s: not s.has_canary and image_of(s.target) == "app:2" and s.ready_pods("web") == 3,
        WEIGHTS | {"revertOnDeletion": True},
        others={"services": service()},
    ),
)
