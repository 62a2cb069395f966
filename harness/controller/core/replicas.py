"""How many pods the target and the primary get, and whose number that is (spec state-machine 11; A10, A11, A12).

The target's spec.replicas belongs to whoever set it last. The controller sets it too (to zero, and up again for a run), so
managedFields, where the API server notes who wrote which field, tell a user's wish from our own bookkeeping.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from harness.controller.core import managed
from harness.controller.core.decision import Write
from harness.controller.core.names import MANAGER
from harness.controller.core.readiness import wanted

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

_CONTROLLERS: Final = frozenset({MANAGER, "flagger"})
_APPLIER: Final = "kubectl-client-side-apply"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def writers(deployment: JSON) -> frozenset[str] | None:
    """Return the field managers that hold spec.replicas; None when the object does not say."""
    return managed.managers(deployment, managed.REPLICAS)


def users_choice(deployment: JSON) -> bool:
    """Whether a user chose spec.replicas, rather than a controller or the API's default.

    `kubectl apply` of a manifest that has lost the field holds it as well: it removed the number, and the API server put 1 there
    (case C13). Such a manifest is in an annotation. Where nothing tells, a default looks like a choice.
    """
    who = writers(deployment)
    if who is None:
        return True
    if _APPLIER in who and _applied_without(deployment):
        who -= {_APPLIER}
    return bool(who - _CONTROLLERS)


def shrinks_to_one(target: JSON, primary: JSON) -> bool:
    """Whether a promotion would take a larger primary to one replica: what a user may mean, or have by losing the field (case C13)."""
    return at_promotion(target, primary) == 1 < wanted(primary) and wanted(target) == 1


def _applied_without(deployment: JSON) -> bool:
    text = (deployment["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        manifest = json.loads(text or "null")
    except ValueError:
        return False
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    return isinstance(spec, dict) and spec.get("replicas") is None


def at_bootstrap(target: JSON) -> int:
    """Return the primary's replicas at creation: the target's.

    A zero that a user chose stays (A12). A zero that a controller left behind when its Canary was deleted is nobody's wish; it becomes
    one.
    """
    replicas = wanted(target)
    return replicas or (0 if users_choice(target) else 1)


def at_promotion(target: JSON, primary: JSON) -> int:
    """Return the primary's replicas at promotion: a user's number for the target, else what it has (A11).

    A primary at zero gets the target's number, whoever chose it: the target is about to go.
    """
    replicas = wanted(target)
    chosen = replicas if replicas > 0 and users_choice(target) else wanted(primary)
    return chosen or replicas


def scale(deployment: JSON, replicas: int) -> tuple[Write, ...]:
    """Return the write that gives a Deployment that many replicas; nothing when it has them."""
    if wanted(deployment) == replicas:
        return ()
    meta = deployment["metadata"]
    body = {"spec": {"replicas": replicas}}
    return (Write("patch", "deployments", meta["name"], body, meta["resourceVersion"]),)
