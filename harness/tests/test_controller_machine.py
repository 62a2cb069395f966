"""Anything at any time: users, the clock and kills in random order; what must always hold, holds."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.tests.controller_sim import Sim, canary, deployment, image, image_of

JSON = dict[str, Any]
GOOD = ("app:1", "app:2", "app:3")
BAD = "app:bad"


def pods(_name: str, template: JSON, index: int) -> float | None:
    broken = template["spec"]["containers"][0]["image"] == BAD
    return None if broken and index == 0 else 1.0


class Releases(RuleBasedStateMachine):
    """A Canary with two iterations of two seconds and a deadline of twenty."""

    def __init__(self) -> None:
        super().__init__()
        self.sim = Sim(pods)
        self.sim.add("deployments", deployment())
        self.sim.add("canaries", canary())
        self.suspended = False
        self.before = ""

    @rule(name=st.sampled_from((*GOOD, BAD)))
    def new_image(self, name: str) -> None:
        self.sim.edit("deployments", "web", image(name))

    @rule(count=st.integers(0, 4))
    def scale(self, count: int) -> None:
        self.sim.edit("deployments", "web", {"spec": {"replicas": count}})

    @rule(seconds=st.sampled_from((0.0, 0.4, 1.0, 2.5, 7.0, 30.0)))
    def wait(self, seconds: float) -> None:
        self.sim.run(seconds)

    @rule(number=st.integers(1, 6))
    def kill(self, number: int) -> None:
        self.sim.kill_after = number

    @rule()
    def toggle_suspend(self) -> None:
        self.suspended = not self.suspended
        self.sim.edit("canaries", "web", {"spec": {"suspend": self.suspended}})

    @precondition(lambda self: self.sim.get("services", "web"))
    @rule()
    def move_the_apex(self) -> None:
        self.sim.edit("services", "web", {"spec": {"selector": {"app": "web"}}})

    @rule()
    def recreate_the_target(self) -> None:
        spec = self.sim.target["spec"]
        self.sim.remove("deployments", "web")
        fresh = deployment()
        fresh["spec"] = spec
        self.sim.add("deployments", fresh)

    @invariant()
    def the_live_target_stays_until_the_primary_serves(self) -> None:
        if not self.sim.status.get("lastPromotedSpec"):
            scaled = ("patch", "deployments", "web") in self.sim.actions
            served = ("create", "services", "web") in self.sim.actions
            assert served or not scaled

    @invariant()
    def a_bad_image_is_never_promoted(self) -> None:
        primary = self.sim.get("deployments", "web-primary")
        if primary and self.sim.status.get("lastPromotedSpec"):
            # A bootstrap at zero replicas takes whatever it finds; nothing else may bring it in.
            assert image_of(primary) != BAD or self.before in ("", BAD)
            self.before = image_of(primary)

    def teardown(self) -> None:
        """Left alone with a good template and replicas, every story ends well."""
        sim = self.sim
        sim.kill_after = None
        sim.edit("canaries", "web", {"spec": {"suspend": False}})
        sim.run(60)
        final = image("app:final")
        final["spec"]["replicas"] = 2
        sim.edit("deployments", "web", final)
        sim.run(120)
        assert sim.phase in ("Succeeded", "Initialized"), (sim.phase, sim.rows[-20:])
        assert image_of(sim.primary) == "app:final"
        assert sim.ready_pods("web-primary") == sim.primary["spec"]["replicas"] == 2
        assert sim.target["spec"]["replicas"] in (0, 2)
        assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web-primary"}


Releases.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestReleases = Releases.TestCase
