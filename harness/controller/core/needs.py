"""Which kinds of objects a Canary concerns, and under which names: so nothing is watched that nobody needs, and every event finds its Canary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core import autoscalers
from harness.controller.core.configs import references
from harness.controller.core.configs.checksums import PLURALS
from harness.controller.core.names import KIND, PRIMARY_SUFFIX, names_of
from harness.controller.core.ownership import controller_of
from harness.controller.core.routers.registry import router_for
from harness.controller.core.targets.parked import PARKED_BY, SETS
from harness.controller.core.targets.registry import target_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.decision import JSON
    from harness.controller.core.targets.base import Target

Key = tuple[str, str]
"""Plural and name."""
REVISIONS: Final = "krevisions"
_PARKED: Final = "parked/"
"""Before the name of a Canary: no object is called so."""
CONFIGS: Final = ("configmaps", "secrets")
SERVICE_LABEL: Final = "serving.knative.dev/service"
"""Label of a Knative revision: the Service that it belongs to."""


def kinds(canary: JSON, *, configs: bool = True) -> tuple[str, ...]:
    """Return the plurals that a Canary needs; none for one that is refused anyway. `configs`: whether configs are tracked."""
    target, router = target_for(canary), router_for(canary)
    if target is None or router is None:
        return ()
    found = ["services", target.plural, *router.needs]
    if target.plural == "kservices":
        found.append(REVISIONS)
    if target.pods and not target.copies:
        found.append(SETS)
    if scaler := autoscalers.needs(canary):
        found.append(scaler)
    if configs and target.pods:
        found += CONFIGS
    return tuple(dict.fromkeys(found))


def optional(plural: str) -> bool:
    """Whether a Canary can do without a kind that cannot be watched: then its configs are shared by target and primary."""
    return plural in CONFIGS


def keys(canary: JSON, target: JSON | None) -> Iterator[Key]:
    """Yield what concerns a Canary, by plural and name."""
    names, kind = names_of(canary, None), target_for(canary)
    plural = kind.plural if kind else "deployments"
    yield plural, names.target
    yield plural, names.primary
    for name in (names.apex, names.primary_service, names.canary_service):
        yield "services", name
    if kind is not None:
        yield from _further(canary, target, kind)


def _further(canary: JSON, target: JSON | None, kind: Target) -> Iterator[Key]:
    names, router = names_of(canary, None), router_for(canary)
    if kind.plural == "services":
        yield "services", names.target + "-canary"
    if kind.plural == "kservices":
        yield REVISIONS, names.target
    if kind.pods and not kind.copies:
        yield SETS, names.target
        yield SETS, _PARKED + names.canary
    for plural in router.needs if router else ():
        for name in (names.apex, names.primary_service, names.canary_service):
            yield plural, name
    if scaler := autoscalers.needs(canary):
        name = str(canary["spec"]["autoscalerRef"].get("name") or "")
        yield scaler, name
        yield scaler, name + PRIMARY_SUFFIX
    if target is not None and kind.pods:
        for reference in references(target["spec"]["template"]):
            yield PLURALS[reference.kind], reference.name
            yield PLURALS[reference.kind], reference.name + PRIMARY_SUFFIX


def subject(plural: str, obj: JSON) -> str:
    """Return the name under which an object concerns Canaries: its own, but of a Knative revision that of its Service.

    A ReplicaSet concerns whom it belongs to: a target, or the Canary that parked it.
    """
    meta = obj["metadata"]
    if plural == SETS:
        owner = controller_of(obj)
        if owner is not None and owner.get("kind") != KIND:
            return str(owner.get("name"))
        by = owner.get("name") if owner else (meta.get("annotations") or {}).get(PARKED_BY)
        return f"{_PARKED}{by}" if by else ""
    if plural == REVISIONS:
        return str((meta.get("labels") or {}).get(SERVICE_LABEL) or "")
    return str(meta["name"])
