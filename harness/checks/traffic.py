"""What checks see of traffic: how many requests were sent and failed, and which revision answered them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.checks.section import Section
from harness.model.clock import moment
from harness.model.traffic import FAILURES, PART_LABEL, PROBE, told_kinds

if TYPE_CHECKING:
    from harness.checks.section import View
    from harness.model.resolved import Resolved
    from harness.model.timeline import JSON
    from harness.model.timeline_traffic import TrafficWindow

ONE: Final = "one"
"""Key of the only view of the section `traffic`."""
WORDS: Final = frozenset({"traffic", "answers"})
"""The variables that are told by it."""
RECENT: Final = 5.0
"""Seconds over which shares are told."""
ROLES: Final = ("primary", "target", "other")
UNKNOWN: Final = ("", "")
"""Role and hash of a pod that nobody knows."""

Revision = tuple[str, str]
"""Role and hash."""


def is_probe(obj: JSON) -> bool:
    """Return whether an object is the pod that asks, which is no part of what is drilled."""
    labels = (obj.get("metadata") or {}).get("labels") or {}
    return bool(labels.get(PART_LABEL) == PROBE)


class Known:
    """From the name of a pod to its revision, also when the pod is gone by the time at which its answers are told."""

    def __init__(self, pods: Section) -> None:
        """`pods`: the section of that name, kept by somebody else."""
        self._pods = pods
        self._revisions: dict[str, Revision] = {}

    def gone(self, name: str) -> None:
        """Remember a pod that is about to be dropped."""
        self.revision(name)

    def revision(self, name: str) -> Revision:
        """Return role and hash of a pod, as they were when they were asked for first."""
        if name not in self._revisions:
            view = self._pods.get(name)
            if view is None or not view.get("hash"):
                return UNKNOWN
            self._revisions[name] = str(view["role"]), str(view["hash"])
        return self._revisions[name]


@dataclass(slots=True)
class _Answers:
    """What pods of one revision answered."""

    first: float
    last: float = 0.0
    requests: int = 0
    pods: set[str] = field(default_factory=set)


class Seen:
    """The sections `traffic` and `answers`."""

    def __init__(self, scenario: Resolved, pods: Section) -> None:
        self.known = scenario.traffic is not None
        """Whether anybody asks; otherwise nothing can be said."""
        self.section, self.answers = Section(), Section()
        self.pods = Known(pods)
        self._sent = self._answered = 0
        self._kinds = dict.fromkeys(FAILURES, 0)
        self._first_failure = self._last_failure = -1.0
        self._of: dict[Revision, _Answers] = {}
        self._recent: deque[tuple[float, dict[Revision, int]]] = deque()
        self._put()

    def take(self, seen: TrafficWindow) -> None:
        """Take more requests into account."""
        self._sent += seen.sent
        counts: dict[Revision, int] = {}
        for answer in seen.answers:
            pod, requests = str(answer["pod"]), len(answer["ms"])
            revision = self.pods.revision(pod)
            counts[revision] = counts.get(revision, 0) + requests
            self._answered += requests
            known = self._of.setdefault(revision, _Answers(first=seen.since))
            known.last, known.requests = seen.until, known.requests + requests
            known.pods.add(pod)
        for failure in seen.failures:
            kind = str(failure["kind"])
            self._kinds[kind if kind in self._kinds else "other"] += 1
            at = float(failure["at"])
            if self._first_failure < 0:
                self._first_failure = at
            self._last_failure = max(self._last_failure, at)
        self._recent.append((seen.until, counts))
        while self._recent[0][0] <= seen.until - RECENT:
            self._recent.popleft()
        self._put()

    def _put(self) -> None:
        shares = self._shares()
        by_role = dict.fromkeys(ROLES, 0.0)
        for (role, _), share in shares.items():
            by_role[role if role in by_role else "other"] += share
        self.section.put(
            ONE,
            {
                "sent": self._sent,
                "answered": self._answered,
                "failed": sum(self._kinds.values()),
                "kinds": dict(self._kinds),
                "last_failure": self._last_failure,
                "shares": {role: round(share) for role, share in by_role.items()},
                "message": self._message(),
            },
        )
        for revision, known in self._of.items():
            share = round(shares.get(revision, 0.0))
            self.answers.put(revision, _view(revision, known, share))

    def _shares(self) -> dict[Revision, float]:
        """Return the percentages of the last seconds."""
        counts: dict[Revision, int] = {}
        for _, some in self._recent:
            for revision, requests in some.items():
                counts[revision] = counts.get(revision, 0) + requests
        total = sum(counts.values())
        return {revision: 100 * count / total for revision, count in counts.items()}

    def _message(self) -> str:
        failed = sum(self._kinds.values())
        if not failed:
            return ""
        kinds = told_kinds(self._kinds)
        first, last = moment(self._first_failure), moment(self._last_failure)
        when = f"at {first}" if failed == 1 else f"from {first} to {last}"
        return f"{failed} of {self._sent} requests failed ({kinds}), {when}"


def _view(revision: Revision, known: _Answers, share: int) -> View:
    view: dict[str, Any] = {
        "name": " ".join(revision) if revision != UNKNOWN else "somebody unknown",
        "requests": known.requests,
        "pods": sorted(known.pods),
        "first": known.first,
        "last": known.last,
        "share": share,
    }
    if revision != UNKNOWN:
        # Without role and hash, what asks for them is not known, which is the truth.
        view |= {"role": revision[0], "hash": revision[1]}
    return view
