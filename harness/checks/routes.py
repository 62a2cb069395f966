"""What checks see of the object that splits the traffic: an HTTPRoute, a VirtualService or a Knative Service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.paths import KNATIVE_SERVICE, dig, name_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model.timeline import JSON

HTTP_ROUTE: Final = "HTTPRoute"
VIRTUAL_SERVICE: Final = "VirtualService"
KINDS: Final = (HTTP_ROUTE, VIRTUAL_SERVICE, KNATIVE_SERVICE)
"""In the order in which a rollout's route is looked for."""

ABSENT: Final[dict[str, Any]] = {
    "exists": False,
    "kind": "",
    "name": "",
    "weights": {},
    "matched": {},
    "mirror": False,
    "served": {},
}
"""A route of which it is known that it does not exist."""
_ALL: Final = 100


def route_view(kind: str, route: JSON, apex: str, suffix: str) -> dict[str, Any]:
    """Return a route as checks see it; `apex` is the Service that clients use, `suffix` that of the primary's names."""
    view = {**ABSENT, "exists": True, "kind": kind, "name": name_of(route)}
    roles = {f"{apex}{suffix}": "primary", f"{apex}-canary": "canary"}
    if kind == KNATIVE_SERVICE:
        view["weights"] = _revisions(dig(route, "spec.traffic", []))
        view["served"] = _revisions(dig(route, "status.traffic", []))
        return view
    read = _gateway if kind == HTTP_ROUTE else _istio
    rules = [rule for rule in (read(row, roles) for row in _rules(kind, route)) if rule[0]]
    if not rules:
        return view
    # The last rule is for everybody; those before it are for requests that match.
    view["weights"] = rules[-1][0]
    view["matched"] = rules[0][0] if len(rules) > 1 else {}
    view["mirror"] = any(mirrored for _, mirrored in rules)
    return view


def _rules(kind: str, route: JSON) -> list[JSON]:
    rows = dig(route, "spec.rules" if kind == HTTP_ROUTE else "spec.http", [])
    return [row for row in rows if isinstance(row, dict)]


def _gateway(rule: JSON, roles: Mapping[str, str]) -> tuple[dict[str, int], bool]:
    backends = [
        (str(row.get("name", "")), whole(row.get("weight", 1)))
        for row in dig(rule, "backendRefs", [])
        if isinstance(row, dict)
    ]
    filters = [row.get("type") for row in dig(rule, "filters", []) if isinstance(row, dict)]
    return _shares(backends, roles), "RequestMirror" in filters


def _istio(rule: JSON, roles: Mapping[str, str]) -> tuple[dict[str, int], bool]:
    rows = [row for row in dig(rule, "route", []) if isinstance(row, dict)]
    # The one destination of a rule gets everything, whatever its weight says.
    backends = [
        (
            str(dig(row, "destination.host", "")).split(".")[0],
            _ALL if len(rows) == 1 else whole(row.get("weight", 0)),
        )
        for row in rows
    ]
    return _shares(backends, roles), bool(dig(rule, "mirror"))


def _shares(backends: Iterable[tuple[str, int]], roles: Mapping[str, str]) -> dict[str, int]:
    """Return the percentages of primary and canary; empty where a rule leads to neither."""
    rows = [(roles.get(name, ""), weight) for name, weight in backends]
    if not any(role for role, _ in rows):
        return {}
    total = sum(weight for _, weight in rows)
    found = {"primary": 0, "canary": 0}
    for role, weight in rows:
        if role and total:
            found[role] += round(_ALL * weight / total)
    return found


def _revisions(rows: object) -> dict[str, int]:
    """Return the percentages of a Knative Service: its newest revision is the canary, a named one the primary."""
    if not isinstance(rows, list) or not rows:
        return {}
    found = {"primary": 0, "canary": 0}
    for row in rows:
        if isinstance(row, dict):
            role = "canary" if row.get("latestRevision") is True else "primary"
            found[role] += whole(row.get("percent"))
    return found
