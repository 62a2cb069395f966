"""Knative Services as targets: Knative makes a revision of every template, so the primary is not an object but a name (spec objects 10).

Which revision serves as primary stands in an annotation of the target; only that annotation is written. The revision to be analysed is
the newest that Knative has made, once it is another than the primary's. While Knative has not come to a change yet, the newest one still
is the primary's, and judging that would pass anything (C22).

Ready is not enough to begin with: a revision that was made with no pod to start with (`initial-scale: "0"`) is Ready at once, and nobody
knows whether it can serve (P12). Once it had a ready pod, it may go to zero and counts as ready.

Revisions are read from `Pair.objects["krevisions"]`. Where they cannot be read, the Service's status has to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import conditions as cond
from harness.controller.core.canonical import string_hash
from harness.controller.core.decision import JSON, Plural, Write
from harness.controller.core.moments import seconds
from harness.controller.core.readiness import Readiness
from harness.controller.core.snapshots import knative_snapshot, observed
from harness.controller.core.targets.base import Apart
from harness.controller.core.templates import Difference

if TYPE_CHECKING:
    from harness.controller.core.snapshots import Snapshot
    from harness.controller.core.targets.base import Pair

PRIMARY_REVISION: Final = "flagger.app/primary-revision"
_CREATED: Final = "latestCreatedRevisionName"
_READY: Final = "latestReadyRevisionName"
_ALL_TO_NEWEST: Final = {"latestRevision": True, "percent": 100}
"""What Knative does when nothing is said."""
_FULL: Final = 100
_AT_ONCE: Final = 2.0
"""Seconds. Whatever had a pod stays active for longer: Knative's stable window is 6 s at least. Its times are whole seconds."""


class KnativeTarget(Apart):
    """`serving.knative.dev/v1` Service."""

    kind = "Knative Service"
    plural: Plural = "kservices"
    pods = False
    scales = False
    copies = False

    def problem(self, _target: JSON) -> str:
        """Every Knative Service can be handled."""
        return ""

    def snapshot(self, target: JSON) -> Snapshot:
        """Return hash of the newest revision's name, and that name as fence."""
        return knative_snapshot(target)

    def rolled_out(self, obj: JSON, _percent: int) -> Readiness:
        """Judge a Service by itself: its newest revision is made and ready."""
        if _behind(obj):
            return _lagging(obj)
        return _newest_ready(obj, None)

    def expected(self, _obj: JSON) -> int:
        """It has no pods of its own."""
        return 0

    def canary_ready(self, pair: Pair, _percent: int) -> Readiness:
        """Whether there is a revision beside the primary's, the newest for the present template, and it is Ready (C22)."""
        target = pair.target
        if _behind(target):
            return _lagging(target)
        newest = latest_created(target)
        if newest and newest == primary_revision(target):
            name = target["metadata"]["name"]
            return Readiness(f"{name}: its newest revision {newest} is the primary's")
        revisions = pair.objects.get("krevisions")
        found = _newest_ready(target, revisions)
        if not found.ready or revisions is None or cond.find(_status(pair), cond.CANARY_READY):
            return found  # in this run it was ready before, so that it had a pod
        return _had_a_pod(newest, revisions[newest])

    def primary_ready(self, pair: Pair, _percent: int) -> Readiness:
        """Whether the revision that serves is Ready."""
        target, revisions = pair.target, pair.objects.get("krevisions")
        name = primary_revision(target)
        if not name:
            return Readiness(f"{target['metadata']['name']}: no revision serves as primary yet")
        if revisions is not None:
            return _judged(name, revisions)
        # An older revision than the newest was ready when it was promoted, and nothing at hand says more.
        return _newest_ready(target, None) if name == latest_created(target) else Readiness()

    def idle(self, _pair: Pair) -> bool:
        """Knative scales by itself."""
        return True

    def empty(self, _pair: Pair) -> bool:
        """Knative brings pods when there are requests."""
        return False

    def to_zero(self, _pair: Pair) -> tuple[Write, ...]:
        """Knative scales by itself."""
        return ()

    def to_run(self, _pair: Pair) -> tuple[Write, ...]:
        """Knative scales by itself."""
        return ()

    def exists(self, pair: Pair) -> bool:
        """Whether a revision serves as primary."""
        return bool(primary_revision(pair.target))

    def create(self, pair: Pair) -> tuple[Write, ...]:
        """Let the revision that serves alone be the primary, or else the newest; unless there is one, or Knative has a change to take up.

        The newest may be one that never became ready, or that somebody led the traffic away from: it is analysed like any other.
        """
        if primary_revision(pair.target) or not observed(pair.target):
            return ()
        alone = _serves_alone(pair.target)
        return (_annotate(pair.target, alone),) if alone else self.promote(pair)

    def keep(self, _pair: Pair) -> tuple[Write, ...]:
        """Nothing more is needed."""
        return ()

    def promote(self, pair: Pair) -> tuple[Write, ...]:
        """Let the newest revision be the primary: the one that `Pair.revision` is the hash of, since both are of one read."""
        newest = latest_created(pair.target)
        if not newest or newest == primary_revision(pair.target):
            return ()
        return (_annotate(pair.target, newest),)

    def revision_of(self, pair: Pair) -> str:
        """Return the hash of the primary's name, which means the same whoever wrote it."""
        name = primary_revision(pair.target)
        return string_hash(name) if name else ""

    def holds(self, pair: Pair) -> bool:
        """Whether the newest revision is the primary."""
        name = primary_revision(pair.target)
        return bool(name) and name == latest_created(pair.target)

    def differences(self, pair: Pair) -> tuple[Difference, ...]:
        """Compare names: a revision never changes."""
        return () if self.holds(pair) else (Difference(("status", _CREATED)),)

    def revert(self, pair: Pair) -> tuple[Write, ...]:
        """Remove the annotation; the traffic is the router's."""
        return (_annotate(pair.target, None),) if primary_revision(pair.target) else ()


def primary_revision(target: JSON) -> str:
    """Return the name of the revision that serves as primary; empty when there is none."""
    return str((target["metadata"].get("annotations") or {}).get(PRIMARY_REVISION) or "")


def latest_created(target: JSON) -> str:
    """Return the name of the newest revision; empty before the first."""
    return str((target.get("status") or {}).get(_CREATED) or "")


def _annotate(target: JSON, revision: str | None) -> Write:
    meta = target["metadata"]
    body = {"metadata": {"annotations": {PRIMARY_REVISION: revision}}}
    return Write("patch", "kservices", meta["name"], body, meta["resourceVersion"])


def _status(pair: Pair) -> JSON:
    return pair.canary.get("status") or {}


def _serves_alone(target: JSON) -> str:
    """Return the name of the revision that has all the traffic; empty when none has."""
    served: dict[str, int] = {}
    for entry in (target.get("status") or {}).get("traffic") or []:
        name = str(entry.get("revisionName") or "")
        served[name] = served.get(name, 0) + int(entry.get("percent") or 0)
    return next((name for name, share in served.items() if share == _FULL), "")


def _behind(target: JSON) -> bool:
    """Whether Knative has yet to come to the last change, so that its newest revision may be an older template's.

    Moving traffic is a change too, and ours: as long as its shares are on their way, nothing is held against the revision, or each
    step of a run would start the waiting over.
    """
    if observed(target):
        return False
    moving = (_shares(part) for part in (target["spec"], target.get("status") or {}))
    asked, given = moving
    return asked == given


def _shares(part: JSON) -> dict[str, int]:
    """Return percent by revision, the newest under an empty name; entries without a share are left out."""
    shares: dict[str, int] = {}
    for entry in part.get("traffic") or [_ALL_TO_NEWEST]:
        key = "" if entry.get("latestRevision") else str(entry.get("revisionName") or "")
        shares[key] = shares.get(key, 0) + int(entry.get("percent") or 0)
    return {key: share for key, share in shares.items() if share}


def _lagging(target: JSON) -> Readiness:
    name = target["metadata"]["name"]
    return Readiness(f"{name}: the last change has not been taken up yet")


def _newest_ready(target: JSON, revisions: Any) -> Readiness:
    """Judge the newest revision by itself, or by the Service's status when revisions were not read."""
    newest = latest_created(target)
    if not newest:
        return Readiness(f"{target['metadata']['name']}: no revision has been made yet")
    if revisions is not None:
        return _judged(newest, revisions)
    if (target.get("status") or {}).get(_READY) == newest:
        return Readiness()
    return Readiness(f"{newest}: not ready")


def _judged(name: str, revisions: Any) -> Readiness:
    revision: JSON | None = revisions.get(name)
    if revision is None:
        return Readiness(f"{name}: there is no such revision")
    ready = _condition(revision, "Ready")
    if ready.get("status") == "True":
        return Readiness()
    said = ": ".join(str(ready[key]) for key in ("reason", "message") if ready.get(key))
    return Readiness(f"{name}: not ready" + (f" ({said})" if said else ""))


def _had_a_pod(name: str, revision: JSON) -> Readiness:
    """Judge a revision that is Ready and has had no traffic yet: has it one ready pod, or had it one since?

    What was active, and is not any more, was so for a while after it became Ready; what never had a pod was inactive from then on.
    """
    active = _condition(revision, "Active")
    has_pods = int((revision.get("status") or {}).get("actualReplicas") or 0) > 0
    if has_pods or active.get("status") in (None, "True"):
        return Readiness()
    made, left = (
        seconds(entry.get("lastTransitionTime"))
        for entry in (_condition(revision, "Ready"), active)
    )
    if active["status"] == "False" and (made is None or left is None or left - made > _AT_ONCE):
        return Readiness()
    return Readiness(
        f"{name}: Ready, but no pod of it has been ready yet, as with initial-scale 0; it gets no traffic before"
    )


def _condition(obj: JSON, kind: str) -> JSON:
    held = (obj.get("status") or {}).get("conditions") or []
    return next((entry for entry in held if entry.get("type") == kind), {})
