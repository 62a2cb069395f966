"""A cluster on a virtual clock for tests of the controller's pure core.

It keeps objects as an API server does (`controller_sim_server.py`), plays the controllers of workloads (`controller_sim_workloads.py`),
the gateway and Knative (`controller_sim_routes.py`), answers calls (`controller_sim_outside.py`), and makes the controller's passes as
the shell does. Nothing sleeps.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.controller.core import Note, World, Write, decide, needs
from harness.controller.core.pruned import FENCE_FIELD
from harness.controller.core.refresh import refreshed
from harness.tests.controller_sim_make import (
    canary,
    configmap,
    daemonset,
    deployment,
    hpa,
    image,
    image_of,
    kservice,
    merge,
    service,
    target_ref,
    with_configmap,
)
from harness.tests.controller_sim_outside import Outside, no, number, obliging, scripted, yes
from harness.tests.controller_sim_routes import Routes
from harness.tests.controller_sim_server import START, Invalid, Pod, Refused, promptly
from harness.tests.controller_sim_view import dump, plural_of, rival
from harness.tests.controller_sim_workloads import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Decision
    from harness.controller.core.calls import Answer, Call
    from harness.controller.core.decision import Alert

__all__ = [
    "START",
    "Invalid",
    "Killed",
    "Node",
    "Pod",
    "Refused",
    "Sample",
    "Sim",
    "canary",
    "configmap",
    "daemonset",
    "deployment",
    "hpa",
    "image",
    "image_of",
    "kservice",
    "merge",
    "never_ready",
    "no",
    "number",
    "obliging",
    "promptly",
    "running",
    "scripted",
    "service",
    "target_ref",
    "with_configmap",
    "yes",
]

JSON = dict[str, Any]
AFTER_CONFLICT = 0.5
LONGEST_RETRY = 30.0


class Killed(Exception):  # noqa: N818 - what happened, not an error
    """The controller was killed right after a write."""


@dataclass(frozen=True)
class Sample:
    """Ready pods at one moment."""

    t: float
    primary: int
    serving: int | None
    """Of those that get traffic; None while nothing routes any."""


class Sim(Routes):
    """One namespace with one Canary named `web`."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None] = promptly) -> None:
        super().__init__(delay)
        self.notes: dict[str, Note] = {}
        self.actions: list[tuple[str, str, str]] = []
        """What the controller wrote: verb, resource, name."""
        self.history: list[tuple[float, str, int]] = []
        """(seconds since the start, phase, iterations), whenever one of the last two changed."""
        self.weights: list[tuple[float, int]] = []
        """(seconds since the start, canaryWeight), whenever it changed."""
        self.samples: list[Sample] = []
        self.rows: list[str] = []
        self.cuts: list[float] = []
        """Moments at which a story begins a new part, in seconds since the start."""
        self.kill_after: int | None = None
        """The controller is killed after this many further writes (events count as writes)."""
        self.kill_each = False
        """It is killed after each write that it makes for the first time, told apart by phase, iterations and weight."""
        self._died: set[str] = set()
        self.decide: Callable[[World, JSON, float], Decision] = decide
        """Tests of tests put a worse one here."""
        self.before_write: Callable[[Write], None] | None = None
        self.before_status: Callable[[JSON], None] | None = None
        self.knows_pruning = False
        self.looks: list[str] = []
        self.script: dict[str, Answer | None] = {}
        """What hooks and metrics answer, by name (None: nothing); the others are obliging."""
        self.outside = Outside()
        self.outside.hooks = scripted(self.script)
        self.alerts: list[tuple[float, Alert]] = []
        """(seconds since the start, alert) of every new event that has one."""
        self.absent: dict[str, str] = {}
        """Kinds that cannot be watched, with the reason."""
        self.restarts = 0
        self.problems: list[str] = []
        """What a bed that judges each write has found."""
        self._requeue: float | None = None
        self._idle_at: tuple[int, ...] | None = None
        """How far everything had come when the last pass found nothing to do."""
        self._held: tuple[float, int] | None = None
        """Until when no pass is made after a refusal, unless something moves beyond that version."""
        self._failures = 0

    # -- objects -----------------------------------------------------------------------------------------------------

    def deployment(self, name: str) -> JSON:
        return self.objects["deployments", name]

    @property
    def plural(self) -> str:
        """The plural of the target's kind."""
        return plural_of(self.canary)

    @property
    def target(self) -> JSON:
        return self.objects[self.plural if self.has_canary else "deployments", "web"]

    @property
    def primary(self) -> JSON:
        return self.objects[self.plural if self.has_canary else "deployments", "web-primary"]

    @property
    def canary(self) -> JSON:
        return self.objects["canaries", "web"]

    @property
    def has_canary(self) -> bool:
        return ("canaries", "web") in self.objects

    @property
    def status(self) -> JSON:
        return self.canary.get("status") or {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase") or "") if self.has_canary else "gone"

    @property
    def hooks(self) -> Callable[[Call], Answer | None]:
        """Who answers calls."""
        return self.outside.hooks

    @hooks.setter
    def hooks(self, hooks: Callable[[Call], Answer | None]) -> None:
        self.outside.hooks = hooks

    @property
    def calls(self) -> list[tuple[float, str]]:
        """(seconds since the start, name of hook or metric) of every call made."""
        return [(round(time - START, 3), call.name) for time, call in self.outside.calls]

    def condition(self, kind: str) -> JSON:
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    # -- the controller ----------------------------------------------------------------------------------------------

    def controller_pass(self) -> Decision:
        """Make one pass, as the shell does; raises Killed, Refused or Invalid in the middle of it."""
        world = self.world()
        canary = self.seen()["canaries"]["web"]
        before = json.dumps([canary, dump(world)])
        decision = self.decide(world, canary, self.now)
        if decision.reads_revisions:
            world = replace(world, revisions=json.loads(json.dumps(self.replica_sets)))
            decision = self.decide(world, canary, self.now)
        if decision.reads_pods:
            selector = self.target["spec"]["selector"]["matchLabels"]
            world = replace(world, ready_pods=len(self.ready_with(selector | decision.pods)))
            decision = self.decide(world, canary, self.now)
        assert before == json.dumps([canary, dump(world)]), "decide() changed its input"
        self.rows.append(decision.row)
        if decision.looked:
            self.looks.append(decision.looked)
        for write in decision.writes:
            if self.before_write is not None:
                self.before_write(write)
            decision = refreshed(decision, write, self._write(write))
            self._killed(f"{write.verb} {write.resource} {write.name}")
        for note in decision.notes:
            self._note(note)
        if decision.status is not None:
            self._write_status(canary, decision.status)
            if not decision.keeps_answers:
                self.outside.forget()
            self._killed("status")
        self.outside.ask(decision.calls, self.now)
        self._requeue = (
            None if decision.requeue_after is None else self.now + decision.requeue_after
        )
        acts = decision.writes or decision.notes or decision.status is not None
        self._idle_at = None if acts else self._moved()
        return decision

    def world(self) -> World:
        """What the controller sees at this moment."""
        seen = self.seen()
        own = seen["canaries"]["web"]
        name, plural = own["spec"]["targetRef"]["name"], plural_of(own)
        sets = seen.pop("replicasets", {})
        if "replicasets" in needs.kinds(own):
            seen["replicasets"] = sets
        workloads = seen.get(plural, {})
        return World(
            workloads.get(name),
            None if plural == "kservices" else workloads.get(f"{name}-primary"),
            seen.get("services", {}),
            objects=seen,
            absent=dict(self.absent),
            answers=dict(self.outside.answers),
            rival=rival(seen["canaries"]),
            prunes_fence=self.knows_pruning,
        )

    def restart(self) -> None:
        """The controller is killed between two passes: answers and calls under way are lost, everything is read again."""
        self.outside.lose()
        self.relist()
        self._requeue = self._held = self._idle_at = None
        self._failures = 0
        self.restarts += 1

    def _write(self, write: Write) -> JSON:
        self.actions.append((write.verb, write.resource, write.name))
        answer = self.carry_out(write)
        self._sample()
        return answer

    def _write_status(self, canary: JSON, patch: JSON) -> None:
        if self.before_status is not None:
            self.before_status(patch)
        self.actions.append(("status", "canaries", "web"))
        self.patch_status(canary, patch)
        if patch.get(FENCE_FIELD):
            self.knows_pruning = self.prunes_fence
        seen = (self.phase, int(self.status.get("iterations") or 0))
        if not self.history or self.history[-1][1:] != seen:
            self.history.append((self.t, *seen))
        weight = int(self.status.get("canaryWeight") or 0)
        if not self.weights or self.weights[-1][1] != weight:
            self.weights.append((self.t, weight))

    def _note(self, note: Note) -> None:
        if note.key in self.notes:
            return
        self.notes[note.key] = note
        if note.alert is not None:
            self.alerts.append((self.t, note.alert))
        self._killed(note.message)

    def _killed(self, what: str) -> None:
        place = (
            f"{self.phase} {self.status.get('iterations')} {self.weights[-1:]} {what}"
            if self.has_canary
            else what
        )
        if self.kill_each and place not in self._died:
            self._died.add(place)
            raise Killed
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after == 0:
                self.kill_after = None
                raise Killed

    # -- time --------------------------------------------------------------------------------------------------------

    def settle(self, until: str = "") -> None:
        """Let everybody act until nothing changes any more at this moment, or a phase is reached."""
        for _ in range(200):
            if until and self.phase == until:
                return
            before = self._moved()
            self.play()
            if "web" in self.seen().get("canaries", {}) and self._may_pass():
                self._pass()
            if self._moved() == before:
                return
        msg = f"does not settle: {self.rows[-20:]}"
        raise AssertionError(msg)

    def play(self) -> None:
        """Let everybody but the controller act once."""
        self.collect()
        self.play_workloads()
        self.play_routes()
        self.outside.answer(self.now)
        self._sample()

    def run(self, seconds: float = 1000.0, until: str = "") -> None:
        """Let time pass until a phase is reached (`gone`: the Canary is), or for that long."""
        end = self.now + seconds
        while True:
            self.settle(until)
            if until and self.phase == until:
                return
            following = min(self._times(), default=end)
            if following >= end:
                self.now = end
                self.settle(until)
                if until and self.phase != until:
                    msg = f"{self.phase} instead of {until}: {self.history}; {self.rows[-5:]}"
                    raise AssertionError(msg)
                return
            self.now = following

    def _pass(self) -> None:
        try:
            self.controller_pass()
        except Killed:
            self.restart()
        except Refused:
            self._held = (self.now + AFTER_CONFLICT, self._version)
        except Invalid as error:
            text = f"The API server refuses a write: {error}"
            self.notes.setdefault(f"invalid|{error}", Note("Warning", text, f"invalid|{error}"))
            self._failures += 1
            pause = min(AFTER_CONFLICT * 2 ** (self._failures - 1), LONGEST_RETRY)
            self._held = (self.now + pause, self._version)
        else:
            self._failures = 0
            self._held = None

    def _may_pass(self) -> bool:
        """Whether something woke the worker: an object that it sees moved, an answer came, or the time that it waits for is there."""
        if self._held is not None:
            until, version = self._held
            return self.now >= until or self._version != version
        due = self._requeue is not None and self._requeue <= self.now
        return due or self._idle_at != self._moved()

    def _moved(self) -> tuple[int, ...]:
        told = int(self.knows_pruning), len(self.absent)
        known = (*told, len(self.outside.answers), len(self.outside.calls))
        return (self._version, len(self.notes), self.restarts, *known)

    def _times(self) -> list[float]:
        times = [*self.pod_times(), *self.route_times(), *self.outside.times(self.now)]
        if self._requeue is not None and self._held is None:
            times.append(max(self._requeue, self.now + 0.001))
        if self._held is not None:
            times.append(max(self._held[0], self.now + 0.001))
        return times

    def _sample(self) -> None:
        sample = Sample(self.t, self.ready_pods("web-primary"), self.serving())
        if not self.samples or replace(self.samples[-1], t=self.t) != sample:
            self.samples.append(sample)

    # -- what was seen -----------------------------------------------------------------------------------------------

    def lowest(self) -> list[tuple[int, int]]:
        """Least ready pods (primary, getting traffic) in each part of the story, from when the apex first routes to somebody."""
        begins = next((s.t for s in self.samples if s.serving), self.t)
        edges = [begins, *self.cuts, self.t + 1]
        result = []
        for start, end in itertools.pairwise(edges):
            before = [s for s in self.samples if s.t <= start][-1:]
            part = [s for s in self.samples if start < s.t <= end]
            found = [(s.primary, s.serving or 0) for s in (*before, *part)]
            result.append((min(p for p, _ in found), min(s for _, s in found)))
        return result

    def phases(self) -> list[str]:
        """The phases seen, each once per stay."""
        seen: list[str] = []
        for _, phase, _ in self.history:
            if not seen or seen[-1] != phase:
                seen.append(phase)
        return seen

    def messages(self) -> list[str]:
        return [note.message for note in self.notes.values()]


def running(
    delay: Callable[[str, JSON, int], float | None] = promptly,
    target: JSON | None = None,
    **spec: Any,
) -> Sim:
    """A Sim whose Canary has just been initialised."""
    sim = Sim(delay)
    sim.add("deployments", target or deployment())
    sim.add("canaries", canary(**spec))
    sim.run(until="Initialized")
    sim.settle()
    return sim


def never_ready(*names: str, images: tuple[str, ...] = ("app:2",), count: int = 99) -> Any:
    """Pods of these Deployments with these images: the first `count` never become ready."""

    def delay(name: str, template: JSON, index: int) -> float | None:
        broken = name in names and template["spec"]["containers"][0]["image"] in images
        return None if broken and index < count else 1.0

    return delay
