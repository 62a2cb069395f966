"""Anything at any time: users, pods, the API server, hooks and the clock in random order, and what must hold whatever happens.

The rules below know nothing of the controller's insides. What was analysed is judged by what happened in the simulated world: for how
long pods of that image were ready, what gates and metrics answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from harness.controller.core.snapshots import snapshot
from harness.tests.controller_sim import (
    Sim,
    canary,
    configmap,
    daemonset,
    deployment,
    image,
    image_of,
    no,
    number,
    service,
    target_ref,
    with_configmap,
    yes,
)

if TYPE_CHECKING:
    from harness.controller.core import World

JSON = dict[str, Any]
Version = tuple[str, str]
"""What a workload runs: image, and the value in its ConfigMap."""
INTERVAL = 2.0
PAUSES = st.sampled_from((1.0, 0.0, 0.15, 2.5, 7.0, 12.0))
"""Seconds that pass before the next thing happens."""
IMAGES = ("app:1", "app:2", "app:3")
HOOKS: list[JSON] = [
    {"type": kind, "name": name, "url": f"http://{name}.test/"}
    for kind, name in (
        ("confirm-rollout", "start"),
        ("confirm-promotion", "finish"),
        ("rollback", "undo"),
    )
]
METRICS: list[JSON] = [
    {"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 99}}
]
BASE: JSON = {"interval": "2s", "threshold": 3, "webhooks": HOOKS, "metrics": METRICS}
GATEWAY: JSON = {
    "provider": "gatewayapi:v1",
    "service": {"port": 80, "gatewayRefs": [{"name": "gateway"}]},
}


@dataclass(frozen=True)
class Kind:
    """A way to release."""

    spec: JSON
    target: JSON
    plural: str
    checks: int
    """Successful rounds of checks that a promotion needs at least."""

    def __repr__(self) -> str:
        analysis = self.spec["analysis"]
        how = "match" if "match" in analysis else "weights" if "stepWeight" in analysis else "plain"
        ends = "-frozen" if "freezeOnFailure" in analysis else "-reverted" * ("restore" in analysis)
        return f"{self.spec.get('provider', 'kubernetes')}-{how}-{self.plural}{ends}"


DEPLOYMENT = with_configmap(deployment())
DAEMONSET = with_configmap(daemonset())
DAEMON: JSON = {"targetRef": target_ref("DaemonSet")}
BLUE_GREEN: JSON = {"analysis": {**BASE, "iterations": 2}}
STEPS: JSON = {"stepWeight": 30, "maxWeight": 60}
WEIGHTS: JSON = GATEWAY | {"analysis": {**BASE, **STEPS}}
FREEZE: JSON = {**BASE, "threshold": 1, "freezeOnFailure": True}
REVERT: JSON = {**BASE, "threshold": 1, "restore": "revert"}
MATCH: JSON = {"match": [{"headers": {"x-canary": {"exact": "1"}}}]}
KINDS = (
    Kind(BLUE_GREEN, DEPLOYMENT, "deployments", 2),
    Kind(BLUE_GREEN | DAEMON, DAEMONSET, "daemonsets", 2),
    Kind(WEIGHTS, DEPLOYMENT, "deployments", 2),
    Kind(WEIGHTS | DAEMON, DAEMONSET, "daemonsets", 2),
    Kind(GATEWAY | {"analysis": {**BASE, "iterations": 2}}, DEPLOYMENT, "deployments", 2),
    Kind(GATEWAY | {"analysis": {**BASE, **MATCH, "iterations": 2}}, DEPLOYMENT, "deployments", 2),
    Kind(
        GATEWAY | {"analysis": {**FREEZE, **MATCH, "iterations": 2}}, DEPLOYMENT, "deployments", 2
    ),
    Kind(GATEWAY | {"analysis": {**FREEZE, **STEPS}}, DEPLOYMENT, "deployments", 2),
    Kind({"analysis": {**REVERT, "iterations": 2}}, DEPLOYMENT, "deployments", 2),
    Kind(DAEMON | {"analysis": {**REVERT, "iterations": 2}}, DAEMONSET, "daemonsets", 2),
)


class WatchedSim(Sim):
    """A Sim that judges each write of the controller at the moment it is made."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(self._pod)
        self.kind = kind
        self.broken: set[str] = set()
        """Images whose pods never become ready."""
        self.known: set[Version] = set()
        """What was analysed, skipped or promoted before."""
        self.sees: Version | None = None
        self.changed_at = 0
        """How many answers there were when the controller first saw another image or config."""
        self.changed_time = self.now

    def _pod(self, _name: str, template: JSON, _index: int) -> float | None:
        return None if template["spec"]["containers"][0]["image"] in self.broken else 1.0

    def version(self, suffix: str = "") -> Version | None:
        """What target (or primary) runs; None when it is not there."""
        workload = self.get(self.kind.plural, f"web{suffix}")
        config = self.get("configmaps", f"settings{suffix}")
        if workload is None:
            return None
        return image_of(workload), config["data"]["colour"] if config else ""

    def world(self) -> World:
        """Take note of when the controller first sees what the target runs now: a change that it never saw needs no analysis."""
        world = super().world()
        config = world.objects.get("configmaps", {}).get("settings")
        target = world.target
        sees = (image_of(target), config["data"]["colour"] if config else "") if target else None
        if sees is not None and sees != self.sees:
            self.sees = sees
            self.changed_at = len(self.outside.replies)
            self.changed_time = self.now
        return world

    def _write(self, write: Any) -> JSON:
        before = self.version("-primary"), self.serving()
        answer = super()._write(write)
        after = self.version("-primary")
        primary = (write.resource, write.name) == (self.kind.plural, "web-primary")
        if primary and after is not None and after != before[0]:
            self._judge_primary(after)
        # A Canary that goes gives a target that never gets ready its traffic back all the same, after the deadline (case C19).
        gives_up = not self.has_canary or "deletionTimestamp" in self.canary["metadata"]
        if before[1] and not self.serving() and not (gives_up and not self.ready_pods("web")):
            msg = f"{write} took all traffic away from pods that are ready"
            raise AssertionError(msg)
        return answer

    def _judge_primary(self, version: Version) -> None:
        """The primary gets this: was it right?"""
        boots = self.has_canary and not self.status.get("lastPromotedSpec")
        skips = bool(self.canary["spec"].get("skipAnalysis"))
        if version in self.known or boots:
            return
        if not skips:
            assert version == self.version(), f"{version} was never analysed"
            self._analysed()
        self.known.add(version)

    def _analysed(self) -> None:
        replies = self.outside.replies[self.changed_at :]
        passed = [a for call, a in replies if call.kind == "metric" and (a.value or 0) >= 99]
        waited = self.now - self.changed_time
        assert len(passed) >= self.kind.checks, "promoted without its checks"
        assert waited >= self.kind.checks * INTERVAL, "promoted before its time"
        assert any(a.ok for call, a in replies if call.name == "finish"), "promoted past its gate"

    def _write_status(self, canary: JSON, patch: JSON) -> None:
        super()._write_status(canary, patch)
        promoted = self.version("-primary")
        if self.phase in ("Initialized", "Succeeded") and promoted is not None:
            self.known.add(promoted)


class Releases(RuleBasedStateMachine):
    """A Canary with gates and metrics, intervals of two seconds and a deadline of twenty."""

    kinds = KINDS

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.start(data.draw(st.sampled_from(self.kinds)))

    def start(self, kind: Kind) -> None:
        """Make the namespace, and let the target run before the Canary comes."""
        self.kind = kind
        self.sim = WatchedSim(self.kind)
        self.sim.add("configmaps", configmap(colour="green"))
        self.sim.add("services", service())
        self.sim.add(self.kind.plural, self.kind.target)
        self.sim.run(3)
        self.add_canary()
        self.sim.run(5)

    def add_canary(self) -> None:
        self.sim.known.clear()
        self.sim.add("canaries", canary(**self.kind.spec, revertOnDeletion=True))

    def has_target(self) -> bool:
        return self.sim.get(self.kind.plural, "web") is not None

    # -- users -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.has_target())
    @rule(name=st.sampled_from(IMAGES), then=PAUSES)
    def new_image(self, name: str, *, then: float) -> None:
        self.sim.edit(self.kind.plural, "web", image_with_config(name))
        self.pass_time(then)

    @rule(colour=st.sampled_from(("green", "blue")), then=PAUSES)
    def new_config(self, colour: str, *, then: float) -> None:
        self.sim.edit("configmaps", "settings", {"data": {"colour": colour}})
        self.pass_time(then)

    @precondition(lambda self: self.has_target() and self.kind.plural == "deployments")
    @rule(count=st.integers(1, 4), then=PAUSES)
    def scale(self, count: int, *, then: float) -> None:
        self.sim.edit("deployments", "web", {"spec": {"replicas": count}})
        self.pass_time(then)

    @rule(
        switch=st.sampled_from(("suspend", "skipAnalysis")),
        on=st.sampled_from((False, False, True)),
        then=PAUSES,
    )
    def switch(self, switch: str, *, on: bool, then: float) -> None:
        if self.sim.has_canary:
            self.sim.edit("canaries", "web", {"spec": {switch: on}})
        self.pass_time(then)

    @precondition(lambda self: self.has_target())
    @rule(then=PAUSES)
    def recreate_the_target(self, *, then: float) -> None:
        fresh = dict(self.kind.target, spec=self.sim.objects[self.kind.plural, "web"]["spec"])
        self.sim.remove(self.kind.plural, "web")
        self.sim.add(self.kind.plural, fresh)
        self.pass_time(then)

    @rule(then=PAUSES, really=st.sampled_from((False, False, False, True)))
    def delete_or_create_the_canary(self, *, really: bool, then: float) -> None:
        if self.sim.has_canary:
            if really:
                self.sim.remove("canaries", "web")
        else:
            self.add_canary()
        self.pass_time(then)

    @rule(then=PAUSES)
    def lead_the_apex_astray(self, *, then: float) -> None:
        """Somebody applies the manifest of the apex Service again."""
        self.sim.edit("services", "web", {"spec": {"selector": {"app": "web"}}})
        self.pass_time(then)

    # -- the world ---------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(IMAGES), then=PAUSES)
    def break_image(self, name: str, *, then: float) -> None:
        if name != "app:1":
            self.sim.broken ^= {name}
        self.pass_time(then)

    @rule(
        name=st.sampled_from(("start", "finish", "undo")),
        state=st.sampled_from(("yes", "yes", "no", "hang")),
        then=PAUSES,
    )
    def answer(self, name: str, state: str, *, then: float) -> None:
        self.sim.script[name] = {"yes": yes(), "no": no(), "hang": None}[state]
        self.pass_time(then)

    @rule(value=st.sampled_from((100.0, 100.0, 50.0)), then=PAUSES)
    def measure(self, value: float, *, then: float) -> None:
        self.sim.script["request-success-rate"] = number(value)
        self.pass_time(then)

    @rule(seconds=st.sampled_from((2.5, 7.0, 30.0)))
    def wait(self, seconds: float) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        """Nothing: the next thing happens before anybody acts."""
        if seconds:
            self.sim.run(seconds)
            self._traffic_finds_ready_pods_while_there_are_any()

    # -- the machinery -----------------------------------------------------------------------------------------------

    @rule(every=st.sampled_from((None, None, 2, 3, 5)), then=PAUSES)
    def conflicts(self, every: int | None, *, then: float) -> None:
        self.sim.conflict_every = every
        self.pass_time(then)

    @rule(key=st.sampled_from(("target", "primary", "canary", "service", "config")), then=PAUSES)
    def drop_events(self, key: str, *, then: float) -> None:
        plural, name = {
            "target": (self.kind.plural, "web"),
            "primary": (self.kind.plural, "web-primary"),
            "canary": ("canaries", "web"),
            "service": ("services", "web"),
            "config": ("configmaps", "settings"),
        }[key]
        self.sim.drop_events(plural, name)
        self.pass_time(then)

    @rule(then=PAUSES)
    def relist(self, *, then: float) -> None:
        self.sim.relist()
        self.pass_time(then)

    @rule(number=st.integers(0, 6), then=PAUSES)
    def kill(self, number: int, *, then: float) -> None:
        if number:
            self.sim.kill_after = number
        else:
            self.sim.restart()
        self.pass_time(then)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def _traffic_finds_ready_pods_while_there_are_any(self) -> None:
        """Asked when the controller had its turn, unless it is told to do nothing, or cannot see or write."""
        sim = self.sim
        blind = bool(sim._stale) or sim._held is not None
        if blind or not sim.has_canary or sim.canary["spec"].get("suspend"):
            return
        if sim.phase == "Frozen":
            return  # the traffic stays where it is, that is what freezing means
        ready = sim.ready_pods("web"), sim.ready_pods("web-primary")
        assert sim.serving() or not any(ready), (sim.traffic(), ready, sim.phase, sim.rows[-10:])

    def teardown(self) -> None:
        """Left alone with everything healthy, every story ends well, and then costs nothing."""
        if not hasattr(self, "sim"):
            return
        self._heal()
        sim = self.sim
        sim.run(200)
        if sim.phase in ("Failed", "Frozen"):
            self._failed_names_the_target()
        else:
            assert sim.phase in ("Initialized", "Succeeded"), (sim.phase, sim.rows[-20:])
            assert sim.version("-primary") == sim.version(), "a change was lost"
        self._costs_nothing()
        sim.edit(self.kind.plural, "web", image_with_config("app:final"))
        sim.run(120)
        assert sim.phase == "Succeeded", (sim.phase, sim.rows[-20:])
        assert sim.version("-primary") == sim.version()
        assert sim.serving() == sim.ready_pods("web-primary") > 0
        self._costs_nothing()

    def _failed_names_the_target(self) -> None:
        """Change detection says that the target is what failed: put another way, nothing new is waiting."""
        sim = self.sim
        assert sim.status.get("lastAppliedSpec") == snapshot(sim.target).hash, "a change was lost"

    def _heal(self) -> None:
        sim = self.sim
        sim.kill_after = sim.conflict_every = None
        sim.broken.clear()
        for pods in sim.pods.values():
            for pod in pods:
                if pod.ready_at is None:
                    pod.ready_at = sim.now + 1
        sim.script.clear()
        sim.relist()
        if sim.has_canary and sim.canary["metadata"].get("deletionTimestamp"):
            sim.run(60)
        if not sim.has_canary:
            self.add_canary()
        sim.edit("canaries", "web", {"spec": {"suspend": False, "skipAnalysis": False}})

    def _costs_nothing(self) -> None:
        sim = self.sim
        before = self._costs()
        sim.run(600)
        after = self._costs()
        assert after == before, f"a settled world costs writes: {sim.actions[before[0] :][:5]}"

    def _costs(self) -> tuple[int, ...]:
        """Writes, events and questions so far; while it is frozen, rollback hooks are asked on purpose."""
        sim = self.sim
        asked = 0 if sim.phase == "Frozen" else len(sim.outside.calls)
        return len(sim.actions), len(sim.notes), asked


def image_with_config(name: str) -> JSON:
    """A merge patch that changes the image of a workload with a ConfigMap."""
    patch = image(name)
    container = patch["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return patch
