"""A diagnosis: the rolling update that can never finish.

With a required anti-affinity among a workload's own pods, as many replicas as nodes, and a surge, the new pod needs a node that
is free of the old ones, and an old one goes only when the new one is ready. That is a deadlock and not slowness, so a report
must not leave it at "timed out". At promotion it strikes the primary even where target and primary may share nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import dig
from harness.checks.pods import HASH_LABELS
from harness.checks.rollout import ENDED_BADLY
from harness.model.report import Note

if TYPE_CHECKING:
    from harness.checks.state import State
    from harness.model.timeline import JSON, Observation

_PODS: Final[dict[str, frozenset[str] | None]] = {"pods": None}
_USES: Final[dict[str, frozenset[str] | None]] = {"rollouts": frozenset({"name", "phase"})}
_DEFAULT: Final = "25%"
"""Kubernetes' default of maxSurge and maxUnavailable."""
_TERMS: Final = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A pod that cannot be placed, and why that will not change."""

    pod: str
    app: str
    role: str
    surge: str
    unavailable: str

    def note(self) -> Note:
        """Return the diagnosis in plain words."""
        update = (
            "the primary's rolling update"
            if self.role == "primary"
            else f"the rolling update of {self.app}"
        )
        text = (
            f"{update} cannot finish: this is a scheduling deadlock, not slowness. "
            f"Pod {self.pod} may not share a node with any other pod of {self.app}, the scheduler found no node free of "
            f"them, and the old pods stay until the new one is ready ({self.surge}, {self.unavailable}). "
            "Two ways out: the revision key (matchLabelKeys: [pod-template-hash] in the anti-affinity term, so that only "
            "pods of the same revision keep apart), or a rollout without surge (maxSurge 0, maxUnavailable 1)."
        )
        return Note("DEADLOCK", text[0].upper() + text[1:])


@dataclass(slots=True)
class DeadlockWatch:
    """Looks for the deadlock while a recording is replayed; one that dissolves again is none."""

    _candidates: set[str] = field(default_factory=set)
    """Pods that were blocked while the phase of their rollout was Promoting."""
    _stuck: dict[str, Deadlock] = field(default_factory=dict)
    _phases: dict[str, str] = field(default_factory=dict)
    _stamp: int = -1

    def observe(self, _index: int, _observation: Observation, state: State) -> None:
        """Look at a state."""
        self._look_at_phases(state)
        for name, pod in state.stuck.items():
            if self._phases.get(state.population.owner(pod["app"])) == "Promoting":
                self._candidates.add(name)

    def _look_at_phases(self, state: State) -> None:
        stamp = state.stamp(_USES)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        phases = {row["name"]: row["phase"] for row in state.population.section.rows}
        failed = any(
            phase in ENDED_BADLY and self._phases.get(name) not in ENDED_BADLY
            for name, phase in phases.items()
        )
        self._phases = phases
        if failed:
            # The subject gave up on them; it may remove them now, which does not make them placeable.
            self._diagnose(state)

    def finish(self, state: State) -> None:
        """Whoever is still blocked when observation ends is stuck."""
        self._diagnose(state)

    def _diagnose(self, state: State) -> None:
        if not state.stuck:
            return
        pods = state.world(uses=_PODS).get("pods", ())
        for pod in pods:
            # One of the primary that is blocked in another phase is not blocked by its promotion.
            promoted = pod["role"] != "primary" or pod["name"] in self._candidates
            apps = {found.app for found in self._stuck.values()}
            if pod["unschedulable"] and promoted and pod["app"] not in apps:
                found = _diagnosis(pod, pods, state)
                if found is not None:
                    self._stuck[pod["name"]] = found

    @property
    def found(self) -> tuple[Deadlock, ...]:
        """The deadlocks, one for each workload."""
        return tuple(self._stuck.values())


def _diagnosis(pod: dict[str, Any], pods: list[dict[str, Any]], state: State) -> Deadlock | None:
    message = pod["message"]
    if message and "anti-affinity" not in message:
        return None
    raw = state.get("Pod", pod["name"])
    workload = state.workload(pod["app"])
    old = any(p["app"] == pod["app"] and p["hash"] != pod["hash"] and p["node"] for p in pods)
    if raw is None or workload is None or not old or not _unkeyed(raw):
        return None
    budget = _budget(workload)
    if budget is None:
        return None
    return Deadlock(pod["name"], pod["app"], pod["role"], *budget)


def _unkeyed(pod: JSON) -> bool:
    """Whether a required anti-affinity term of a pod applies to pods of other revisions too."""
    return any(not _keyed(term) for term in dig(pod, _TERMS, []))


def _keyed(term: JSON) -> bool:
    keys = set(dig(term, "matchLabelKeys", []))
    keys |= {entry.get("key") for entry in dig(term, "labelSelector.matchExpressions", [])}
    keys |= set(dig(term, "labelSelector.matchLabels", {}))
    return not keys.isdisjoint(HASH_LABELS)


def _budget(workload: JSON) -> tuple[str, str] | None:
    """Return surge and unavailability in words if the update waits for the new pod before it removes an old one."""
    if workload.get("kind") == "DaemonSet":
        strategy, rolling = dig(workload, "spec.updateStrategy", {}), "RollingUpdate"
        surge, unavailable = _limits(strategy, "0", "1")
    else:
        strategy, rolling = dig(workload, "spec.strategy", {}), "RollingUpdate"
        surge, unavailable = _limits(strategy, _DEFAULT, _DEFAULT)
    if strategy.get("type", rolling) != rolling:
        return None
    replicas = int(dig(workload, "spec.replicas", 1))
    most = _number(surge, replicas, up=True)
    fewer = _number(unavailable, replicas, up=False)
    if most < 1 or fewer:
        return None
    return _told("maxSurge", surge, most), _told("maxUnavailable", unavailable, fewer)


def _limits(strategy: JSON, surge: str, unavailable: str) -> tuple[str, str]:
    rolling = dig(strategy, "rollingUpdate", {})
    return str(dig(rolling, "maxSurge", surge)), str(dig(rolling, "maxUnavailable", unavailable))


def _number(limit: str, replicas: int, *, up: bool) -> int:
    """Return a limit as a number of pods: of percentages, Kubernetes rounds the surge up and the unavailability down."""
    if not limit.endswith("%"):
        return int(limit) if limit.isdigit() else 0
    share = replicas * int(limit[:-1] or 0) / 100
    return math.ceil(share) if up else math.floor(share)


def _told(name: str, limit: str, number: int) -> str:
    return f"{name} {limit}, that is {number}" if limit.endswith("%") else f"{name} {limit}"
