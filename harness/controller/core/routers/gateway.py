"""Router for the Gateway API: one HTTPRoute, named like the apex Service (spec objects 11, deviation O18).

A route counts as in force when every parent has accepted this very generation and says so in its status. A parent that nobody answers
for is waited for: traffic would not move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.routers import affinity, gateway_problems
from harness.controller.core.routers.gateway_rules import reverted_spec, spec_of
from harness.controller.core.routers.gateway_shape import HTTP_ROUTE, PARENT, RULE, filled, parent
from harness.controller.core.routers.knative import knative_target_problem
from harness.controller.core.routers.objects import blocked, held_of, reconcile, restore
from harness.controller.core.routers.overlay import project

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Write
    from harness.controller.core.routers.base import Wish
    from harness.controller.core.routers.overlay import Shape

_TRAFFIC: Final[Shape] = {field: RULE[field] for field in ("matches", "backendRefs")}


class GatewayRouter:
    """Splits by weights of backendRefs, mirrors by a RequestMirror filter."""

    splits: bool = True
    mirrors: bool = True
    needs: tuple[str, ...] = ("httproutes",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def problem(self, canary: JSON) -> str:
        """See Router."""
        wrong = knative_target_problem(canary, self.name)
        return wrong or gateway_problems.problem(canary, self.name)

    def route(self, wish: Wish) -> tuple[Write, ...]:
        """See Router."""
        return reconcile(wish, HTTP_ROUTE, wish.names.apex, spec_of(wish))

    def waiting(self, wish: Wish) -> str:
        """See Router."""
        name = wish.names.apex
        held = held_of(wish, HTTP_ROUTE, name)
        if held is None:
            return f"HTTPRoute {name!r} does not exist yet"
        stopped = blocked(wish, HTTP_ROUTE, name)
        if stopped:
            return stopped
        if _traffic(held["spec"]) != _traffic(spec_of(wish)):
            return f"HTTPRoute {name!r} does not have the weights {_weights(wish)} yet"
        return _unaccepted(held)

    def status(self, wish: Wish) -> JSON:
        """See Router."""
        return affinity.status(wish)

    def revert(self, wish: Wish) -> tuple[Write, ...]:
        """See Router. A route that goes with the Canary names the apex Service until then, since `-primary` may go first (A9)."""
        return restore(wish, HTTP_ROUTE, wish.names.apex, reverted_spec(wish))


def _traffic(spec: JSON) -> list[Any]:
    """What decides where requests go: matches, backends, copies."""
    return [
        (
            project(rule, _TRAFFIC),
            [one for one in rule.get("filters") or () if one.get("type") == "RequestMirror"],
        )
        for rule in filled(spec).get("rules") or ()
    ]


def _weights(wish: Wish) -> str:
    mirrored = ", mirrored" if wish.split.mirror else ""
    return f"{wish.split.primary}/{wish.split.canary}{mirrored}"


def _unaccepted(route: JSON) -> str:
    meta, spec = route["metadata"], route["spec"]
    answers = (route.get("status") or {}).get("parents") or []
    for reference in spec.get("parentRefs") or []:
        wanted = _known(reference, meta["namespace"])
        who = f"{wanted['kind']} {wanted['namespace']}/{wanted['name']}"
        said = [
            answer
            for answer in answers
            if _known(answer.get("parentRef") or {}, meta["namespace"]) == wanted
        ]
        if not said:
            return f"HTTPRoute {meta['name']!r} is not answered for by {who} yet"
        for answer in said:
            wrong = _refused(answer, int(meta.get("generation") or 0))
            if wrong:
                return f"HTTPRoute {meta['name']!r} at {who}: {wrong}"
    return ""


def _known(reference: JSON, namespace: str) -> JSON:
    found: JSON = {"namespace": namespace} | project(parent(reference), PARENT)
    return found


def _refused(answer: JSON, generation: int) -> str:
    """Accepted must be there; ResolvedRefs must not say that a backend is missing."""
    held = {one.get("type"): one for one in answer.get("conditions") or []}
    if "Accepted" not in held:
        return "no condition Accepted yet"
    for kind in ("Accepted", "ResolvedRefs"):
        condition: JSON = held.get(kind) or {}
        if kind == "ResolvedRefs" and condition.get("status") != "False":
            continue
        seen = int(condition.get("observedGeneration") or 0)
        if seen < generation:
            return f"{kind} is about generation {seen}, the route is at {generation}"
        if condition.get("status") != "True":
            why = ": ".join(
                str(condition[key]) for key in ("reason", "message") if condition.get(key)
            )
            return f"{kind} is {condition.get('status')} ({why})"
    return ""
