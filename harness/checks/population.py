"""Every rollout object of a drill: its state, and what happened to it since the subject was last started.

The counters answer what an upgrade must not do: start an analysis, roll a workload, write the same thing twice. They are kept
apart for each object, so that an observation of one of many costs the same as in a drill of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.checks.paths import condition, dig, labels_of, name_of
from harness.checks.rollout import ABSENT, primary_name, rollout_view, target_name
from harness.checks.section import Section
from harness.model.scenario_checks import ANALYSED

if TYPE_CHECKING:
    from harness.checks.section import View
    from harness.model.timeline import JSON, Requests, RolloutKind

RUNNING: Final = frozenset({"Waiting", "Progressing", "WaitingPromotion"})
"""Phases of an analysis that has begun."""
QUEUED: Final = "Queued"
"""Type of the condition of one that waits for its turn."""
_PARTS: Final = 3
"""Parts of a fence that has them all: uid, counter, number of the revision."""
ONE: Final = "one"
"""Key of the only view of a section that has one."""
_BEGINS: Final = frozenset({"Waiting", "Progressing"})
"""Phases in which an analysis begins."""


@dataclass(slots=True)
class _Counts:
    """What happened since the subject was last started."""

    starts: int = 0
    target_rolls: int = 0
    primary_rolls: int = 0
    tracking_writes: int = 0
    looked: int = 0


@dataclass(slots=True)
class _Tracked:
    """One rollout object."""

    name: str
    view: View
    more: View
    """What an entry has beside the fields of `rollout`, from the object itself."""
    tracking: tuple[str, str, str]
    """Applied, promoted and fence, as its status has them."""
    target: str = ""
    primary: str = ""
    """Names of its workloads; they outlive it."""
    counts: _Counts = field(default_factory=_Counts)
    after_change: int = 0
    """Analyses that began since the change, whichever subject ran."""
    began: float = -1.0
    """When the last of all its analyses began, as `t`."""
    queued_since: str = ""
    """Since when it waits for its turn, or did last, as its status says."""
    witness: View = field(default_factory=dict)
    """Hash and revision of target and primary, as far as they are known."""


class Population:
    """The entries of `rollouts`, in the order in which they were first seen. One that was deleted stays, as absent."""

    def __init__(self, kind: RolloutKind) -> None:
        self.section = Section()
        self.analyses = Section()
        """One view, under `ONE`: how many are in an analysis."""
        self._analysed: set[str] = set()
        self._most = 0
        self._count()
        self._kind = kind
        self._tracked: dict[str, _Tracked] = {}
        self._of_workload: dict[str, tuple[_Tracked, str]] = {}
        self._requests: Requests | None = None
        self._changed = False
        self._audited = False
        """Whether requests were ever counted; without, nothing is known of them."""

    def __len__(self) -> int:
        return len(self._tracked)

    def see(self, obj: JSON, t: float) -> None:
        """Take a new state of a rollout object, seen at `t`, into account."""
        name = name_of(obj)
        view, more = rollout_view(obj, self._kind), self._more(obj)
        tracking = self._tracking(obj)
        known = self._tracked.get(name)
        if known is None:
            known = self._tracked[name] = _Tracked(name, view, more, tracking)
        else:
            begun = begins(known.view, view) or retaken(known.view, view, known.tracking, tracking)
            known.counts.starts += begun
            known.began = t if begun else known.began
            known.after_change += begun and self._changed
            known.counts.tracking_writes += known.view["exists"] and tracking != known.tracking
            known.view, known.more, known.tracking = view, more, tracking
        waits = condition(obj, QUEUED)
        known.queued_since = str(waits.get("lastTransitionTime") or known.queued_since)
        self._name(known, target_name(obj, self._kind), primary_name(obj, self._kind))
        self._put(known)

    def _name(self, known: _Tracked, target: str, primary: str) -> None:
        if (target, primary) == (known.target, known.primary):
            return
        for former in (known.target, known.primary):
            # A ReplicaSet that was the primary is none any more, whatever still happens to it.
            if self._of_workload.get(former, (None,))[0] is known:
                del self._of_workload[former]
        known.target, known.primary = target, primary
        self._of_workload[target] = known, "target"
        self._of_workload[primary] = known, "primary"

    def gone(self, name: str) -> None:
        """A rollout object was deleted."""
        known = self._tracked.get(name)
        if known is not None:
            known.view = {**ABSENT, "name": name}
            self._put(known)

    def workload(self, name: str, current: str, revision: str) -> None:
        """Take the current hash of a workload, and the number of its revision, into account; empty is not known."""
        found = self._of_workload.get(name)
        if found is None:
            return
        known, role = found
        before = known.witness.get(f"{role}_hash", "")
        if current and before and current != before:
            if role == "target":
                known.counts.target_rolls += 1
            else:
                known.counts.primary_rolls += 1
        seen = {f"{role}_hash": current, f"{role}_revision": revision}
        # While it is deleted or not worked out yet, the last one known is what the next is compared with.
        known.witness = {**known.witness, **{key: text for key, text in seen.items() if text}}
        self._put(known)

    def restarted(self) -> None:
        """The subject was started: count from here."""
        self._requests = None
        for known in self._tracked.values():
            known.counts = _Counts()
            self._put(known)

    def changed(self) -> None:
        """The change of the drill was made."""
        self._changed = True

    def looked(self, name: str) -> None:
        """The subject says that it evaluated a rollout object."""
        known = self._tracked.get(name)
        if known is not None:
            known.counts.looked += 1
            self._put(known)

    def requests(self, seen: Requests) -> None:
        """Take the subject's requests into account, which are counted since it was started."""
        before = {} if self._requests is None else self._requests.rollouts
        first, self._requests, self._audited = not self._audited, seen, True
        for known in self._tracked.values():
            if first or before.get(known.name) != seen.rollouts.get(known.name):
                self._put(known)

    def names(self, name: str) -> tuple[str, str] | None:
        """Return the names of a rollout object's target and primary."""
        known = self._tracked.get(name)
        return None if known is None else (known.target, known.primary)

    def owner(self, workload: str) -> str:
        """Return the name of the rollout object that a workload belongs to, or an empty text."""
        found = self._of_workload.get(workload)
        return "" if found is None else found[0].name

    def _more(self, obj: JSON) -> View:
        return {
            "labels": {key: str(value) for key, value in labels_of(obj).items()},
            "suspended": dig(obj, self._kind.suspend_path) is True,
            "applied": str(dig(obj, self._kind.applied_path, "")),
            "tracked": str(dig(obj, self._kind.fence_path, "")),
        }

    def _tracking(self, obj: JSON) -> tuple[str, str, str]:
        paths = self._kind.applied_path, self._kind.promoted_path, self._kind.fence_path
        applied, promoted, fence = (str(dig(obj, path, "")) for path in paths)
        return applied, promoted, fence

    def _put(self, known: _Tracked) -> None:
        counts = known.counts
        reads = writes = 0
        if self._requests is not None:
            reads, writes = self._requests.rollouts.get(known.name, (0, 0))
        entry: View = {
            **known.view,
            **known.more,
            **known.witness,
            "starts": counts.starts,
            "starts_after_change": known.after_change,
            "began": known.began,
            "queued_since": known.queued_since,
            "target_rolls": counts.target_rolls,
            "primary_rolls": counts.primary_rolls,
            "tracking_writes": counts.tracking_writes,
            "looks": max(reads + writes, counts.looked),
        }
        if self._audited:
            entry["writes"] = writes
        self.section.put(known.name, entry)
        analysed = known.view["phase"] in ANALYSED
        if analysed != (known.name in self._analysed):
            (self._analysed.add if analysed else self._analysed.discard)(known.name)
            self._count()

    def _count(self) -> None:
        running = len(self._analysed)
        self._most = max(self._most, running)
        self.analyses.put(ONE, {"running": running, "most": self._most})


def begins(before: View, after: View) -> bool:
    """Return whether an analysis began between two states of a rollout object.

    It did when the phase came from outside of an analysis, and when one went back to its beginning: its counters fell to zero, or
    it left WaitingPromotion other than by promoting (`retaken` is for those that had not counted anything yet). Counters that fall on entering WaitingPromotion say nothing (some
    controllers set them there).
    """
    if after["phase"] not in _BEGINS:
        return False
    if before["phase"] not in RUNNING:
        return True
    if before["phase"] == "WaitingPromotion":
        return True
    return any(before[key] > 0 and after[key] == 0 for key in ("iterations", "weight"))


def retaken(
    before: View, after: View, old: tuple[str, str, str], new: tuple[str, str, str]
) -> bool:
    """Return whether an analysis started over before it had got anywhere, so that no counter fell.

    Then another revision was taken up. That the same revision is only recorded in another form shows in the fence, whose last
    part is the number of the target's revision.
    """
    running = before["phase"] in _BEGINS and after["phase"] in _BEGINS
    nothing_done = not any(after[key] for key in ("iterations", "weight"))
    if not running or not nothing_done or not old[0] or old[0] == new[0]:
        return False
    (*_, earlier), (*_, later) = (fence.split("/", 2) for fence in (old[2], new[2]))
    same = old[2].count("/") == new[2].count("/") == _PARTS - 1 and earlier == later
    return not same
