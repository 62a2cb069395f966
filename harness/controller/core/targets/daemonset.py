"""DaemonSets: zero is a key in the template's nodeSelector that no node has, and readiness has counters of its own (spec objects 5).

Of the user's object only that one key is ever written, by a patch (O2), so its own nodeSelector survives (C21). The key is no part of
the template: it is not hashed, and the primary never has it, neither from its creation (O7) nor from a promotion.

**No eligible node.** How many nodes a template could run on stands in no object before the DaemonSet's controller has tried: the
status counts for the template that is in force, marker included. So zero pods of a primary are judged by what else is known:

- the marker is on the primary: zero, whatever the counters say (O7); `keep` takes it off
- the target runs and has eligible nodes, the primary has none: not ready, traffic would go nowhere
- the target is at zero, or has no eligible node either: nothing contradicts, the cluster may have none at the moment (A12)
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import templates
from harness.controller.core.canonical import SCALE_TO_ZERO, same
from harness.controller.core.decision import JSON, Plural, Write
from harness.controller.core.readiness import Readiness
from harness.controller.core.settings import FULL
from harness.controller.core.snapshots import daemonset_snapshot, observed
from harness.controller.core.targets import workload
from harness.controller.core.targets.base import Apart

if TYPE_CHECKING:
    from harness.controller.core.snapshots import Snapshot
    from harness.controller.core.targets.base import Pair
    from harness.controller.core.templates import Difference

_PRIVATE: Final = "deprecated.daemonset.template.generation"
_ROLLING: Final = "RollingUpdate"
_MARKED: Final = "true"
_PLACEMENT: Final = ("tolerations", "nodeName", "hostNetwork")
"""What of a pod spec decides, beside node selector and node affinity, which nodes are eligible."""


class DaemonSetTarget(Apart):
    """`apps/v1` DaemonSet."""

    kind = "DaemonSet"
    plural: Plural = "daemonsets"
    pods = True
    scales = True
    copies = True

    def problem(self, target: JSON) -> str:
        """With OnDelete nothing would roll by itself, neither here nor in the primary (spec objects 5)."""
        how = (target["spec"].get("updateStrategy") or {}).get("type")
        if how in (None, "", _ROLLING):
            return ""
        name = target["metadata"]["name"]
        return (
            f"DaemonSet {name!r}: spec.updateStrategy.type is {how!r}; allowed: {_ROLLING}, or none"
        )

    def snapshot(self, target: JSON) -> Snapshot:
        """Return hash of the template without the marker, and generation as fence."""
        return daemonset_snapshot(target)

    def rolled_out(self, obj: JSON, percent: int) -> Readiness:
        """Judge by the DaemonSet's own counters; none desired counts as rolled out (callers that need pods look themselves)."""
        name, status = obj["metadata"]["name"], obj.get("status") or {}
        if not _observed(obj):
            return Readiness(f"{name}: the last change has not been taken up yet")
        desired, updated, available = (
            int(status.get(key) or 0)
            for key in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        )
        if updated < desired:
            return Readiness(f"{name}: {updated} of {desired} pods are updated")
        if available < desired * percent // FULL:
            unavailable = f"{name}: {available} of {desired} pods are available"
            return Readiness(unavailable + (f", {percent} % needed" if percent != FULL else ""))
        return Readiness()

    def expected(self, obj: JSON) -> int:
        """Return the number of eligible nodes, as its controller counted them."""
        return int((obj.get("status") or {}).get("desiredNumberScheduled") or 0)

    def canary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the target is rolled out; at zero, or without an eligible node, there is nothing to analyse."""
        if marked(pair.target):
            return _at_zero(pair.target)
        seen = self.rolled_out(pair.target, percent)
        return _nowhere(pair.target) if seen.ready and _barren(pair.target) else seen

    def primary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the primary is rolled out; without pods only when the target has none either (see above)."""
        primary, target = workload.primary_of(pair), pair.target
        if marked(primary):
            return _at_zero(primary)
        seen = self.rolled_out(primary, percent)
        runs = not marked(target) and _observed(target) and not _barren(target)
        return _nowhere(primary) if seen.ready and _barren(primary) and runs else seen

    def idle(self, pair: Pair) -> bool:
        """Whether the target has the marker."""
        return marked(pair.target)

    def empty(self, pair: Pair) -> bool:
        """Whether no node is eligible for either.

        For a target at zero nobody has counted: it has none when the primary has none with the very same placement. A target that
        asks for other nodes than the primary may be the way out, and gets its run.
        """
        primary = pair.primary
        if primary is None or marked(primary) or not _barren(primary):
            return False
        if marked(pair.target):
            return same(_placement(pair.target), _placement(primary))
        return _barren(pair.target)

    def to_zero(self, pair: Pair) -> tuple[Write, ...]:
        """Add the marker."""
        return () if marked(pair.target) else (_mark(pair.target, _MARKED),)

    def to_run(self, pair: Pair) -> tuple[Write, ...]:
        """Remove the marker."""
        return (_mark(pair.target, None),) if marked(pair.target) else ()

    def exists(self, pair: Pair) -> bool:
        """Whether the primary was read."""
        return pair.primary is not None

    def create(self, pair: Pair) -> tuple[Write, ...]:
        """Copy the target without the marker (O7)."""
        return (workload.create(pair, "daemonsets", _spec(pair), _PRIVATE),)

    def keep(self, pair: Pair) -> tuple[Write, ...]:
        """Remove the marker from a primary that another controller copied it to (O7): it would never get a pod."""
        primary = pair.primary
        return (_mark(primary, None),) if primary is not None and marked(primary) else ()

    def promote(self, pair: Pair) -> tuple[Write, ...]:
        """Replace the primary's spec, without the marker."""
        return workload.replace(pair, "daemonsets", _spec(pair), _PRIVATE)

    def revision_of(self, pair: Pair) -> str:
        """Return the annotation of the primary's template."""
        return workload.revision_of(pair.primary)

    def holds(self, pair: Pair) -> bool:
        """Whether the primary's template is exactly what the target's makes."""
        return workload.holds(pair, unmarked(pair.target["spec"]["template"]))

    def differences(self, pair: Pair) -> tuple[Difference, ...]:
        """Compare the templates with the primary's rewriting reversed; the marker counts on neither side, `keep` sees to it."""
        target, primary = (
            {**obj, "spec": {**obj["spec"], "template": unmarked(obj["spec"]["template"])}}
            for obj in (pair.target, workload.primary_of(pair))
        )
        return templates.differences(pair.names, target, primary)

    def revert(self, pair: Pair) -> tuple[Write, ...]:
        """Remove the marker (A8)."""
        return self.to_run(pair)


def marked(obj: JSON) -> bool:
    """Whether a DaemonSet is at zero by our marker; its value does not matter, no node has the key."""
    selector = (obj["spec"]["template"].get("spec") or {}).get("nodeSelector") or {}
    return selector.get(SCALE_TO_ZERO) is not None


def unmarked(template: JSON) -> JSON:
    """Return a pod template without the marker; a nodeSelector that holds nothing is left out, which says the same (C21)."""
    spec = template.get("spec") or {}
    if "nodeSelector" not in spec:
        return template
    selector = {k: v for k, v in (spec["nodeSelector"] or {}).items() if k != SCALE_TO_ZERO}
    rest = {key: value for key, value in spec.items() if key != "nodeSelector"}
    kept = any(value is not None for value in selector.values())
    return {**template, "spec": {**rest, "nodeSelector": selector} if kept else rest}


def remarked(template: JSON) -> JSON:
    """Return a pod template with the marker, which keeps it at zero."""
    spec = template.get("spec") or {}
    selector = {**(spec.get("nodeSelector") or {}), SCALE_TO_ZERO: _MARKED}
    return {**template, "spec": {**spec, "nodeSelector": selector}}


def left_behind(obj: JSON) -> int:
    """Return on how many nodes a DaemonSet at zero still has a pod (C21: some Kubernetes versions leave them with maxSurge)."""
    if not marked(obj) or not _observed(obj):
        return 0
    status = obj.get("status") or {}
    keys = ("desiredNumberScheduled", "numberMisscheduled")
    return sum(int(status.get(key) or 0) for key in keys)


def _spec(pair: Pair) -> JSON:
    source = pair.target["spec"]
    spec: JSON = {key: copy.deepcopy(value) for key, value in source.items() if key != "template"}
    spec["template"] = workload.template(pair, unmarked(source["template"]), pair.revision)
    return spec


def _mark(obj: JSON, value: str | None) -> Write:
    meta = obj["metadata"]
    body = {"spec": {"template": {"spec": {"nodeSelector": {SCALE_TO_ZERO: value}}}}}
    return Write("patch", "daemonsets", meta["name"], body, meta["resourceVersion"])


def _observed(obj: JSON) -> bool:
    """Whether its controller has counted for what is in force; an object that nobody has looked at yet has no status at all."""
    return bool((obj.get("status") or {}).get("observedGeneration")) and observed(obj)


def _barren(obj: JSON) -> bool:
    """Whether its controller found no eligible node."""
    return _observed(obj) and not int((obj.get("status") or {}).get("desiredNumberScheduled") or 0)


def _placement(obj: JSON) -> list[Any]:
    spec = unmarked(obj["spec"]["template"])["spec"]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    return [spec.get("nodeSelector"), affinity, *(spec.get(key) for key in _PLACEMENT)]


def _at_zero(obj: JSON) -> Readiness:
    return Readiness(f"{obj['metadata']['name']}: scaled to zero")


def _nowhere(obj: JSON) -> Readiness:
    return Readiness(f"{obj['metadata']['name']}: no node is eligible for its pods")
