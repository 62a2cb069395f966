"""The state of a drill at one moment, folded from the observations up to it.

The runner uses it live to evaluate a step's `until`; the judge uses it to replay a recording. Both therefore see the same.
Order is kept within a kind but not across kinds: a pod may be seen before its ReplicaSet. Ownership and roles are therefore
worked out when the world is read, never when an object arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks import rollout as rollouts
from harness.checks import surroundings, workloads
from harness.checks.paths import dig, labels_of, name_of, owner_of
from harness.checks.pods import guessed_app, pod_view
from harness.model.resolved import Resolved
from harness.model.timeline import ObjectSeen, StepState, WatchState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.timeline import JSON, Header, Observation

World = dict[str, Any]
"""The variables of a check (shape: harness/checks/vocabulary.py)."""

_MAX_OWNERS: Final = 5
"""Longest chain of owners that is followed; a cycle in a broken recording must not hang the judge."""


class State:
    """Objects, steps and the clock as of the last observation that was applied."""

    def __init__(self, header: Header) -> None:
        self.scenario = Resolved.from_json(header.scenario)
        self.kind = header.subject.rollout
        self.t = 0.0
        self.step = ""
        self.change_at: float | None = None
        self.version = 0
        """Grows whenever anything but the clock changed in the world."""
        self._objects: dict[str, dict[str, JSON]] = {}
        self._synced: set[str] = set()
        self._seen: set[str] = set()
        self._born: dict[str, float] = {}
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}
        self._refused: dict[tuple[str, str], str] = {}
        self._target = ""
        self._apex = ""
        self._names = 0
        """Grows whenever a pod's owner or role may have changed, though the pod did not."""
        self._pod_views: dict[str, tuple[JSON, int, dict[str, Any]]] = {}
        self._stale = True
        self._facts: World = {}
        self._world: World = {}
        self._world_key: tuple[float, int, float | None] = (-1.0, -1, None)

    # ---- folding

    def apply(self, observation: Observation) -> None:
        """Take an observation into account. They must come in the order in which they were recorded."""
        self.t = observation.t
        if isinstance(observation, ObjectSeen):
            self._apply_object(observation)
        elif isinstance(observation, WatchState):
            if observation.kind not in self._synced:
                self._synced.add(observation.kind)
                self._stale = True
        elif isinstance(observation, StepState):
            self._apply_step(observation)

    def _apply_object(self, seen: ObjectSeen) -> None:
        obj = seen.object
        kind, name = str(obj.get("kind", "")), name_of(obj)
        store = self._objects.setdefault(kind, {})
        self._seen.add(kind)
        if kind == "Event":
            self._apply_event(obj)
            return
        if seen.change == "DELETED":
            known = store.get(name)
            # A late word about an earlier object of that name must not remove its successor.
            if known is not None and _uid(known) == _uid(obj):
                del store[name]
        else:
            if kind == "Pod" and (name not in store or _uid(store[name]) != _uid(obj)):
                self._born[name] = seen.t
            store[name] = obj
            owner = owner_of(obj)
            if owner is not None and self._owners.get((kind, name)) != owner:
                self._owners[kind, name] = owner
                # A pod owns nothing, so its own owner is nobody else's news.
                self._names += kind != "Pod"
        if kind == self.kind.kind:
            self._name_roles()
        self._stale = True

    def _name_roles(self) -> None:
        """Take the names that the rollout object refers to; they outlive it: after its deletion the primary is still that."""
        rollout = self.rollout
        if rollout is None:
            return
        names = rollouts.target_name(rollout, self.kind), rollouts.apex_name(rollout, self.kind)
        if names != (self._target, self._apex):
            self._target, self._apex = names
            self._names += 1

    def _apply_event(self, event: JSON) -> None:
        if event.get("reason") != "FailedCreate":
            return
        about = event.get("involvedObject") or event.get("regarding") or {}
        key = str(about.get("kind", "")), str(about.get("name", ""))
        # Deployments say it in a condition, which also goes away again; only the other kinds need their events.
        if key[0] in {"DaemonSet", "StatefulSet"}:
            self._refused[key] = str(event.get("message") or event.get("note") or "FailedCreate")
            self._stale = True

    def _apply_step(self, state: StepState) -> None:
        if state.state == "started" and self.step != state.step:
            self.step = state.step
            self.version += 1
        changes = state.step == self.scenario.change_step
        if state.state == "acted" and changes and self.change_at is None:
            self.change_at = state.t

    # ---- reading

    @property
    def rollout(self) -> JSON | None:
        """The rollout object: the one that was seen first, should there be several."""
        return next(iter(self._objects.get(self.kind.kind, {}).values()), None)

    @property
    def target_name(self) -> str:
        """Name of the workload under promotion; empty until a rollout object was seen."""
        return self._target

    @property
    def primary_name(self) -> str:
        """Name of the workload that serves; empty until a rollout object was seen."""
        return f"{self._target}{self.kind.primary_suffix}" if self._target else ""

    @property
    def pods_seen(self) -> bool:
        """Whether any pod was ever seen."""
        return "Pod" in self._seen

    def get(self, kind: str, name: str) -> JSON | None:
        """Return a raw object, if it exists at this moment."""
        return self._objects.get(kind, {}).get(name)

    def workload(self, name: str) -> JSON | None:
        """Return the raw workload of that name, whatever its kind."""
        for kind in workloads.KINDS:
            found = self.get(kind, name)
            if found is not None and workloads.is_top(found):
                return found
        return None

    def since_change(self, t: float | None = None) -> float | None:
        """Return the seconds since the change, None where there is none yet."""
        moment = self.t if t is None else t
        if self.change_at is None or moment < self.change_at:
            return None
        return moment - self.change_at

    def facts(self) -> World:
        """Return the part of the world that does not depend on the clock; shared and cached, not to be changed."""
        if self._stale:
            facts = self._build()
            if facts != self._facts:
                self._facts = facts
                self.version += 1
            self._stale = False
        return self._facts

    def world(self, t: float | None = None) -> World:
        """Return the variables that a check sees, now or, with nothing else changed, at a later moment `t`.

        What cannot be known yet is absent: before a watch's first list there is no `pods`, rather than an empty list. Seconds
        are counted from the timeline's time zero. The result is shared and cached, not to be changed.
        """
        moment = float(self.t if t is None else t)
        facts = self.facts()
        key = moment, self.version, self.change_at
        if key != self._world_key:
            self._world_key = key
            self._world = self._clocked(facts, moment)
        return self._world

    def _clocked(self, facts: World, moment: float) -> World:
        since = self.since_change(moment)
        world: World = {
            **facts,
            "t": moment,
            "since_change": -1.0 if since is None else since,
            "step": self.step,
            "values": dict(self.scenario.values),
        }
        if "pods" in world:
            world["pods"] = [{**p, "age": moment - self._born[p["name"]]} for p in world["pods"]]
        return world

    def _knows(self, *kinds: str) -> bool:
        return any(kind in self._synced or kind in self._seen for kind in kinds)

    def _build(self) -> World:
        facts: World = {}
        if self._knows(self.kind.kind):
            raw = self.rollout
            view = dict(rollouts.ABSENT) if raw is None else rollouts.rollout_view(raw, self.kind)
            facts["rollout"] = facts["canary"] = view
        if self._knows("Pod"):
            facts["pods"] = list(self._pods())
            if self._knows("Deployment", "DaemonSet"):
                self._build_workloads(facts)
        if self._knows("Service"):
            roles, labels = self._service_roles(), self._template_labels()
            found = self._objects.get("Service", {}).values()
            facts["services"] = [surroundings.service_view(s, roles, labels) for s in found]
        if self._knows("Node"):
            nodes = self._objects.get("Node", {}).values()
            facts["nodes"] = [surroundings.node_view(node) for node in nodes]
        return facts

    def _pods(self) -> Iterator[dict[str, Any]]:
        for name, pod in self._objects.get("Pod", {}).items():
            cached = self._pod_views.get(name)
            if cached is None or cached[0] is not pod or cached[1] != self._names:
                app = self._app(pod)
                cached = (pod, self._names, pod_view(pod, app, self._role(app)))
                self._pod_views[name] = cached
            yield cached[2]

    def _build_workloads(self, facts: World) -> None:
        owned: dict[str, list[dict[str, Any]]] = {}
        for pod in facts["pods"]:
            owned.setdefault(pod["app"], []).append(pod)
        sets: dict[str, list[JSON]] = {}
        for replica_set in self._objects.get("ReplicaSet", {}).values():
            owner = owner_of(replica_set)
            if owner is not None:
                sets.setdefault(owner[1], []).append(replica_set)
        views: dict[str, dict[str, Any]] = {}
        for kind in workloads.KINDS:
            for name, obj in self._objects.get(kind, {}).items():
                if workloads.is_top(obj) and name not in views:
                    views[name] = workloads.workload_view(
                        obj,
                        self._role(name),
                        owned.get(name, ()),
                        sets.get(name, ()),
                        self._refused.get((kind, name), ""),
                    )
        facts["workloads"] = [workloads.listed(view) for view in views.values()]
        if self._knows(self.kind.kind):
            for role, name in (("primary", self.primary_name), ("target", self._target)):
                facts[role] = workloads.single(views.get(name), name)

    def _app(self, pod: JSON) -> str:
        owner = owner_of(pod)
        if owner is None or owner not in self._owners:
            return guessed_app(pod)
        for _ in range(_MAX_OWNERS):
            above = self._owners.get(owner)
            if above is None or above[0] == self.kind.kind:
                break
            owner = above
        return owner[1]

    def _role(self, app: str) -> str:
        if not self._target:
            return "other"
        return {self.primary_name: "primary", self._target: "target"}.get(app, "other")

    def _service_roles(self) -> dict[str, str]:
        if not self._apex:
            return {}
        return {
            self._apex: "apex",
            f"{self._apex}{self.kind.primary_suffix}": "primary",
            f"{self._apex}-canary": "target",
        }

    def _template_labels(self) -> dict[str, dict[str, str]]:
        found = {"primary": self.workload(self.primary_name), "target": self.workload(self._target)}
        return {
            role: labels_of(dig(obj, "spec.template", {}))
            for role, obj in found.items()
            if obj is not None
        }


def _uid(obj: JSON) -> str:
    return str(dig(obj, "metadata.uid", ""))
