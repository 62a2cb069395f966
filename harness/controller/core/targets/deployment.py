"""Deployments: the primary is a copy, zero is spec.replicas 0, and whose number of replicas it is decides (A10, A11, A12).

Rolled out or not: `readiness.py`; whose number: `replicas.py`; what is copied: `workload.py`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.controller.core import replicas, templates
from harness.controller.core.readiness import Readiness, rolled_out, wanted
from harness.controller.core.snapshots import deployment_snapshot
from harness.controller.core.targets import workload
from harness.controller.core.targets.base import Apart

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Plural, Write
    from harness.controller.core.snapshots import Snapshot
    from harness.controller.core.targets.base import Pair
    from harness.controller.core.templates import Difference

_PRIVATE: Final = "deployment.kubernetes.io/"


class DeploymentTarget(Apart):
    """`apps/v1` Deployment."""

    kind = "Deployment"
    plural: Plural = "deployments"
    pods = True
    scales = True
    copies = True

    def problem(self, _target: JSON) -> str:
        """Every Deployment can be handled."""
        return ""

    def snapshot(self, target: JSON) -> Snapshot:
        """Return hash of the template, and generation with revision as fence."""
        return deployment_snapshot(target)

    def rolled_out(self, obj: JSON, percent: int) -> Readiness:
        """Judge by counts of pods."""
        return rolled_out(obj, percent)

    def expected(self, obj: JSON) -> int:
        """Return spec.replicas."""
        return wanted(obj)

    def canary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the target is rolled out; at zero it is not."""
        if self.idle(pair):
            return _at_zero(pair.target)
        return rolled_out(pair.target, percent)

    def primary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the primary is rolled out; at zero only when the target is at zero too (P12, A12), or its autoscaler may do that."""
        primary = workload.primary_of(pair)
        if wanted(primary) == 0 and not self.idle(pair) and not pair.rests:
            return _at_zero(primary)
        return rolled_out(primary, percent)

    def idle(self, pair: Pair) -> bool:
        """Whether the target has spec.replicas 0."""
        return wanted(pair.target) == 0

    def empty(self, pair: Pair) -> bool:
        """Whether both have spec.replicas 0, and no autoscaler brings pods when they are needed."""
        primary = pair.primary is None or wanted(pair.primary) == 0
        return self.idle(pair) and primary and not pair.rests

    def to_zero(self, pair: Pair) -> tuple[Write, ...]:
        """Set spec.replicas to 0."""
        return replicas.scale(pair.target, 0)

    def to_run(self, pair: Pair) -> tuple[Write, ...]:
        """Set spec.replicas of a target at zero for a run (spec state-machine 4).

        As many as the primary has; with an autoscaler as few as it allows, since it will see the load by itself. At least one.
        """
        if not self.idle(pair):
            return ()
        peer = 0 if pair.scaled or pair.primary is None else wanted(pair.primary)
        return replicas.scale(pair.target, peer or max(pair.least, 1))

    def exists(self, pair: Pair) -> bool:
        """Whether the primary was read."""
        return pair.primary is not None

    def create(self, pair: Pair) -> tuple[Write, ...]:
        """Copy the target. A zero that a user chose is copied too, one that a controller left behind is not (A12)."""
        spec = _spec(pair)
        spec["replicas"] = replicas.at_bootstrap(pair.target)
        return (workload.create(pair, "deployments", spec, _PRIVATE),)

    def keep(self, _pair: Pair) -> tuple[Write, ...]:
        """Nothing but the primary is needed."""
        return ()

    def promote(self, pair: Pair) -> tuple[Write, ...]:
        """Replace the primary's spec; `paused` stays its own, and under an autoscaler the number of replicas does."""
        primary = workload.primary_of(pair)
        own = ("paused", "replicas") if pair.scaled else ("paused",)
        spec = {key: value for key, value in _spec(pair).items() if key not in own}
        spec |= {key: primary["spec"][key] for key in own if key in primary["spec"]}
        if not pair.scaled:
            spec["replicas"] = replicas.at_promotion(pair.target, primary)
        return workload.replace(pair, "deployments", spec, _PRIVATE)

    def revision_of(self, pair: Pair) -> str:
        """Return the annotation of the primary's template."""
        return workload.revision_of(pair.primary)

    def holds(self, pair: Pair) -> bool:
        """Whether the primary's template is exactly what the target's makes."""
        return workload.holds(pair, pair.target["spec"]["template"])

    def differences(self, pair: Pair) -> tuple[Difference, ...]:
        """Compare the templates with the primary's rewriting reversed."""
        return templates.differences(pair.names, pair.target, workload.primary_of(pair))

    def revert(self, pair: Pair) -> tuple[Write, ...]:
        """Give the target at least as many replicas as the primary has; pods are never taken away (A8).

        Without a primary, a zero that a controller left behind becomes a number again, and one that a user chose stays.
        """
        count = wanted(pair.target)
        if pair.scaled and count:
            return ()  # its autoscaler decides from here on
        if pair.primary is not None:
            count = max(count, wanted(pair.primary))
        elif count == 0 and replicas.at_bootstrap(pair.target):
            count = max(pair.least, 1)
        return replicas.scale(pair.target, count)


def _spec(pair: Pair) -> JSON:
    source = pair.target["spec"]
    spec: JSON = {
        key: copy.deepcopy(value)
        for key, value in source.items()
        if key not in ("paused", "template")
    }
    spec["template"] = workload.template(pair, source["template"], pair.revision)
    return spec


def _at_zero(deployment: JSON) -> Readiness:
    return Readiness(f"{deployment['metadata']['name']}: scaled to zero")
