"""Deployments whose primary is a ReplicaSet: `analysis.restore: adopt` (spec freeze-and-adopt 4 and 5).

There is no `-primary` Deployment. What serves is a former current ReplicaSet of the target, *parked*: the Canary is its controller, so the target's own
controller leaves it alone (K1, K2), and not a pod is started or stopped for it. It keeps the target's template to the letter (A3). Annotations of
ours on the ReplicaSet, not on its pods, say which revision it is and when it was parked; the one parked last serves. Services tell target and
primary apart by `pod-template-hash`, the only label in which their pods differ (A5).

**Parking** is one write: the owner, our annotations and the number of pods together, on the resourceVersion that was judged. Then the target goes to
zero. In between the target makes another ReplicaSet of the same template under another hash (K10), whose pods live for moments at most. What cannot
happen is that the parked pods go: whatever the Deployment's controller decided about them before, it wrote on an older resourceVersion.

The target is not paused for it, on purpose. A paused Deployment that has lost its current ReplicaSet scales the newest of its *older* ones up to
its number of replicas: a revision that had failed, perhaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import conditions as cond
from harness.controller.core import replicas
from harness.controller.core.canonical import template_hash
from harness.controller.core.decision import JSON, Write
from harness.controller.core.evidence import holds_template
from harness.controller.core.ownership import controller_of, owner_reference
from harness.controller.core.readiness import Readiness, rolled_out, wanted
from harness.controller.core.services import REVISION_LABEL as HASH
from harness.controller.core.settings import FULL
from harness.controller.core.snapshots import Fence, Snapshot, deployment_snapshot
from harness.controller.core.strategies.traffic import kept_canary
from harness.controller.core.templates import Difference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import Plural
    from harness.controller.core.targets.base import Pair, Role

PROMOTED_REVISION: Final = "rollout-drill/promoted-revision"
"""Of a parked ReplicaSet: the revision, as `Pair.revision` names it."""
PARKED: Final = "rollout-drill/parked"
"""A number that grows with every parking."""
PARKED_BY: Final = "rollout-drill/parked-by"
"""Name of the Canary: how a ReplicaSet that nobody controls for a moment still finds it."""
SETS: Final = "replicasets"
FIELD: Final = "parked"
"""Field of the status: name, uid, hash and number of pods of the ReplicaSet that serves. That it is there, be it empty, tells the layout."""
ADOPT: Final = "adopt"
"""The value of `spec.analysis.restore` that asks for this layout."""
_ANALYSED: Final = frozenset({"Progressing", "WaitingPromotion"})
_PROMOTES: Final = frozenset({"Promoting", "Finalising"})


def parked_by(canary: JSON, found: JSON) -> bool:
    """Whether the Canary is the ReplicaSet's controller."""
    return _owner(found) == str(canary["metadata"]["uid"])


def primary_set(canary: JSON, target: JSON | None, sets: Mapping[str, JSON]) -> JSON | None:
    """Return the ReplicaSet that serves, or None. `sets`: ReplicaSets by name, others too.

    The one parked last. Once it was given back to the target it is still the one, as long as the status names it (`status.parked`).
    """
    known = _remembered(canary).get("uid")
    own = {canary["metadata"]["uid"]}
    lent = {"", target["metadata"]["uid"] if target else ""}
    found = [
        each
        for each in sets.values()
        if _number(each)
        and not each["metadata"].get("deletionTimestamp")
        and (_owner(each) in own or (_owner(each) in lent and each["metadata"]["uid"] == known))
    ]
    return max(found, key=_number, default=None)


def current_set(target: JSON, sets: Mapping[str, JSON]) -> JSON | None:
    """Return the ReplicaSet that the target's own controller takes for the one of its present template; None when it has none yet (K4)."""
    uid = target["metadata"]["uid"]
    own = [
        each
        for each in sets.values()
        if _owner(each) == uid
        and not each["metadata"].get("deletionTimestamp")
        and holds_template(each, target)
    ]
    return min(own, key=_age, default=None)


def pod_hash(found: JSON | None) -> str:
    """Return the value of `pod-template-hash` on a ReplicaSet's pods; empty for none."""
    return str(((found or {"metadata": {}})["metadata"].get("labels") or {}).get(HASH) or "")


def set_ready(found: JSON, percent: int = FULL) -> Readiness:
    """Judge a ReplicaSet by its own status; `percent` of its pods must be available."""
    meta, status = found["metadata"], found.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(meta.get("generation") or 0):
        return Readiness(f"{meta['name']}: the last change has not been taken up yet")
    available, needed = int(status.get("availableReplicas") or 0), wanted(found)
    if available < needed * percent // FULL:
        return Readiness(f"{meta['name']}: {available} of {needed} pods are available")
    return Readiness()


class ParkedTarget:
    """`apps/v1` Deployment with the promoted ReplicaSet under its Canary."""

    kind = "Deployment"
    plural: Plural = "deployments"
    pods = True
    scales = True
    copies = False

    def problem(self, _target: JSON) -> str:
        """Every Deployment can be handled; what is refused besides is in `support.py`."""
        return ""

    def snapshot(self, target: JSON) -> Snapshot:
        """Return hash of the template, and the generation as fence.

        Without the revision annotation: parked ReplicaSets are not the target's any more, so its controller may give their numbers again.
        """
        found = deployment_snapshot(target)
        return Snapshot(found.hash, Fence(found.fence.uid, found.fence.counter))

    def rolled_out(self, obj: JSON, percent: int) -> Readiness:
        """Judge the target by counts of pods; those of a parked ReplicaSet are not among them."""
        return rolled_out(obj, percent)

    def expected(self, obj: JSON) -> int:
        """Return spec.replicas."""
        return wanted(obj)

    def canary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the target is rolled out; at zero it is not, and neither while it is paused: then it could not be promoted."""
        name = pair.names.target
        if self.idle(pair):
            return Readiness(f"{name}: scaled to zero")
        if pair.target["spec"].get("paused"):
            return Readiness(f"{name}: paused (spec.paused), so its ReplicaSet cannot be parked")
        return rolled_out(pair.target, percent)

    def primary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the parked ReplicaSet is ready; at zero only when the target is at zero too (P12, A12)."""
        primary = _primary(pair)
        if primary is None:
            why = _hindrance(pair, percent) or "about to be parked"
            return Readiness(f"no ReplicaSet of {pair.names.target} is parked yet: {why}")
        if wanted(primary) == 0 and not self.idle(pair):
            return Readiness(f"{primary['metadata']['name']}: scaled to zero")
        return set_ready(primary, percent)

    def idle(self, pair: Pair) -> bool:
        """Whether the target has no pods beside those that serve: it is at zero, or owns the promoted ReplicaSet again."""
        return wanted(pair.target) == 0 or self._lent(pair)

    def empty(self, pair: Pair) -> bool:
        """Whether target and primary both have spec.replicas 0."""
        primary = _primary(pair)
        return self.idle(pair) and (primary is None or wanted(primary) == 0)

    def to_zero(self, pair: Pair) -> tuple[Write, ...]:
        """Set spec.replicas to 0; never of a target whose pods serve."""
        return () if self.idle(pair) else replicas.scale(pair.target, 0)

    def to_run(self, pair: Pair) -> tuple[Write, ...]:
        """Set spec.replicas of a target at zero for a run: as many as serve, at least one."""
        primary = _primary(pair)
        if not self.idle(pair):
            return ()
        return replicas.scale(pair.target, (wanted(primary) if primary else 0) or 1)

    def exists(self, pair: Pair) -> bool:
        """Whether a ReplicaSet is parked."""
        return _primary(pair) is not None

    def create(self, pair: Pair) -> tuple[Write, ...]:
        """Park the ReplicaSet that runs, once it is rolled out. A zero that a controller left behind becomes a number first (A12)."""
        target = pair.target
        # One that is gone had as many as the status says.
        count = int(_remembered(pair.canary).get("replicas") or replicas.at_bootstrap(target))
        if wanted(target) == 0 and count:
            return replicas.scale(target, count)
        current = current_set(target, _sets(pair))
        if current is None or _hindrance(pair, _percent(pair)):
            return ()
        return (_park(pair, current, pair.revision, wanted(target)), *replicas.scale(target, 0))

    def keep(self, pair: Pair) -> tuple[Write, ...]:
        """Take the pods back from a restored target that got another template; end a parking that was cut off."""
        return self._taken_back(pair) or self._completed(pair)

    def promote(self, pair: Pair) -> tuple[Write, ...]:
        """Park the ReplicaSet that was analysed, with all its pods; then the target to zero (P10). Nothing while it cannot be."""
        primary = _primary(pair)
        if primary is not None and self.revision_of(pair) == pair.revision:
            return self.to_zero(pair)
        target, current = pair.target, current_set(pair.target, _sets(pair))
        if current is None or target["spec"].get("paused") or wanted(current) != wanted(target):
            return ()
        count = replicas.at_promotion(target, primary) if primary else wanted(target)
        return (_park(pair, current, pair.revision, count), *replicas.scale(target, 0))

    def revision_of(self, pair: Pair) -> str:
        """Return what the parked ReplicaSet says."""
        return _annotation(_primary(pair), PROMOTED_REVISION)

    def holds(self, pair: Pair) -> bool:
        """Whether the parked ReplicaSet has the target's template."""
        primary = _primary(pair)
        return primary is not None and holds_template(primary, pair.target)

    def differences(self, pair: Pair) -> tuple[Difference, ...]:
        """Compare as a whole: nothing is rewritten, so nothing has to be levelled."""
        return () if self.holds(pair) else (Difference(("spec", "template")),)

    def revert(self, pair: Pair) -> tuple[Write, ...]:
        """Give the target at least as many replicas as serve; the parked pods go with the Canary when the target's are ready (A8)."""
        primary, count = _primary(pair), wanted(pair.target)
        if primary is not None:
            count = max(count, wanted(primary))
        elif count == 0 and replicas.at_bootstrap(pair.target):
            count = 1
        return replicas.scale(pair.target, count)

    def selector(self, pair: Pair, role: Role, held: JSON) -> JSON:
        """Return what a Service selects: the label of both, and the hash of one (A5).

        A Service is led to a newly parked ReplicaSet only once that is ready (`held`: what it selects now). `-canary` leads to the ReplicaSet under
        analysis, and where there is none to the one that serves, so that it never leads nowhere.
        """
        own = {pair.names.label: pair.names.value}
        found = self._analysed(pair) if role == "canary" else None
        value = pod_hash(found) or _serving(pair, held)
        return own | {HASH: value} if value else own

    def remembered(self, pair: Pair) -> JSON:
        """Return `status.parked`."""
        primary = _primary(pair)
        if primary is None:
            return {FIELD: {}}
        meta = primary["metadata"]
        said = {"name": meta["name"], "uid": meta["uid"], "hash": pod_hash(primary)}
        return {FIELD: said | {"replicas": wanted(primary)}}

    def counted(self, pair: Pair) -> JSON:
        """Return the labels of the target's pods, when they have to be told from the parked ones."""
        current = None if self._lent(pair) else current_set(pair.target, _sets(pair))
        return {HASH: pod_hash(current)} if current else {}

    def leftovers(self, pair: Pair) -> tuple[Write, ...]:
        """Remove what was promoted before, once no Service leads there; after a promotion that failed it stays for whoever looks into that."""
        primary, failed = _primary(pair), kept_canary(pair.canary.get("status") or {})
        if primary is None or _phase(pair) in _PROMOTES or failed:
            return ()
        old = [
            each["metadata"]
            for each in _sets(pair).values()
            if _number(each)
            and parked_by(pair.canary, each)
            and each is not primary
            and not each["metadata"].get("deletionTimestamp")
            and pod_hash(each) not in pair.selected
        ]
        return tuple(
            Write("delete", "replicasets", meta["name"], {}, uid=meta["uid"])
            for meta in sorted(old, key=lambda meta: str(meta["name"]))
        )

    def _lent(self, pair: Pair) -> bool:
        """Whether the target owns the promoted ReplicaSet, and it is the one of its present template."""
        primary = _primary(pair)
        own = primary is not None and _owner(primary) == pair.target["metadata"]["uid"]
        return own and self.holds(pair)

    def _taken_back(self, pair: Pair) -> tuple[Write, ...]:
        """Park the promoted ReplicaSet again before the target rolls it away, with as many pods as the target had; then let the target go on.

        Both at once: a paused target that has lost its ReplicaSet would scale up an older one.
        """
        primary, target, status = _primary(pair), pair.target, pair.canary.get("status") or {}
        under_way = bool(status.get("restore"))
        if primary is None or under_way or self.holds(pair):
            return ()
        if parked_by(pair.canary, primary):
            restored = _phase(pair) == "Failed" and cond.find(status, cond.RESTORED) is not None
            cut_off = restored and target["spec"].get("paused") and wanted(target)
            return _emptied(pair) if cut_off else ()
        count = wanted(target) or wanted(primary)
        return (_park(pair, primary, self.revision_of(pair), count), *_emptied(pair))

    def _completed(self, pair: Pair) -> tuple[Write, ...]:
        """Take the target to zero when what it runs was parked, and the write that follows parking did not come through."""
        primary, status = _primary(pair), pair.canary.get("status") or {}
        due = _phase(pair) in _PROMOTES or not status.get("lastPromotedSpec")
        parked = primary is not None and parked_by(pair.canary, primary)
        return self.to_zero(pair) if due and parked and self.holds(pair) else ()

    def _analysed(self, pair: Pair) -> JSON | None:
        """Return the ReplicaSet that `-canary` leads to: of the revision that the status calls applied, while that is being analysed.

        A template that is newer than that has no pods yet, and traffic moves away first.
        """
        status, target = pair.canary.get("status") or {}, pair.target
        if self.idle(pair):
            return None
        if status.get("phase") in _ANALYSED:
            for each in _sets(pair).values():
                if _owner(each) == target["metadata"]["uid"] and _hash_of(each) == status.get(
                    "lastAppliedSpec"
                ):
                    return each
        return current_set(target, _sets(pair))


def _primary(pair: Pair) -> JSON | None:
    return primary_set(pair.canary, pair.target, _sets(pair))


def _sets(pair: Pair) -> Mapping[str, JSON]:
    return pair.objects.get(SETS) or {}


def _phase(pair: Pair) -> str:
    return str((pair.canary.get("status") or {}).get("phase") or "")


def _owner(found: JSON) -> str:
    return str((controller_of(found) or {}).get("uid") or "")


def _annotation(found: JSON | None, key: str) -> str:
    return str(((found or {"metadata": {}})["metadata"].get("annotations") or {}).get(key) or "")


def _number(found: JSON) -> int:
    text = _annotation(found, PARKED)
    return int(text) if text.isdecimal() else 0


def _age(found: JSON) -> tuple[str, str]:
    meta = found["metadata"]
    return str(meta.get("creationTimestamp") or ""), str(meta["name"])


def _remembered(canary: JSON) -> JSON:
    return (canary.get("status") or {}).get(FIELD) or {}


def _hash_of(found: JSON) -> str:
    template: JSON = found["spec"]["template"]
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    return template_hash({**template, "metadata": {**meta, "labels": labels}})


def _percent(pair: Pair) -> int:
    asked: Any = (pair.canary["spec"].get("analysis") or {}).get("primaryReadyThreshold")
    return FULL if asked is None else int(asked)


def _hindrance(pair: Pair, percent: int) -> str:
    """Return why the target's current ReplicaSet cannot be parked now; empty when it can."""
    target, name = pair.target, pair.names.target
    if target["spec"].get("paused"):
        return f"{name} is paused (spec.paused)"
    if not (found := rolled_out(target, percent)).ready:
        return found.message
    current = current_set(target, _sets(pair))
    if current is None:
        return f"{name} has no ReplicaSet of its present template"
    return "" if wanted(current) == wanted(target) else f"{name} is being scaled"


def _park(pair: Pair, found: JSON, revision: str, count: int) -> Write:
    """Return the write that makes the Canary the ReplicaSet's controller."""
    meta, canary = found["metadata"], pair.canary
    others = [one for one in meta.get("ownerReferences") or [] if not one.get("controller")]
    number = 1 + max(map(_number, _sets(pair).values()), default=0)
    notes = {
        PROMOTED_REVISION: revision,
        PARKED: str(number),
        PARKED_BY: canary["metadata"]["name"],
    }
    body: JSON = {
        "metadata": {
            "ownerReferences": [*others, owner_reference(canary)],
            "annotations": notes,
        }
    }
    if wanted(found) != count:
        body["spec"] = {"replicas": count}
    return Write("patch", "replicasets", meta["name"], body, meta["resourceVersion"])


def _emptied(pair: Pair) -> tuple[Write, ...]:
    """Return the write that takes a restored target to zero and lets it go on."""
    target = pair.target
    if not target["spec"].get("paused"):
        return replicas.scale(target, 0)
    meta, body = target["metadata"], {"spec": {"replicas": 0, "paused": None}}
    return (Write("patch", "deployments", meta["name"], body, meta["resourceVersion"]),)


def _serving(pair: Pair, held: JSON) -> str:
    """Return the hash of the pods that serve: of the ReplicaSet parked last; but a Service that leads to others stays until it is ready."""
    primary = _primary(pair)
    if primary is None:
        return ""
    if not held or set_ready(primary, _percent(pair)).ready:
        return pod_hash(primary)
    present = str(held.get(HASH) or "")
    known = {pod_hash(each) for each in _sets(pair).values() if parked_by(pair.canary, each)}
    return present if not present or present in known else pod_hash(primary)
