"""What a pass sees of the simulated cluster: which object is the target, and what else concerns the Canary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.controller.core import World

JSON = dict[str, Any]
_PLURALS = {
    ("apps", "Deployment"): "deployments",
    ("apps", "DaemonSet"): "daemonsets",
    ("", "Service"): "services",
    ("serving.knative.dev", "Service"): "kservices",
}


def plural_of(canary: JSON) -> str:
    """The plural of the target's kind."""
    reference = canary["spec"]["targetRef"]
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    return _PLURALS.get((group, reference["kind"]), "deployments")


def backends(route: JSON, *, matched: bool = False) -> dict[str, int]:
    """Weights of an HTTPRoute by Service, of those that are not zero: for everybody, or for those whom a rule of an A/B test picks out.

    Without such a rule nobody is picked out.
    """
    rules = route["spec"]["rules"]
    if matched and len(rules) < 2:
        return {}
    rule = rules[0] if matched else rules[-1]
    shares = {ref["name"]: int(ref.get("weight", 1)) for ref in rule.get("backendRefs") or []}
    return {name: share for name, share in shares.items() if share}


def dump(world: World) -> list[Any]:
    """Everything in a World that a pass could change by mistake."""
    return [world.objects, world.absent]


def rival(canaries: dict[str, JSON]) -> str:
    """The oldest other Canary with the same target that is older than `web`."""
    own = canaries["web"]
    older = [
        (_age(other), name)
        for name, other in canaries.items()
        if other["spec"].get("targetRef") == own["spec"].get("targetRef")
        and _age(other) < _age(own)
    ]
    return min(older)[1] if older else ""


def _age(obj: JSON) -> int:
    return int(obj["metadata"]["uid"].rpartition("-")[2])
