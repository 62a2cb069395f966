"""Did a template change while nobody watched? Decision D11: a difference alone is no proof, so the API server's times are asked.

The question comes up when a status was written by another controller or version: its hash cannot be compared, and its primary may
have lost fields that its client did not know. A change shows in two places: in the ReplicaSet that the change made, and in
managedFields, where the last write to the template has its time.

**Since when.** Since the last regular status write of whoever watched before: its entry in managedFields, by the API server's
clock. Only without one, `status.lastTransitionTime`, which comes from that controller's own clock. A status that somebody else
patched by hand does not count: the entry asked about is that of the writer of lastTransitionTime.

**Whole seconds.** All these times are cut to seconds, so a change in the same second as that write may have come before or after
it. It counts as after: a change that is analysed once too often is better than one that nobody sees, and before it can only come
when a whole rollout fits into one second.

**The ReplicaSet says more than managedFields.** A manager's time moves with any field it writes, scaling included. A current
ReplicaSet that has been current ever since it was made proves that the template has not changed since then.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from harness.controller.core import managed
from harness.controller.core.canonical import template_hash
from harness.controller.core.moments import seconds
from harness.controller.core.ownership import controller_of
from harness.controller.core.snapshots import REVISION, observed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.controller.core.decision import JSON

HISTORY: Final = "deployment.kubernetes.io/revision-history"
"""On a ReplicaSet that became current again: its earlier revisions."""
_HASH_LABEL: Final = "pod-template-hash"
"""What a ReplicaSet's template has and its Deployment's has not."""


def last_status_write(canary: JSON) -> float | None:
    """Return when a controller last wrote the Canary's status, in seconds since the epoch; None when nothing says so."""
    by_server = managed.written(canary, managed.MOVED)
    if by_server is not None:
        return by_server
    return seconds((canary.get("status") or {}).get("lastTransitionTime"))


def template_written(workload: JSON) -> float | None:
    """Return when a workload's template was last written, at the latest; for a primary that is its promotion."""
    found = managed.written(workload, managed.TEMPLATE)
    return found if found is not None else created(workload)


def created(obj: JSON) -> float | None:
    """Return when an object was created, in seconds since the epoch."""
    return seconds(obj["metadata"].get("creationTimestamp"))


def not_before(time: float | None, since: float | None) -> bool:
    """Whether `time` lies at or after the second in which `since` lies; False when either is unknown."""
    return time is not None and since is not None and math.floor(time) >= math.floor(since)


def after(time: float | None, since: float | None) -> bool:
    """Whether `time` certainly lies after `since`, in a later second; False when either is unknown."""
    return time is not None and since is not None and math.floor(time) > math.floor(since)


def template_changed(target: JSON, since: float | None, revisions: Sequence[JSON]) -> bool:
    """Whether there is evidence that a Deployment's or DaemonSet's template changed since `since`.

    `revisions`: ReplicaSets or ControllerRevisions, at least those of the target; ReplicaSets with their template, if it could be read.
    """
    current = current_revision(target, revisions)
    if current is not None:
        if not_before(created(current), since):
            return True
        if since is not None and _current_since_made(current):
            return False
    return not_before(managed.written(target, managed.TEMPLATE), since)


def holds_template(revision: JSON, target: JSON) -> bool:
    """Whether a ReplicaSet was made from the template that its Deployment has now; False for one whose template was not read.

    The Deployment's own annotation is no proof of that: when one write changes template and replicas, the Deployment's controller first
    scales, and says that it has observed that generation, and makes the new ReplicaSet only after that. For that long, which is
    minutes when it is busy, the annotation names the revision before.
    """
    template = (revision.get("spec") or {}).get("template")
    if template is None:
        return False
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != _HASH_LABEL}
    own = {**template, "metadata": {**meta, "labels": labels}}
    return template_hash(own) == template_hash(target["spec"]["template"])


def revision_proven(target: JSON, revisions: Sequence[JSON]) -> bool:
    """Whether the ReplicaSet that the target's revision annotation names really holds the target's template."""
    current = current_revision(target, revisions)
    return current is not None and holds_template(current, target)


def current_revision(target: JSON, revisions: Sequence[JSON]) -> JSON | None:
    """Return the ReplicaSet or ControllerRevision that holds the target's template; None when that is not certain."""
    if not observed(target) or target["spec"].get("paused"):
        return None
    uid = target["metadata"].get("uid")
    own = [item for item in revisions if (controller_of(item) or {}).get("uid") == uid]
    if target["kind"] == "DaemonSet":
        return max(own, key=lambda item: int(item.get("revision") or 0), default=None)
    number = _annotations(target).get(REVISION)
    named = (item for item in own if number and _annotations(item).get(REVISION) == number)
    current = next(named, None)
    stale = current is not None and "spec" in current and not holds_template(current, target)
    return None if stale else current


def _current_since_made(revision: JSON) -> bool:
    """Whether a revision never became current again. ControllerRevisions do not tell."""
    return revision.get("kind") != "ControllerRevision" and HISTORY not in _annotations(revision)


def _annotations(obj: JSON) -> JSON:
    return obj["metadata"].get("annotations") or {}
