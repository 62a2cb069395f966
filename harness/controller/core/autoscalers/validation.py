"""What of `spec.autoscalerRef` can be judged without the autoscaler (spec canary-api 2, O13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.autoscalers.base import FIELD, Scaler, reference
from harness.controller.core.names import MAX_NAME, PRIMARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON

_SCALED: Final = "Deployment"
_REPLICAS: Final = f"{FIELD}.primaryScalerReplicas"


def problem(canary: JSON, kinds: Mapping[str, type[Scaler]]) -> str:
    """Return why a Canary's autoscaler cannot be served; empty when it can, and when there is none.

    The API version is not judged: the reference names it for people, and many a manifest has an old one.
    """
    given = reference(canary)
    if not given:
        return ""
    kind, name = given.get("kind"), str(given.get("name") or "")
    target = (canary["spec"].get("targetRef") or {}).get("kind")
    if kind not in kinds:
        return f"{FIELD}.kind: {kind!r} is not implemented; allowed: {', '.join(kinds)}"
    if not name:
        return f"{FIELD}.name is missing"
    if target != _SCALED:
        return f"{FIELD}: a target of kind {target} has no replicas to scale; remove it, or target a {_SCALED}"
    longest = MAX_NAME - len(PRIMARY_SUFFIX)
    if len(name) > longest:
        return (
            f"{FIELD}.name has {len(name)} characters; at most {longest} are possible, since"
            f" {PRIMARY_SUFFIX!r} is appended and {MAX_NAME} is the limit"
        )
    return _replicas(given.get("primaryScalerReplicas") or {}, kinds[str(kind)])


def _replicas(given: JSON, cls: type[Scaler]) -> str:
    least, most = given.get("minReplicas"), given.get("maxReplicas")
    floor = 0 if cls.zero else 1
    if least is not None and not _whole(least, floor):
        why = "" if cls.zero else f" for kind {cls.kind}"
        return f"{_REPLICAS}.minReplicas: {least} is not possible; allowed{why}: whole numbers from {floor}"
    if most is not None and not _whole(most, 1):
        return f"{_REPLICAS}.maxReplicas: {most} is not possible; allowed: whole numbers from 1"
    if least is not None and most is not None and least > most:
        return f"{_REPLICAS}: minReplicas {least} is above maxReplicas {most}"
    return ""


def _whole(value: Any, floor: int) -> bool:
    return bool(value == int(value) and value >= floor)
