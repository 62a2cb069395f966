"""Taking a failed revision out of the target again (`analysis.restore`; spec freeze-and-adopt 5 and 6): what is due, and with what.

`revert` writes the promoted template back into the target, at zero replicas. The target keeps its UID and everything else: a Deployment finds
its former ReplicaSet by the template and makes it current again (K4). Where the template comes from, in this order:

1. the target's own ReplicaSet that holds it, told by `status.lastPromotedSpec`
2. the primary's template with the primary's rewriting undone, if that gives the same hash; DaemonSets have nothing else
3. from nowhere: then the target stays as it is, and the Canary says so (history limit 0, a primary that is another's)

**No loop with a repository.** Whoever applies the failed revision again gets another analysis, since that is what they ask for. When it fails again
before anything else was promoted, it stays in the target (`failed_again`): taken out once more it would come back once more, for ever.

`restore: adopt` announces and ends its restorations in the same condition (`Restored`) and field (`status.lastFailedSpec`).
"""

from __future__ import annotations

import copy
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import managed
from harness.controller.core.affinity import undo_pod_spec
from harness.controller.core.configs import seeming_copies, undo
from harness.controller.core.decision import JSON, Write
from harness.controller.core.names import MANAGER
from harness.controller.core.ownership import TOOLKIT, controller_of
from harness.controller.core.targets.daemonset import marked, remarked
from harness.controller.core.templates import REVISION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.scene import Scene
    from harness.controller.core.settings import Settings
    from harness.controller.core.targets.base import Target

FIELD: Final = "lastFailedSpec"
REVERT: Final = "revert"
VALUES: Final = ("adopt", REVERT)
KINDS: Final = "Deployment, DaemonSet"
"""Targets that hold a template which can be written back."""

PENDING: Final = "Pending"
REVERTED: Final = "Reverted"
PUT_BACK: Final = "PutBack"
"""Somebody else put the promoted template back, after a restoration had failed or was not made."""
NO_TEMPLATE: Final = "NoTemplate"
NOT_KEPT: Final = "NotKept"
APPLIED_AGAIN: Final = "AppliedAgain"
CONFIGS_ONLY: Final = "ConfigsOnly"

_HASH_LABEL: Final = "pod-template-hash"
_MOST_NAMES: Final = 6
"""References whose name ends as a copy's does, of which every subset is tried: a user's own object may be called so."""


def problem(settings: Settings, target: Target) -> str:
    """Return why a Canary cannot have what it asks for, in one sentence; empty when it can, or asks for nothing."""
    wanted = settings.restore
    if not wanted:
        return ""
    if wanted not in VALUES:
        return f"spec.analysis.restore: {wanted!r} is not known; allowed: {', '.join(VALUES)}"
    if settings.freeze:
        return (
            "spec.analysis.freezeOnFailure and spec.analysis.restore exclude each other: the one keeps a failed revision in the"
            " target, the other takes it out; allowed: one of them"
        )
    if wanted == REVERT and not target.pods:
        return (
            f"spec.analysis.restore: {REVERT!r} is not possible for a target of kind {target.kind}; allowed kinds of"
            f" spec.targetRef: {KINDS}"
        )
    return ""


# -- what the status says ----------------------------------------------------------------------------------------------------


def failed_again(status: JSON, failed: str) -> bool:
    """Whether the revision with hash `failed` was taken out of the target before, and nothing was promoted since."""
    return bool(failed) and status.get(FIELD) == failed


def pending(status: JSON) -> bool:
    """Whether a failed revision is still to be taken out of the target."""
    return (cond.find(status, cond.RESTORED) or {}).get("status") == "Unknown"


def refused(status: JSON) -> bool:
    """Whether a failed revision was left in the target."""
    return (cond.find(status, cond.RESTORED) or {}).get("status") == "False"


# -- what is due -------------------------------------------------------------------------------------------------------------


def called_off(scene: Scene) -> bool:
    """Whether the Canary does not ask for the restoration any more that its status announces."""
    return pending(scene.status) and not scene.settings.restore


def reverting(scene: Scene) -> bool:
    """Whether the promoted template is to be written back."""
    return _announced(scene) and not _answered(scene)


def _announced(scene: Scene) -> bool:
    return pending(scene.status) and scene.settings.restore == REVERT


def _answered(scene: Scene) -> bool:
    """Whether the answer to the write has shown another template than was written (`lastAppliedSpec` is its hash since)."""
    return (cond.find(scene.status, cond.RESTORED) or {}).get("reason") == NOT_KEPT


def taken_out(scene: Scene) -> str:
    """Return the hash of the revision that is out of the target now."""
    return str(scene.status.get(FIELD)) if _answered(scene) else scene.tracking.applied


def came_back(scene: Scene) -> bool:
    """Whether the target holds the promoted template: by our own write, or because somebody was faster."""
    return reverting(scene) and scene.snapshot.hash == scene.tracking.promoted


def put_back(scene: Scene) -> bool:
    """Whether somebody put the promoted template back after all; where its configs are other ones, that is a revision to be analysed."""
    if not refused(scene.status) or scene.settings.restore != REVERT:
        return False
    back = scene.snapshot.hash == scene.tracking.promoted != scene.tracking.applied
    return back and not scene.new_revision


def due(scene: Scene) -> bool:
    """Whether the target still holds what failed. Anything else is somebody's next revision, which comes first."""
    held = scene.snapshot.hash == scene.tracking.applied
    return reverting(scene) and held and not scene.new_revision


def changed_on_the_way(scene: Scene) -> bool:
    """Whether the target holds another template than was written back, although nobody has touched it since: a webhook changed it.

    The answer to the write tells that at once. For a process that was killed before it could be written down, managedFields tell who last
    wrote the template, and when: in a second in which somebody else wrote as well, it counts as theirs.
    """
    now, stored = scene.snapshot.hash, scene.tracking
    if _announced(scene) and _answered(scene):
        return now == stored.applied
    if not reverting(scene) or now in (stored.applied, stored.promoted):
        return False
    ours, others = managed.last_written(scene.target, managed.TEMPLATE, MANAGER)
    return ours is not None and (others is None or ours > others)


def revisions_needed(scene: Scene) -> bool:
    """Whether the target's ReplicaSets have to be read to find the promoted template."""
    return due(scene) and scene.workload.plural == "deployments" and scene.world.revisions is None


# -- the promoted template ---------------------------------------------------------------------------------------------------


def template(scene: Scene) -> JSON | None:
    """Return the promoted template as the target held it; None when it cannot be had. DaemonSets: without the key that keeps pods away."""
    return next((one for one in _candidates(scene) if _is_promoted(scene, one)), None)


def write(scene: Scene, promoted: JSON) -> Write:
    """Return the write that puts a template into the target and leaves everything else as it is."""
    target = scene.target
    body = copy.deepcopy(target)
    # What is cached of it is not complete; without it the server keeps its own.
    body["metadata"].pop("managedFields", None)
    body["spec"]["template"] = remarked(promoted) if _at_zero_by_mark(scene) else promoted
    meta = target["metadata"]
    return Write("replace", scene.workload.plural, meta["name"], body, meta["resourceVersion"])


def _at_zero_by_mark(scene: Scene) -> bool:
    return scene.workload.plural == "daemonsets" and marked(scene.target)


def _is_promoted(scene: Scene, candidate: JSON) -> bool:
    held = {**scene.target, "spec": {**scene.target["spec"], "template": candidate}}
    return scene.workload.snapshot(held).hash == scene.tracking.promoted


def _candidates(scene: Scene) -> Iterator[JSON]:
    uid = scene.target["metadata"].get("uid")
    for revision in scene.world.revisions or ():
        stored = (revision.get("spec") or {}).get("template")
        if stored and (controller_of(revision) or {}).get("uid") == uid:
            yield _without_hash(stored)
    if scene.world.primary is not None:
        yield from _undone(scene, scene.world.primary["spec"]["template"])


def _without_hash(stored: JSON) -> JSON:
    result: JSON = copy.deepcopy(stored)
    ((result.get("metadata") or {}).get("labels") or {}).pop(_HASH_LABEL, None)
    return result


def _undone(scene: Scene, primary: JSON) -> Iterator[JSON]:
    """Yield what the primary's template may have been made from; the hash tells which one it was.

    Not to be seen in it: what is Flux's own, which primaries never get (that of the present template is tried), and which references with
    the ending of a copy are copies.
    """
    names = scene.names
    base: JSON = copy.deepcopy(primary)
    meta: JSON = base.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), names.label: names.value}
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k != REVISION}
    base["metadata"] = {k: v for k, v in meta.items() if k != "annotations"} | {"labels": labels}
    undo_pod_spec(base["spec"], names)
    own = scene.target["spec"]["template"].get("metadata") or {}
    toolkit = [{}, {key: _toolkit(own.get(key)) for key in ("labels", "annotations")}]
    for more, copies in product(toolkit, _subsets(seeming_copies(base["spec"]))):
        result = copy.deepcopy(base)
        result["metadata"]["labels"] |= more.get("labels") or {}
        if annotations := notes | (more.get("annotations") or {}):
            result["metadata"]["annotations"] = annotations
        undo(result["spec"], copies)
        yield result


def _toolkit(values: JSON | None) -> JSON:
    return {key: value for key, value in (values or {}).items() if TOOLKIT in key}


def _subsets(keys: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield all, then fewer and fewer; with very many only all and none."""
    sizes = range(len(keys), -1, -1) if len(keys) <= _MOST_NAMES else (len(keys), 0)
    for size in sizes:
        yield from map(frozenset, combinations(sorted(keys), size))
