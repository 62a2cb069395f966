"""Canaries under an API group of the run's own, where another controller would act on those of Flagger's.

Two controllers that drive one Canary undo each other's work. One of them reads `canaries.flagger.app`, whatever is in them, so the other's
must be of a type that nobody else knows: the same schema under another group, in a CRD that comes and goes with the run.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness.kube.resource import ALERTPROVIDER, CANARY, CRD, METRICTEMPLATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

PUBLIC: Final = CANARY.group
"""The group that Flagger reads."""
DOMAIN: Final = "rollout-drill.dev"
"""What groups of runs end with, so that whoever finds one knows whose it is."""
_KINDS: Final = frozenset(one.kind for one in (CANARY, METRICTEMPLATE, ALERTPROVIDER))


def group_of(run: str) -> str:
    """Return the API group of a run, a DNS subdomain that no other run has."""
    return f"{run}.{DOMAIN}"


def is_private(group: str) -> bool:
    """Return whether an API group is that of a run."""
    return group.endswith(f".{DOMAIN}")


def moved(obj: JSON, group: str) -> JSON:
    """Return an object as it is where Canaries, and what they refer to, are of `group`; the very same one where that changes nothing.

    That is their `apiVersion`, the rules about them in a Role, and the CRDs of these types. An empty group is Flagger's.
    """
    if not group:
        return obj
    api_version = str(obj.get("apiVersion", ""))
    if api_version.startswith(f"{PUBLIC}/") and obj.get("kind") in _KINDS:
        return {**obj, "apiVersion": f"{group}/{api_version.partition('/')[2]}"}
    if obj.get("kind") == CRD.kind and (obj.get("spec") or {}).get("group") == PUBLIC:
        return _crd(obj, group)
    if obj.get("kind") in {"Role", "ClusterRole"}:
        return {**obj, "rules": [_rule(rule, group) for rule in obj.get("rules") or ()]}
    return obj


def moved_resource(resource: Resource, group: str) -> Resource:
    """Return where a type is served; an empty group is Flagger's."""
    return replace(resource, group=group) if group and resource.group == PUBLIC else resource


def in_group(objects: Sequence[JSON], group: str) -> list[JSON]:
    """Return several objects as `moved` has them."""
    return [moved(obj, group) for obj in objects]


def _crd(crd: JSON, group: str) -> JSON:
    made = copy.deepcopy(crd)
    made["spec"]["group"] = group
    made["metadata"]["name"] = f"{made['spec']['names']['plural']}.{group}"
    # Its short names would be those of Flagger's as well, and `kubectl get cd` of others would find ours.
    for key in ("shortNames", "categories"):
        made["spec"]["names"].pop(key, None)
    return made


def _rule(rule: JSON, group: str) -> dict[str, Any]:
    groups = rule.get("apiGroups")
    if not groups or PUBLIC not in groups:
        return dict(rule)
    return {**rule, "apiGroups": [group if one == PUBLIC else one for one in groups]}
