"""How many pods the target and the primary get, and whose number that is (spec state-machine 11; A10, A11, A12).

The target's spec.replicas belongs to whoever set it last. The controller sets it too (to zero, and up again for a run), so
managedFields, where the API server notes who wrote which field, tell a user's wish from our own bookkeeping.
"""

from __future__ import annotations

from typing import Final

from harness.controller.core import managed
from harness.controller.core.decision import JSON, Write
from harness.controller.core.names import MANAGER
from harness.controller.core.readiness import wanted

_CONTROLLERS: Final = frozenset({MANAGER, "flagger"})


def writers(deployment: JSON) -> frozenset[str] | None:
    """Return the field managers that hold spec.replicas; None when the object does not say."""
    return managed.managers(deployment, managed.REPLICAS)


def users_choice(deployment: JSON) -> bool:
    """Whether a user chose spec.replicas, rather than a controller or the API's default."""
    who = writers(deployment)
    return True if who is None else bool(who - _CONTROLLERS)


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
