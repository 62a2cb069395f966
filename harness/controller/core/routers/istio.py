"""Router of provider istio, and of a Canary that names none: a VirtualService and two DestinationRules (spec objects, canary-api 3).

Only objects: Istio writes no status unless told to, so a VirtualService counts as in force when it holds the split. Read and written
is `networking.istio.io/v1beta1`, which every Istio serves; v1 is the same object, but came with 1.22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.ownership import controller_of
from harness.controller.core.routers import affinity, istio_problems, plan
from harness.controller.core.routers.istio_rules import reverted_spec, spec_of
from harness.controller.core.routers.knative import knative_target_problem
from harness.controller.core.routers.objects import Kind, blocked, held_of, reconcile, restore
from harness.controller.core.routers.overlay import project

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Write
    from harness.controller.core.routers.base import Wish
    from harness.controller.core.routers.overlay import Shape

API_VERSION: Final = "networking.istio.io/v1beta1"
_ROUTE: Final[Shape] = {"destination": None, "weight": None, "headers": None}
_HTTP: Final[Shape] = {
    "match": None,
    "route": _ROUTE,
    "rewrite": None,
    "timeout": None,
    "retries": None,
    "corsPolicy": None,
    "headers": None,
    "mirror": None,
    "mirrorPercentage": None,
    # Never set by us, and they cannot stand beside what is: a rule that is taken over loses them.
    "redirect": None,
    "directResponse": None,
    "delegate": None,
    "mirrorPercent": None,
    "mirror_percent": None,
}
_TCP: Final[Shape] = {"match": None, "route": _ROUTE}
_TRAFFIC: Final[Shape] = {
    "http": {field: _HTTP[field] for field in ("match", "route", "mirror", "mirrorPercentage")},
    "tcp": _TCP,
}


def _filled(spec: JSON) -> JSON:
    """Return a copy in which a destination without a weight has the one it means."""
    result = dict(spec)
    for field in ("http", "tcp"):
        result[field] = [
            {**rule, "route": [_weighed(one, len(rule["route"])) for one in rule["route"]]}
            if rule.get("route")
            else rule
            for rule in spec.get(field) or []
        ]
    return result


def _weighed(destination: JSON, number: int) -> JSON:
    return {"weight": plan.FULL if number == 1 else 0} | destination


VIRTUAL_SERVICE: Final = Kind(
    plural="virtualservices",
    api_version=API_VERSION,
    kind="VirtualService",
    shape={"hosts": None, "gateways": None, "http": _HTTP, "tcp": _TCP},
    rules="http",
    matches="match",
    filled=_filled,
)
DESTINATION_RULE: Final = Kind(
    plural="destinationrules",
    api_version=API_VERSION,
    kind="DestinationRule",
    shape={"host": None, "trafficPolicy": None},
    original=False,
    metadata=False,
)


class IstioRouter:
    """Splits by weights of destinations, mirrors by the rule's mirror."""

    name: str = "istio"
    splits: bool = True
    mirrors: bool = True
    needs: tuple[str, ...] = ("virtualservices", "destinationrules")

    def problem(self, canary: JSON) -> str:
        """See Router."""
        wrong = knative_target_problem(canary, self.name)
        return wrong or istio_problems.problem(canary)

    def route(self, wish: Wish) -> tuple[Write, ...]:
        """See Router. The DestinationRules come first, so that no request meets a host without its policy."""
        names = wish.names
        return (
            *_destination_rule(wish, names.canary_service),
            *_destination_rule(wish, names.primary_service),
            *reconcile(wish, VIRTUAL_SERVICE, names.apex, spec_of(wish)),
        )

    def waiting(self, wish: Wish) -> str:
        """See Router."""
        name = wish.names.apex
        held = held_of(wish, VIRTUAL_SERVICE, name)
        if held is None:
            return f"VirtualService {name!r} does not exist yet"
        stopped = blocked(wish, VIRTUAL_SERVICE, name)
        if stopped:
            return stopped
        have, want = (
            project(_filled(spec), _TRAFFIC) for spec in (held.get("spec") or {}, spec_of(wish))
        )
        if have != want:
            mirrored = ", mirrored" if wish.split.mirror else ""
            return (
                f"VirtualService {name!r} does not have the weights"
                f" {wish.split.primary}/{wish.split.canary}{mirrored} yet"
            )
        return ""

    def status(self, wish: Wish) -> JSON:
        """See Router."""
        return affinity.status(wish)

    def revert(self, wish: Wish) -> tuple[Write, ...]:
        """See Router. The DestinationRules say nothing about the apex and may stay."""
        return restore(wish, VIRTUAL_SERVICE, wish.names.apex, reverted_spec(wish))


def _destination_rule(wish: Wish, name: str) -> tuple[Write, ...]:
    spec: JSON = {"host": name}
    policy = (wish.canary["spec"].get("service") or {}).get("trafficPolicy")
    held = held_of(wish, DESTINATION_RULE, name)
    if not policy and held is not None and controller_of(held) is None:
        # Somebody's own, and the Canary has nothing to say about it.
        policy = (held.get("spec") or {}).get("trafficPolicy")
    if policy:
        spec["trafficPolicy"] = policy
    return reconcile(wish, DESTINATION_RULE, name, spec)
