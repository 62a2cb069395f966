"""Who an object belongs to: the owner references that tie what we make to its Canary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.names import KIND, api_version

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.policy import Policy

TOOLKIT: Final = "toolkit.fluxcd.io"
"""Keys that contain it mark an object as Flux's own; copies must not carry them."""
_EVERY: Final = "*"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def owner_reference(canary: JSON) -> JSON:
    """Return the reference that lets the garbage collector remove an object with its Canary."""
    meta = canary["metadata"]
    return {
        "apiVersion": api_version(canary),
        "kind": KIND,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: JSON) -> JSON | None:
    """Return the controlling owner reference of an object, or None."""
    for reference in obj["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            return dict(reference)
    return None


def foreign(obj: JSON, canary: JSON) -> str:
    """Return `kind/name` of a controller that owns the object and is not this Canary; empty when there is none.

    A Canary of the same name but another UID counts: it was deleted, and the garbage collector is about to follow.
    """
    owner = controller_of(obj)
    if owner is None or owner.get("uid") == canary["metadata"]["uid"]:
        return ""
    return f"{owner.get('kind')}/{owner.get('name')}"


def without_toolkit(labels: JSON | None) -> JSON:
    """Return a copy of labels or annotations without Flux's own."""
    return {key: value for key, value in (labels or {}).items() if TOOLKIT not in key}


def included(values: JSON | None, policy: Policy) -> JSON:
    """Return those labels or annotations of an original that its copy gets too, by prefix.

    Never Flux's own, and never what `kubectl apply` remembers of the original: it would take the copy for it.
    """
    prefixes = tuple("" if one == _EVERY else one for one in policy.include_label_prefix)
    return {
        key: value
        for key, value in without_toolkit(values).items()
        if key != _LAST_APPLIED and key.startswith(prefixes)
    }
