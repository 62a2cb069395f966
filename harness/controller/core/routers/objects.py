"""The object that holds a route: made, patched, taken over from somebody, given back.

A route that exists already and that nobody controls is taken over, as a Service is (spec objects 7): it keeps its labels, annotations
and fields that are not ours, gets no owner reference and so outlives the Canary. What it said before is kept in an annotation, unless
`kubectl apply` has left its own, and is put back when a Canary with revertOnDeletion goes. A route that something else controls is left
alone: two controllers would undo each other for ever.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.decision import JSON, Plural, Write
from harness.controller.core.ownership import (
    controller_of,
    foreign,
    owner_reference,
    without_toolkit,
)
from harness.controller.core.routers.overlay import Shape, carry, carry_rules, difference, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core.routers.base import Wish

FLUX_OFF: Final = {
    "kustomize.toolkit.fluxcd.io/reconcile": "disabled",
    "helm.toolkit.fluxcd.io/driftDetection": "disabled",
}
ORIGINAL: Final = "flagger.kubernetes.io/original-configuration"
"""The spec that a route had before it was taken over, as JSON; the key that Flagger uses for Istio, so each gives back the other's."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def _as_it_is(spec: JSON) -> JSON:
    return spec


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that holds routes, or goes with them."""

    plural: Plural
    api_version: str
    kind: str
    shape: Shape
    """The fields of its spec that are ours."""
    rules: str = ""
    """The field of its spec with the rules; empty for none."""
    matches: str = ""
    """The field of a rule with its matches."""
    filled: Callable[[JSON], JSON] = _as_it_is
    """Returns a spec (a copy) with the defaults that the server fills in, for comparing."""
    original: bool = True
    """Whether the spec that is found is kept to be given back."""
    metadata: bool = True
    """Whether it gets labels and annotations of `spec.service.apex`."""


def held_of(wish: Wish, kind: Kind, name: str) -> JSON | None:
    """Return the object as read in this pass."""
    return (wish.objects.get(kind.plural) or {}).get(name)


def blocked(wish: Wish, kind: Kind, name: str) -> str:
    """Return why the object must be left alone; empty when it need not."""
    held = held_of(wish, kind, name)
    owner = foreign(held, wish.canary) if held else ""
    if not owner:
        return ""
    return f"{kind.kind} {name!r} is controlled by {owner}, so it is left alone; delete it or set spec.service.name"


def reconcile(wish: Wish, kind: Kind, name: str, spec: JSON) -> tuple[Write, ...]:
    """Return the write that makes the object's spec what it should be; nothing when it is, or when it is somebody else's."""
    held = held_of(wish, kind, name)
    if held is None:
        return (Write("create", kind.plural, name, _new(wish, kind, name, spec)),)
    if foreign(held, wish.canary):
        return ()
    patch: JSON = {}
    change = spec_patch(kind, held, spec, ours=_is_ours(wish, held))
    if change:
        patch["spec"] = change
    meta = _metadata_patch(wish, held) if kind.metadata else {}
    if change and kind.original and _is_found(wish, held):
        kept = json.dumps(held.get("spec") or {}, sort_keys=True, separators=(",", ":"))
        meta.setdefault("annotations", {})[ORIGINAL] = kept
    if meta:
        patch["metadata"] = meta
    if not patch:
        return ()
    return (Write("patch", kind.plural, name, patch, held["metadata"]["resourceVersion"]),)


def spec_patch(kind: Kind, held: JSON, wanted: JSON, *, ours: bool) -> JSON:
    """Return the merge patch to an object's spec; empty when all that is ours is as wanted."""
    spec: JSON = held.get("spec") or {}
    have, want = project(kind.filled(spec), kind.shape), project(kind.filled(wanted), kind.shape)
    patch: JSON = {}
    for field, shape in kind.shape.items():
        # Compared with defaults filled in, or every pass would write what the server fills in again.
        if have.get(field) == want.get(field):
            continue
        if field not in wanted:
            patch[field] = None
        elif field == kind.rules and shape is not None:
            rules = kind.filled(spec).get(field) or []
            patch[field] = carry_rules(rules, wanted[field], shape, kind.matches, ours=ours)
        else:
            patch[field] = difference(spec.get(field), carry(spec.get(field), wanted[field], shape))
    return patch


def restore(wish: Wish, kind: Kind, name: str, otherwise: JSON) -> tuple[Write, ...]:
    """Return the write that gives a taken-over object its own spec back; `otherwise` is for one that has none of its own."""
    held = held_of(wish, kind, name)
    if held is None or foreign(held, wish.canary):
        return ()
    owned = controller_of(held) is not None
    if not owned and not _names_backends(wish, held):
        return ()  # given back already, or never taken
    before = None if owned else _original(held)
    patch: JSON = {}
    if before is None:
        change = spec_patch(kind, held, otherwise, ours=True)
    else:
        have = project(kind.filled(held.get("spec") or {}), kind.shape)
        same = have == project(kind.filled(before), kind.shape)
        change = {} if same else difference(held.get("spec") or {}, before)
    if change:
        patch["spec"] = change
    freed = {} if owned else _freed(wish, held)
    if freed:
        patch["metadata"] = {"annotations": freed}
    if not patch:
        return ()
    return (Write("patch", kind.plural, name, patch, held["metadata"]["resourceVersion"]),)


def _new(wish: Wish, kind: Kind, name: str, spec: JSON) -> JSON:
    meta: JSON = {
        "name": name,
        "namespace": wish.names.namespace,
        "ownerReferences": [owner_reference(wish.canary)],
    }
    if kind.metadata:
        labels, annotations = _metadata(wish)
        meta |= {"labels": labels, "annotations": annotations}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def _metadata(wish: Wish) -> tuple[JSON, JSON]:
    apex: JSON = (wish.canary["spec"].get("service") or {}).get("apex") or {}
    # Flux would put the route back as it is in the repository, weights and all.
    return without_toolkit(apex.get("labels")), (apex.get("annotations") or {}) | FLUX_OFF


def _metadata_patch(wish: Wish, held: JSON) -> JSON:
    """Add and mend what is asked for; other labels and annotations belong to whoever set them."""
    free: JSON = (wish.canary["spec"].get("service") or {}).get("unmanagedMetadata") or {}
    patch: JSON = {}
    for field, wanted in zip(("labels", "annotations"), _metadata(wish), strict=True):
        have: JSON = held["metadata"].get(field) or {}
        change = {
            key: value
            for key, value in wanted.items()
            if have.get(key) != value and key not in (free.get(field) or ())
        }
        if change:
            patch[field] = change
    return patch


def _is_ours(wish: Wish, held: JSON) -> bool:
    """Whether we made it; `foreign` was asked before, so a controller is this Canary."""
    return controller_of(held) is not None or _names_backends(wish, held)


def _is_found(wish: Wish, held: JSON) -> bool:
    """Whether it is somebody's and just now taken over, with nothing that says what it was."""
    noted: JSON = held["metadata"].get("annotations") or {}
    return not _is_ours(wish, held) and ORIGINAL not in noted and LAST_APPLIED not in noted


def _names_backends(wish: Wish, held: JSON) -> bool:
    """Whether it sends traffic to our Services already, so that it was taken over before."""
    told = json.dumps(held.get("spec") or {})
    return f'"{wish.names.primary_service}"' in told


def _original(held: JSON) -> JSON | None:
    noted: JSON = held["metadata"].get("annotations") or {}
    applied = _parsed(noted.get(LAST_APPLIED)).get("spec")
    before = applied or _parsed(noted.get(ORIGINAL))
    return before if isinstance(before, dict) and before else None


def _freed(wish: Wish, held: JSON) -> JSON:
    """Our marks on an object that is given back. Flux may have it again, unless somebody else had told it not to."""
    noted: JSON = held["metadata"].get("annotations") or {}
    applied = _parsed(noted.get(LAST_APPLIED)).get("metadata") or {}
    apex = (wish.canary["spec"].get("service") or {}).get("apex") or {}
    told = (applied.get("annotations") or {}) | (apex.get("annotations") or {})
    return {key: None for key in (*FLUX_OFF, ORIGINAL) if key in noted and key not in told}


def _parsed(text: object) -> JSON:
    if not isinstance(text, str):
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
