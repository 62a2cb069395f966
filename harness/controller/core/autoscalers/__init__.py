"""Autoscalers of a target, `spec.autoscalerRef`: A copy of each for the primary, `A-primary` (spec objects 8, O11-O14).

`base.py` says what every kind does, `hpa.py` and `scaledobject.py` what is special about each. Another kind is one more file, and one
more line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.autoscalers import validation
from harness.controller.core.autoscalers.base import Scaler, reference
from harness.controller.core.autoscalers.hpa import HorizontalPodAutoscaler
from harness.controller.core.autoscalers.scaledobject import ScaledObject
from harness.controller.core.names import PRIMARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON, Objects, Plural

KINDS: Final[Mapping[str, type[Scaler]]] = {
    cls.kind: cls for cls in (HorizontalPodAutoscaler, ScaledObject)
}


def needs(canary: JSON) -> Plural | None:
    """Return the plural of the kind that a Canary's autoscaler has; None when it refers to none, or to an unknown kind."""
    cls = KINDS.get(str(reference(canary).get("kind") or ""))
    return cls.plural if cls else None


def problem(canary: JSON) -> str:
    """Return why `spec.autoscalerRef` cannot be served, naming field and allowed values; empty when it can.

    Reads nothing but the Canary. What can only be said of the autoscaler itself is its `Scaler.problem`.
    """
    return validation.problem(canary, KINDS)


def of(canary: JSON, objects: Objects) -> Scaler | None:
    """Return the Canary's autoscaler, with its copy, as read in this pass; None when it refers to none, or to an unknown kind."""
    given = reference(canary)
    cls = KINDS.get(str(given.get("kind") or ""))
    if cls is None:
        return None
    held = objects.get(cls.plural) or {}
    name = str(given.get("name") or "")
    return cls(canary, held.get(name), held.get(name + PRIMARY_SUFFIX))


__all__ = ["KINDS", "Scaler", "needs", "of", "problem"]
