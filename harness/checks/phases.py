"""The table of a report: one row per change of phase or placement; and which phase it was when."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks.pods import pod_state
from harness.model.report import PhaseRow, PodPlace, RevisionPlace

if TYPE_CHECKING:
    from harness.checks.state import State
    from harness.model.timeline import Observation

AFTER: Final = "after"
"""Phase of the last row: the end of observation."""
_USES: Final[dict[str, frozenset[str] | None]] = {
    "rollout": frozenset({"exists", "phase", "message", "weight"}),
    "pods": None,
    "route": frozenset({"exists", "weights", "mirror"}),
    "workloads": frozenset({"kind", "role"}),
    "revisions": None,
}
_TOGETHER: Final = 0.1
"""Seconds. Changes this close to a row's beginning belong to it: one act of a controller reaches us in several events."""


@dataclass(slots=True)
class PhaseLog:
    """Rows and phases, gathered while a recording is replayed."""

    rows: list[PhaseRow] = field(default_factory=list)
    seen: bool = False
    """Whether the rollout object was ever seen."""
    message: str = ""
    """What the rollout object said last."""
    gone_at: float | None = None
    """Since when there is no rollout object any more; None while there is one, or before the first."""
    several: bool = False
    """Whether there is more than one rollout object: then there is nothing to say about "the" phase, and there are no rows."""
    by_node: bool = False
    """Whether the workload under promotion is one with a pod for each node."""
    change_at: float | None = None
    over: float = 0.0
    _phases: list[tuple[float, str]] = field(default_factory=list)
    _stamp: int = -1

    def observe(self, _index: int, observation: Observation, state: State) -> None:
        """Add a row if phase, weight or placement changed."""
        self.over = observation.t
        self.change_at = state.change_at
        if self.several:
            self.seen = self.seen or bool(state.population)
            return
        stamp = state.stamp(_USES)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        facts = state.world(uses=_USES)
        self.by_node = self.by_node or any(
            one["kind"] == "DaemonSet" and one["role"] != "other"
            for one in facts.get("workloads", ())
        )
        rollout = facts.get("rollout", {})
        exists = bool(rollout.get("exists"))
        phase = str(rollout.get("phase", ""))
        if exists:
            self.seen = True
            self.message = str(rollout.get("message", ""))
            self.gone_at = None
        elif self.seen and self.gone_at is None:
            self.gone_at = observation.t
        if self.seen and (not self._phases or self._phases[-1][1] != phase):
            self._phases.append((observation.t, phase))
        weight = rollout.get("weight") if exists else None
        self._add(
            PhaseRow(
                t=observation.t,
                since_change=state.since_change(),
                phase=phase,
                weight=weight,
                step=state.step,
                pods=places(facts.get("pods", ())),
                route=_shares(facts.get("route", {})),
                revisions=_revisions(facts.get("revisions", ())),
            )
        )

    def _add(self, row: PhaseRow) -> None:
        last = self.rows[-1] if self.rows else None
        if last is None:
            if row.pods or row.phase:
                self.rows.append(row)
            return
        if _seen(row) == _seen(last):
            return
        close = row.t - last.t < _TOGETHER and row.phase == last.phase
        if not close or _blocked(last) - _blocked(row):
            self.rows.append(row)
            return
        merged = dataclasses.replace(row, t=last.t, since_change=last.since_change)
        self.rows[-1] = merged
        # Merging may make a row equal to the one before it.
        before = self.rows[-2] if len(self.rows) > 1 else None
        if before is not None and _seen(before) == _seen(row):
            del self.rows[-1]

    def finish(self, state: State) -> None:
        """Add the last row, which shows what it was like when observation ended."""
        if not self.rows:
            return
        last = self.rows[-1]
        since = state.since_change(self.over)
        self.rows.append(dataclasses.replace(last, t=self.over, since_change=since, phase=AFTER))

    @property
    def final(self) -> tuple[str, float]:
        """The last phase, and since when."""
        if not self._phases:
            return "", 0.0
        t, phase = self._phases[-1]
        return phase, t

    def phase_at(self, t: float) -> str:
        """Return the phase at a moment."""
        earlier = [phase for since, phase in self._phases if since <= t]
        return earlier[-1] if earlier else ""

    @property
    def changes(self) -> list[tuple[float, str]]:
        """Every phase with the time at which it was seen first, in order."""
        return list(self._phases)


def _seen(row: PhaseRow) -> tuple[object, ...]:
    """Return what makes a row another one than the one before it."""
    return row.phase, row.weight, row.pods, row.route, row.revisions


def _shares(route: dict[str, Any]) -> str:
    if not route.get("exists"):
        return ""
    told = _listed(route.get("weights", {}))
    if matched := _listed(route.get("matched", {})):
        told[-1:] = [f"{told[-1]}; requests that match: {matched[0]}", *matched[1:]]
    return ", ".join([*told, "mirrored"] if route.get("mirror") else told)


def _listed(shares: dict[str, int]) -> list[str]:
    return [f"{role} {share}" for role, share in shares.items()]


def _revisions(views: Any) -> tuple[RevisionPlace, ...]:
    shown = (one for one in views if one["role"] or one["pods"] or one["served"] or one["routed"])
    return tuple(
        RevisionPlace(
            name=one["name"],
            role=one["role"],
            state=_revision_state(one),
            pods=one["pods"],
            ready_pods=one["ready_pods"],
            nodes=tuple(one["nodes"]),
            asked=one["asked"],
            served=one["served"],
            routed=one["routed"],
        )
        for one in shown
    )


def _revision_state(view: dict[str, Any]) -> str:
    if view["ready"]:
        return "ready"
    state = "failed" if view["failed"] else "not ready"
    return f"{state}: {view['reason']}" if view["reason"] else state


def places(pods: Any) -> tuple[PodPlace, ...]:
    """Return the pods of a row, by workload, revision and node, so that rows can be compared at a glance.

    A pod that the scheduler has not looked at yet is left out: it is nowhere, and for a few milliseconds every pod is.
    """
    shown = [pod for pod in pods if pod["scheduled"] or pod["unschedulable"] or pod["gated"]]
    return tuple(
        PodPlace(
            name=pod["name"],
            app=pod["app"],
            role=pod["role"],
            hash=pod["hash"],
            node=pod["node"],
            state=pod_state(pod),
            ready=pod["ready"],
            terminating=pod["terminating"],
        )
        for pod in sorted(shown, key=_place)
    )


def _place(pod: dict[str, Any]) -> tuple[str, str, bool, str, str]:
    return pod["app"], pod["hash"], not pod["node"], pod["node"], pod["name"]


def _blocked(row: PhaseRow) -> set[str]:
    return {pod.name for pod in row.pods if not pod.node}
