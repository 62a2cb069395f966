"""A cluster on a virtual clock for tests of the controller's pure core.

It keeps objects as an API server does (resourceVersion, generation, preconditions, the status subresource, managedFields), plays
the Deployment controller with its ReplicaSets and the pods, and makes the controller's passes as the shell does. Nothing sleeps.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harness.controller.core import Note, World, Write, decide
from harness.controller.core.names import MANAGER
from harness.controller.core.pruned import FENCE_FIELD
from harness.controller.core.refresh import refreshed
from harness.controller.core.snapshots import REVISION
from harness.tests.controller_traces import make_current, note_writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Decision

JSON = dict[str, Any]
START = 1_800_000_000.0
Delay = "Callable[[str, JSON, int], float | None]"


class Killed(Exception):  # noqa: N818 - what happened, not an error
    """The controller was killed right after a write."""


class Refused(Exception):  # noqa: N818 - as the API server answers
    """A precondition did not hold."""


@dataclass
class Pod:
    revision: str
    ready_at: float | None


def merge(base: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def promptly(_name: str, _template: JSON, _index: int) -> float | None:
    return 1.0


class Sim:
    """One namespace with one Canary named `web`."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None] = promptly) -> None:
        self.now = START
        self.delay = delay
        self.objects: dict[tuple[str, str], JSON] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.notes: dict[str, Note] = {}
        self.actions: list[tuple[str, str, str]] = []
        """What the controller wrote: verb, resource, name."""
        self.history: list[tuple[float, str, int]] = []
        """(seconds since the start, phase, iterations), whenever one of the last two changed."""
        self.rows: list[str] = []
        self.kill_after: int | None = None
        self.before_write: Callable[[Write], None] | None = None
        self.before_status: Callable[[JSON], None] | None = None
        self.replica_sets: list[JSON] = []
        self.prunes_fence = False
        """The installed CRD has no place for the fence, whether the controller knows or not."""
        self.knows_pruning = False
        self.looks: list[str] = []
        self._version = 0
        self._requeue: float | None = None

    # -- objects -----------------------------------------------------------------------------------------------------

    @property
    def t(self) -> float:
        return round(self.now - START, 3)

    def get(self, resource: str, name: str) -> JSON | None:
        return self.objects.get((resource, name))

    def deployment(self, name: str) -> JSON:
        return self.objects["deployments", name]

    @property
    def target(self) -> JSON:
        return self.deployment("web")

    @property
    def primary(self) -> JSON:
        return self.deployment("web-primary")

    @property
    def canary(self) -> JSON:
        return self.objects["canaries", "web"]

    @property
    def status(self) -> JSON:
        return self.canary.get("status") or {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase") or "")

    def condition(self, kind: str) -> JSON:
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    def add(self, resource: str, obj: JSON, manager: str = "user") -> None:
        """A user, or the controller, creates an object."""
        obj = copy.deepcopy(obj)
        key = (resource, obj["metadata"]["name"])
        if key in self.objects:
            raise Refused(key)
        meta = obj["metadata"]
        meta["uid"] = f"uid-{self._next()}"
        meta["generation"] = 1
        meta["creationTimestamp"] = self._second()
        note_writer({}, obj, "spec", manager, self._second())
        self._store(resource, obj)

    def edit(self, resource: str, name: str, patch: JSON, manager: str = "user") -> None:
        """A user, or the controller, changes an object with a merge patch."""
        self._update(resource, merge(self.objects[resource, name], patch), manager)

    def edit_status(self, patch: JSON, manager: str = "user") -> None:
        """Somebody else writes the Canary's status."""
        obj = merge(self.canary, {"status": patch})
        note_writer(self.canary, obj, "status", manager, self._second())
        self._store("canaries", obj)

    def remove(self, resource: str, name: str) -> None:
        del self.objects[resource, name]
        self.pods.pop(name, None)

    def _update(self, resource: str, obj: JSON, manager: str) -> None:
        old = self.objects[resource, obj["metadata"]["name"]]
        obj["metadata"]["managedFields"] = copy.deepcopy(old["metadata"]["managedFields"])
        if obj.get("spec") != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"]["generation"] + 1
            note_writer(old, obj, "spec", manager, self._second())
        self._store(resource, obj)

    def _second(self) -> str:
        """Now, as the API server writes it: in whole seconds."""
        return datetime.fromtimestamp(int(self.now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _store(self, resource: str, obj: JSON) -> None:
        key = (resource, obj["metadata"]["name"])
        old = copy.deepcopy(self.objects.get(key))
        if old is not None:
            obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            if obj == old:
                return
        obj["metadata"]["resourceVersion"] = str(self._next())
        if resource == "canaries" and self.prunes_fence:
            obj.get("status", {}).pop(FENCE_FIELD, None)
        self.objects[key] = json.loads(json.dumps(obj))

    def _next(self) -> int:
        self._version += 1
        return self._version

    # -- the controller ----------------------------------------------------------------------------------------------

    def controller_pass(self) -> Decision:
        """Make one pass, as the shell does; raises Killed or Refused in the middle of it."""
        canary, world = copy.deepcopy(self.canary), copy.deepcopy(self.world())
        decision = decide(world, canary, self.now)
        if decision.reads_revisions:
            world = replace(world, revisions=copy.deepcopy(self.replica_sets))
            decision = decide(world, canary, self.now)
        now = replace(self.world(), revisions=world.revisions)
        assert (canary, world) == (self.canary, now), "decide() changed its input"
        self.rows.append(decision.row)
        if decision.looked:
            self.looks.append(decision.looked)
        for write in decision.writes:
            if self.before_write is not None:
                self.before_write(write)
            decision = refreshed(decision, write, self._write(write))
            self._killed()
        for note in decision.notes:
            if note.key not in self.notes:
                self.notes[note.key] = note
                self._killed()
        if decision.status is not None:
            self._write_status(canary, decision.status)
            self._killed()
        self._requeue = (
            None if decision.requeue_after is None else self.now + decision.requeue_after
        )
        return decision

    def world(self) -> World:
        services = {name: obj for (res, name), obj in self.objects.items() if res == "services"}
        target = self.canary["spec"]["targetRef"]["name"]
        return World(
            self.get("deployments", target),
            self.get("deployments", f"{target}-primary"),
            services,
            prunes_fence=self.knows_pruning,
        )

    def _write(self, write: Write) -> JSON:
        self.actions.append((write.verb, write.resource, write.name))
        if write.verb == "create":
            self.add(write.resource, write.body, MANAGER)
            return self.objects[write.resource, write.name]
        held = self.objects[write.resource, write.name]
        if held["metadata"]["resourceVersion"] != write.precondition:
            raise Refused(write)
        if write.verb == "patch":
            self.edit(write.resource, write.name, write.body, MANAGER)
        else:
            self._update(write.resource, copy.deepcopy(write.body), MANAGER)
        return self.objects[write.resource, write.name]

    def _write_status(self, canary: JSON, patch: JSON) -> None:
        if self.before_status is not None:
            self.before_status(patch)
        self.actions.append(("status", "canaries", "web"))
        if canary["metadata"]["resourceVersion"] != self.canary["metadata"]["resourceVersion"]:
            raise Refused(patch)
        self.edit_status(patch, MANAGER)
        if patch.get(FENCE_FIELD):
            self.knows_pruning = self.prunes_fence
        seen = (self.phase, int(self.status.get("iterations") or 0))
        if not self.history or self.history[-1][1:] != seen:
            self.history.append((self.t, *seen))

    def _killed(self) -> None:
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after == 0:
                self.kill_after = None
                raise Killed

    # -- the Deployment controller and the pods ----------------------------------------------------------------------

    def _roll(self, name: str) -> None:
        obj = copy.deepcopy(self.deployment(name))
        spec, meta = obj["spec"], obj["metadata"]
        revision = json.dumps(spec["template"], sort_keys=True)
        pods = self.pods.setdefault(name, [])
        annotations = meta.setdefault("annotations", {})
        if obj.get("seen") != revision:
            obj["seen"] = revision
            number = int(annotations.get(REVISION, 0)) + 1
            annotations[REVISION] = str(number)
            make_current(self.replica_sets, obj, revision, str(number), self._second())
        desired = spec.get("replicas", 1)
        new = [pod for pod in pods if pod.revision == revision][:desired]
        for index in range(len(new), desired):
            delay = self.delay(name, spec["template"], index)
            new.append(Pod(revision, None if delay is None else self.now + delay))
        ready = sum(self._is_ready(pod) for pod in new)
        old = [pod for pod in pods if pod.revision != revision][: max(desired - ready, 0)]
        self.pods[name] = new + old
        serving = ready + sum(self._is_ready(pod) for pod in old)
        obj["status"] = {
            "observedGeneration": meta["generation"],
            "replicas": len(new) + len(old),
            "updatedReplicas": len(new),
            "readyReplicas": serving,
            "availableReplicas": serving,
        }
        self._store("deployments", obj)

    def _is_ready(self, pod: Pod) -> bool:
        return pod.ready_at is not None and pod.ready_at <= self.now

    def ready_pods(self, name: str) -> int:
        return sum(self._is_ready(pod) for pod in self.pods.get(name, []))

    # -- time --------------------------------------------------------------------------------------------------------

    def settle(self, until: str = "") -> None:
        """Let everybody act until nothing changes any more at this moment, or a phase is reached."""
        for _ in range(200):
            if until and self.phase == until:
                return
            before = self._version, len(self.notes)
            for resource, name in list(self.objects):
                if resource == "deployments":
                    self._roll(name)
            if ("canaries", "web") in self.objects:
                try:
                    self.controller_pass()
                except (Killed, Refused):
                    continue
            if (self._version, len(self.notes)) == before:
                return
        msg = f"does not settle: {self.rows[-20:]}"
        raise AssertionError(msg)

    def run(self, seconds: float = 1000.0, until: str = "") -> None:
        """Let time pass until a phase is reached, or for that long."""
        end = self.now + seconds
        while True:
            self.settle(until)
            if until and self.phase == until:
                return
            times = [pod.ready_at for pods in self.pods.values() for pod in pods if pod.ready_at]
            times = [time for time in times if time > self.now]
            if self._requeue is not None:
                times.append(max(self._requeue, self.now + 0.001))
            following = min(times, default=end)
            if following >= end:
                self.now = end
                self.settle(until)
                if until and self.phase != until:
                    msg = f"{self.phase} instead of {until}: {self.history}"
                    raise AssertionError(msg)
                return
            self.now = following

    def phases(self) -> list[str]:
        """The phases seen, each once per stay."""
        seen: list[str] = []
        for _, phase, _ in self.history:
            if not seen or seen[-1] != phase:
                seen.append(phase)
        return seen

    def messages(self) -> list[str]:
        return [note.message for note in self.notes.values()]


def deployment(name: str = "web", image: str = "app:1", replicas: int = 3, **spec: Any) -> JSON:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]},
            },
            **spec,
        },
    }


def canary(**spec: Any) -> JSON:
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "n"},
        "spec": {
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "progressDeadlineSeconds": 20,
            "service": {"port": 80},
            "analysis": {"interval": "2s", "threshold": 2, "iterations": 2},
            **spec,
        },
    }


def image(name: str) -> JSON:
    """A merge patch that changes the image of a Deployment."""
    containers = [{"name": "c", "image": name, "resources": {}}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def image_of(obj: JSON) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


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
