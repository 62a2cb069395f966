"""The phases of every rollout in a recording: their order, what the status counted in them, and where the pods were.

Where the pods were is read when a role is at rest: its workload is rolled out, and no pod is on its way in or out. What is in motion
when a phase ends is a matter of milliseconds, and differs between two runs of the same subject; the last moment of rest in a phase
does not. A role that finds no rest because pods of it find no node, or are refused, is stuck, and that is told instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks import rollout as rollouts
from harness.checks import workloads
from harness.checks.paths import condition, dig, name_of, whole
from harness.checks.pods import guessed_app, pod_view
from harness.compare.model import Visit
from harness.model.timeline import ObjectSeen
from harness.report.text import plural

if TYPE_CHECKING:
    from harness.model.timeline import JSON, Observation, RolloutKind

DELETED: Final = "(deleted)"
"""Phase of a rollout object that is no more."""
_OVER: Final = frozenset({"Succeeded", "Failed"})
"""Phases of pods that will not run again."""


@dataclass(slots=True)
class _Open:
    """A visit in the making."""

    phase: str
    t: float
    weights: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    failed_checks: list[int] = field(default_factory=list)
    rests: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, _Stuck] = field(default_factory=dict)

    def note(self, view: dict[str, Any]) -> None:
        for key in ("weights", "iterations", "failed_checks"):
            counted = getattr(self, key)
            value = view["weight" if key == "weights" else key]
            if not counted or counted[-1] != value:
                counted.append(value)


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A role at the end of a phase in which it found no rest."""

    ready: str
    blocked: frozenset[str]
    """Uids of pods that the scheduler had refused."""
    refused: bool
    """Whether pods could not even be made."""


@dataclass(slots=True)
class _Track:
    """One rollout object."""

    apps: dict[str, str]
    """Role -> name of the workload."""
    visits: list[_Open] = field(default_factory=list)
    over: bool = False


class PhaseFollower:
    """Follows a recording, one observation after the other, in their order."""

    def __init__(self, kind: RolloutKind) -> None:
        self._kind = kind
        self._tracks: dict[str, _Track] = {}
        self._interested: dict[str, list[tuple[_Track, str]]] = {}
        self._workloads: dict[str, JSON] = {}
        self._pods: dict[str, dict[str, dict[str, Any]]] = {}
        self._app_of: dict[str, str] = {}
        self._placed: set[str] = set()

    def apply(self, seen: Observation) -> None:
        """Take an observation into account."""
        if not isinstance(seen, ObjectSeen):
            return
        kind = seen.object.get("kind")
        if kind == "Pod":
            self._settle(self._pod(seen))
        elif kind == self._kind.kind:
            self._rollout(seen)
        elif kind in workloads.KINDS and workloads.is_top(seen.object):
            name = name_of(seen.object)
            if seen.change == "DELETED":
                self._workloads.pop(name, None)
            else:
                self._workloads[name] = seen.object
            self._settle(name)

    def _pod(self, seen: ObjectSeen) -> str:
        uid = str(dig(seen.object, "metadata.uid", ""))
        app = guessed_app(seen.object)
        self._app_of[uid] = app
        if seen.change == "DELETED":
            self._pods.get(app, {}).pop(uid, None)
            return app
        view = pod_view(seen.object, app, "")
        self._pods.setdefault(app, {})[uid] = view
        if view["node"]:
            self._placed.add(uid)
        return app

    def _settle(self, app: str) -> None:
        interested = self._interested.get(app)
        if not interested:
            return
        rest = self._rest(app)
        for track, role in interested:
            if rest is not None and track.visits and not track.over:
                track.visits[-1].rests[role] = rest

    def _rest(self, app: str) -> str | None:
        """Return where the pods of a workload are if it rests, else None."""
        workload = self._workloads.get(app)
        if workload is None:
            return None
        pods = [p for p in self._pods.get(app, {}).values() if p["phase"] not in _OVER]
        wanted = _rolled_out(workload)
        staying = [pod for pod in pods if not pod["terminating"]]
        quiet = all(pod["ready"] for pod in staying)
        # Old pods may take their leave beside the new ones. With none to stay they must be gone: a controller that scales down
        # and then says so has said so a moment before or after the pods are told.
        quiet &= bool(wanted) or not pods
        return _ready(staying) if wanted == len(staying) and quiet else None

    def _rollout(self, seen: ObjectSeen) -> None:
        name = name_of(seen.object)
        track = self._tracks.get(name)
        if seen.change == "DELETED":
            if track is not None:
                self._enter(track, DELETED, seen.t)
                track.over = True
            return
        target = rollouts.target_name(seen.object, self._kind)
        apps = {"primary": f"{target}{self._kind.primary_suffix}", "target": target}
        if track is None:
            track = self._tracks[name] = _Track(apps)
            for role, app in apps.items():
                self._interested.setdefault(app, []).append((track, role))
        track.over = False
        view = rollouts.rollout_view(seen.object, self._kind)
        # Before its first phase a rollout object is the user's, and says nothing about the subject.
        if not view["phase"]:
            return
        if not track.visits or track.visits[-1].phase != view["phase"]:
            self._enter(track, view["phase"], seen.t)
        track.visits[-1].note(view)

    def _enter(self, track: _Track, phase: str, t: float) -> None:
        self._leave(track)
        visit = _Open(phase, t)
        for role, app in track.apps.items():
            rest = self._rest(app)
            if rest is not None:
                visit.rests[role] = rest
        track.visits.append(visit)

    def _leave(self, track: _Track) -> None:
        if not track.visits or track.over:
            return
        visit = track.visits[-1]
        for role, app in track.apps.items():
            workload = self._workloads.get(app)
            if role in visit.rests or workload is None:
                continue
            pods = self._pods.get(app, {})
            blocked = frozenset(u for u, p in pods.items() if p["unschedulable"] or p["gated"])
            refused = condition(workload, "ReplicaFailure").get("status") == "True"
            quiet = [p for p in pods.values() if p["ready"] and not p["terminating"]]
            visit.stuck[role] = _Stuck(_ready(quiet), blocked, refused)

    def finish(self, change_at: float | None) -> dict[str, tuple[Visit, ...]]:
        """Return the visits of every rollout by name; `change_at` is the moment of the change, if there was one."""
        for track in self._tracks.values():
            self._leave(track)
        return {
            name: tuple(self._closed(visit, change_at) for visit in track.visits)
            for name, track in self._tracks.items()
        }

    def _closed(self, visit: _Open, change_at: float | None) -> Visit:
        placements = dict(visit.rests)
        for role, stuck in visit.stuck.items():
            # One that got a node later was only waiting for its turn when the phase ended.
            homeless = len(stuck.blocked - self._placed)
            told = [stuck.ready]
            told += [f"{homeless} without a node"] * bool(homeless)
            told += ["more refused"] * stuck.refused
            if len(told) > 1:
                placements[role] = ", ".join(told)
        return Visit(
            phase=visit.phase,
            t=visit.t,
            since_change=None if change_at is None else visit.t - change_at,
            weights=tuple(visit.weights),
            iterations=tuple(visit.iterations),
            failed_checks=tuple(visit.failed_checks),
            placements=dict(sorted(placements.items())),
        )


def _ready(pods: list[dict[str, Any]]) -> str:
    """Return how many pods, all of them ready, are on how many nodes. The scheduler is free to choose which nodes."""
    if not pods:
        return "none"
    nodes = len({pod["node"] for pod in pods})
    return f"{len(pods)} ready on {plural(nodes, 'node')}"


def _rolled_out(workload: JSON) -> int | None:
    """Return how many pods a workload has, by its own word, if its current revision is rolled out to all of them; else None."""
    if whole(dig(workload, "status.observedGeneration")) < whole(
        dig(workload, "metadata.generation")
    ):
        return None
    if workload.get("kind") == "DaemonSet":
        fields = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        wanted = whole(dig(workload, "status.desiredNumberScheduled"))
    else:
        fields = ("replicas", "updatedReplicas", "availableReplicas")
        wanted = whole(dig(workload, "spec.replicas", 1))
    counts = {whole(dig(workload, f"status.{name}")) for name in fields}
    return wanted if counts == {wanted} else None
