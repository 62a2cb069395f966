"""The primary's copies of ConfigMaps and Secrets (spec objects 6; D8).

A copy holds data, binaryData and the Secret's type, no annotations, and no labels but those that whoever runs the controller asks for by
prefix: others may read them (a sync, a reload), who should not take the copy for the original.

**A copy is never immutable**, even when its original is: the original is replaced under its name (deleted and created) when its content
changes, and the copy must be able to follow. One that is immutable all the same, or that has another Secret type, which never changes
either, is deleted and created again. For that moment pods that start wait for it, as for any volume; running ones keep what they have.

**Shared copies.** Canaries whose targets read the same object share its copy, and each is one of its owners, so that the garbage collector takes
it with the last of them. The one that wrote last is the controlling owner. One that finds the content right and itself among the
owners writes nothing, so two of them never take turns. That a promotion of one renews the content for the others too is the price
of names that other tools know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import same
from harness.controller.core.configs.checksums import OPT_OUT, PLURALS, Configs, problem
from harness.controller.core.decision import JSON, Objects, Write
from harness.controller.core.names import KIND, PRIMARY_SUFFIX, Names, api_version
from harness.controller.core.ownership import controller_of, included, owner_reference
from harness.controller.core.patches import difference
from harness.controller.core.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from harness.controller.core.configs.places import Reference

_CONTENT: Final = ("data", "binaryData", "type")


@dataclass(frozen=True, slots=True)
class Copies:
    """What is to be written, or why nothing can be."""

    writes: tuple[Write, ...] = ()
    """Empty when all copies are right, or when there is a problem: half of them would help nobody."""
    problem: str = ""
    """One sentence for people."""


def copies(
    canary: JSON, names: Names, configs: Configs, objects: Objects, policy: Policy = DEFAULT
) -> Copies:
    """Return the writes that make the copies hold what the originals hold now.

    `configs` must come from a look at the same `objects`. An object with a copy's name that belongs to no Canary is never written to.
    If it holds what the copy would, it serves as one; else it is the problem.
    """
    text = problem(configs)
    if text:
        return Copies(problem=text)
    writes: list[Write] = []
    for reference in configs.references:
        if reference.key not in configs.tracked:
            continue
        held = objects[PLURALS[reference.kind]]
        existing = held.get(reference.name + PRIMARY_SUFFIX)
        wanted = _copy(canary, names, reference, held[reference.name], policy)
        equal = existing is not None and _equal(existing, wanted)
        if existing is not None and not _ours(canary, existing):
            if equal:
                continue
            return Copies(problem=_foreign(reference, existing))
        writes += _writes(canary, reference, wanted, existing, equal=equal)
    return Copies(tuple(writes))


def _copy(canary: JSON, names: Names, reference: Reference, source: JSON, policy: Policy) -> JSON:
    labels = included(source["metadata"].get("labels"), policy)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap" if reference.kind == "configmap" else "Secret",
        "metadata": {
            "name": reference.name + PRIMARY_SUFFIX,
            "namespace": names.namespace,
            **({"labels": labels} if labels else {}),
            "ownerReferences": [owner_reference(canary)],
        },
        **{key: source[key] for key in _CONTENT if source.get(key)},
    }


def _writes(
    canary: JSON, reference: Reference, wanted: JSON, existing: JSON | None, *, equal: bool
) -> list[Write]:
    plural, name = PLURALS[reference.kind], wanted["metadata"]["name"]
    if existing is None:
        return [Write("create", plural, name, wanted)]
    meta = existing["metadata"]
    held = meta.get("labels") or {}
    asked = wanted["metadata"].get("labels") or {}
    labels = {key: value for key, value in asked.items() if held.get(key) != value}
    if equal and not labels and _settled(canary, existing):
        return []
    owners = _owners(canary, existing)
    version = str(meta["resourceVersion"])
    if not equal and (existing.get("immutable") or existing.get("type") != wanted.get("type")):
        wanted["metadata"] |= {"ownerReferences": owners}
        if held:
            wanted["metadata"]["labels"] = held | asked
        return [Write("delete", plural, name, {}, version), Write("create", plural, name, wanted)]
    patch = difference(_content(existing), _content(wanted))
    change: JSON = {"labels": labels} if labels else {}
    if not same(owners, meta.get("ownerReferences")):
        change["ownerReferences"] = owners
    if change:
        patch["metadata"] = change
    return [Write("patch", plural, name, patch, version)] if patch else []


def _content(obj: JSON) -> JSON:
    return {key: obj[key] for key in _CONTENT if obj.get(key)}


def _equal(existing: JSON, wanted: JSON) -> bool:
    return same(_content(existing), _content(wanted))


def _alike(canary: JSON, owner: JSON) -> bool:
    """Whether an owner is a Canary of the same API group: those of another group are another controller's."""
    group = api_version(canary).partition("/")[0]
    return owner.get("kind") == KIND and str(owner.get("apiVersion")).startswith(f"{group}/")


def _ours(canary: JSON, existing: JSON) -> bool:
    """Whether Canaries own the copy, and nobody else controls it."""
    controller = controller_of(existing)
    if controller is not None and not _alike(canary, controller):
        return False
    owners = existing["metadata"].get("ownerReferences") or []
    return any(_alike(canary, owner) for owner in owners)


def _settled(canary: JSON, existing: JSON) -> bool:
    """Whether this Canary is an owner, and some Canary the controlling one."""
    owners = existing["metadata"].get("ownerReferences") or []
    mine = any(owner.get("uid") == canary["metadata"]["uid"] for owner in owners)
    return mine and controller_of(existing) is not None


def _owners(canary: JSON, existing: JSON) -> list[JSON]:
    """This Canary in control, and all others beside it, except the Canary of the same name that it has replaced."""
    mine = owner_reference(canary)
    others = [
        owner | {"controller": False} if owner.get("controller") else owner
        for owner in existing["metadata"].get("ownerReferences") or []
        if owner.get("uid") != mine["uid"]
        and not (_alike(canary, owner) and owner["name"] == mine["name"])
    ]
    return [mine, *others]


def _foreign(reference: Reference, existing: JSON) -> str:
    controller = controller_of(existing)
    whose = (
        f"belongs to {controller.get('kind')} {controller.get('name')!r}"
        if controller
        else "belongs to no Canary"
    )
    kind = str(reference).partition(" ")[0]
    return (
        f"{kind} {reference.name + PRIMARY_SUFFIX!r} {whose} and holds something else than {reference.name!r}, of"
        " which the primary needs a copy: it is not overwritten. Remove or rename it, or annotate"
        f" {reference.name!r} with {OPT_OUT}: disabled to have no copy"
    )
