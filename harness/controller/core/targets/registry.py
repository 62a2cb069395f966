"""Which kind of target a Canary names. The group counts, not the kind alone: two kinds are called Service (spec canary-api 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.targets.daemonset import DaemonSetTarget
from harness.controller.core.targets.deployment import DeploymentTarget
from harness.controller.core.targets.knative import KnativeTarget
from harness.controller.core.targets.parked import ADOPT, FIELD, ParkedTarget
from harness.controller.core.targets.service import ServiceTarget

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.targets.base import Target

KNATIVE: Final = "serving.knative.dev"
KINDS: Final = (
    "Deployment (apps/v1), DaemonSet (apps/v1), Service (v1), Service (serving.knative.dev/v1)"
)
"""The allowed values of kind and apiVersion, for messages."""

_WORKLOADS: Final = frozenset({"", "apps", "extensions"})
_CORE: Final = frozenset({"", "core"})
"""`core/v1` is no apiVersion, but stands in many manifests."""
_DEPLOYMENT, _PARKED, _DAEMONSET = DeploymentTarget(), ParkedTarget(), DaemonSetTarget()
_SERVICE, _KNATIVE = ServiceTarget(), KnativeTarget()


def target_for(canary: JSON) -> Target | None:
    """Return the kind of target that `spec.targetRef` names; None for one that is not handled."""
    reference: JSON = canary["spec"].get("targetRef") or {}
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    match reference.get("kind"):
        case "Deployment" if group in _WORKLOADS:
            return _PARKED if _parks(canary) else _DEPLOYMENT
        case "DaemonSet" if group in _WORKLOADS:
            return _DAEMONSET
        case "Service" if group == KNATIVE:
            return _KNATIVE
        case "Service" if group in _CORE:
            return _SERVICE
    return None


def _parks(canary: JSON) -> bool:
    """Whether the primary is a parked ReplicaSet: what is asked for at first sight, and from then on what the status says.

    A field that was changed since is refused (`support.py`); what stands is still what is looked at, and given back in the end.
    """
    status = canary.get("status") or {}
    asked = (canary["spec"].get("analysis") or {}).get("restore") == ADOPT
    return FIELD in status or (asked and not status.get("lastPromotedSpec"))
