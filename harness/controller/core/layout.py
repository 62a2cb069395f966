"""Who may have a parked ReplicaSet as primary (`analysis.restore: adopt`), in sentences (spec freeze-and-adopt 5, A6).

The layout is chosen when a Canary is initialised: `status.parked` is written before anything is parked, and from then on tells it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.configs import OPT_OUT, look, references
from harness.controller.core.configs.checksums import PLURALS
from harness.controller.core.targets.parked import ADOPT, FIELD, SETS, parked_by, primary_set

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Objects
    from harness.controller.core.names import Names
    from harness.controller.core.targets.base import Target

_ASKED: Final = f"spec.analysis.restore: {ADOPT!r}"
_ANEW: Final = "delete the Canary with spec.revertOnDeletion: true and create it again"


def problem(canary: JSON, kind: Target) -> str:
    """Return why a Canary cannot have this layout, or cannot leave it, in one sentence; empty for nothing. Reads the Canary alone."""
    spec, parked = canary["spec"], FIELD in (canary.get("status") or {})
    if (spec.get("analysis") or {}).get("restore") != ADOPT:
        text = f"{_ASKED} was chosen when this Canary was initialised, and its primary is a parked ReplicaSet: set it again, or {_ANEW}"
        return text if parked else ""
    if kind.plural != "deployments":
        return f"{_ASKED} is not possible for a target of kind {kind.kind}; allowed kind of spec.targetRef: Deployment"
    if kind.copies:
        return (
            f"{_ASKED} is chosen when a Canary is initialised, and this one has a primary of another kind: set 'revert',"
            f" or {_ANEW}"
        )
    if spec.get("autoscalerRef"):
        return (
            f"spec.autoscalerRef is not possible with {_ASKED}, since the autoscaler's copy would have to follow a ReplicaSet whose"
            " name changes with every promotion; leave one of the two out"
        )
    return ""


def conflict(canary: JSON, names: Names, objects: Objects) -> str:
    """Return why what was read does not allow this layout, in one sentence; empty when it does."""
    deployments, sets = objects.get("deployments") or {}, objects.get(SETS) or {}
    other, target = deployments.get(names.primary), deployments.get(names.target)
    if other is not None and parked_by(canary, other) and primary_set(canary, target, sets) is None:
        return (
            f"{_ASKED} is chosen when a Canary is initialised, and Deployment {names.primary!r} was made already: set 'revert',"
            f" or {_ANEW}"
        )
    return _changeable(target, objects) if target is not None else ""


def _changeable(target: JSON, objects: Objects) -> str:
    """Return a sentence about a tracked config that is not immutable: both versions would share it under one name (A6)."""
    template = target["spec"]["template"]
    tracked = look(template, objects).tracked
    for one in references(template):
        held = (objects.get(PLURALS[one.kind]) or {}).get(one.name) or {}
        if one.key in tracked and not held.get("immutable"):
            return (
                f"Deployment {target['metadata']['name']!r} refers to {one}, which can change, and with {_ASKED} both versions share it:"
                " give each version an object of its own name with immutable: true, or let it go untracked with the annotation"
                f" {OPT_OUT}: disabled, or set 'revert'"
            )
    return ""
