"""A Canary's routing in the words of Istio: the spec of its VirtualService.

Matches, retries, headers, corsPolicy and timeout are what Istio itself defines and are passed on as they are.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.controller.core.routers import plan
from harness.controller.core.routers.matches import service_matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.controller.core.decision import JSON
    from harness.controller.core.routers.base import Wish

COOKIE: Final = "cookie"
"""Istio wants header names in lower case."""
_MESH: Final = "mesh"
_PASSED_ON: Final = ("timeout", "retries", "corsPolicy", "headers")


def is_tcp(canary: JSON) -> bool:
    """Whether connections are routed instead of requests (`spec.service.appProtocol: tcp`)."""
    service: JSON = canary["spec"].get("service") or {}
    return str(service.get("appProtocol") or "").lower() == "tcp"


def spec_of(wish: Wish) -> JSON:
    """Return the spec of the VirtualService for a split."""
    spec = _reach(wish)
    if is_tcp(wish.canary):
        split = plan.rules(wish, COOKIE)[-1]
        shares = (
            (wish.names.primary_service, split.primary),
            (wish.names.canary_service, split.canary),
        )
        return spec | {"tcp": [_tcp(wish, shares)]}
    return spec | {"http": [_http(wish, rule) for rule in plan.rules(wish, COOKIE)]}


def reverted_spec(wish: Wish) -> JSON:
    """Return the spec that sends everything to the apex Service, whatever that selects."""
    spec = _reach(wish)
    apex = ((wish.names.apex, plan.FULL),)
    if is_tcp(wish.canary):
        return spec | {"tcp": [_tcp(wish, apex)]}
    rule = _common(wish, service_matches(wish.canary))
    return spec | {"http": [rule | {"route": [_share(wish, *one) for one in apex]}]}


def _reach(wish: Wish) -> JSON:
    """Hosts and gateways; a VirtualService that another one delegates to must have neither."""
    service: JSON = wish.canary["spec"]["service"]
    if service.get("delegation"):
        return {}
    hosts = list(service.get("hosts") or ())
    if wish.names.apex not in hosts and "*" not in hosts:
        hosts.append(wish.names.apex)
    return {"hosts": hosts, "gateways": list(service.get("gateways") or (_MESH,))}


def _http(wish: Wish, rule: plan.Rule) -> JSON:
    result = _common(wish, rule.matches)
    primary = _share(wish, wish.names.primary_service, rule.primary, rule.primary_cookie)
    canary = _share(wish, wish.names.canary_service, rule.canary, rule.canary_cookie)
    if rule.role == "split":
        result["route"] = [primary, canary]
    else:
        result["route"] = [canary if rule.canary else primary]
    if rule.mirror:
        result["mirror"] = _destination(wish, wish.names.canary_service)
        percent = plan.mirror_percent(wish.canary)
        if percent < plan.FULL:
            result["mirrorPercentage"] = {"value": percent}
    return result


def _common(wish: Wish, matches: Sequence[JSON]) -> JSON:
    service: JSON = wish.canary["spec"]["service"]
    rule: JSON = {"match": list(matches)} if matches else {}
    rewrite: JSON = service.get("rewrite") or {}
    # `type` belongs to the Gateway API: Istio rewrites what the match matched.
    changed = {field: rewrite[field] for field in ("uri", "authority") if rewrite.get(field)}
    if changed:
        rule["rewrite"] = changed
    rule |= {field: service[field] for field in _PASSED_ON if service.get(field)}
    return copy.deepcopy(rule)


def _tcp(wish: Wish, shares: Sequence[tuple[str, int]]) -> JSON:
    ports = [{"port": one["port"]} for one in service_matches(wish.canary) if one.get("port")]
    rule: JSON = {"match": ports} if ports else {}
    return rule | {"route": [_share(wish, *one) for one in shares]}


def _share(wish: Wish, host: str, weight: int, cookie: str = "") -> JSON:
    share: JSON = {"destination": _destination(wish, host), "weight": weight}
    if cookie:
        share["headers"] = {"response": {"add": {"Set-Cookie": cookie}}}
    return share


def _destination(wish: Wish, host: str) -> JSON:
    """Behind a gateway, a Service with several ports needs to be told which."""
    service: JSON = wish.canary["spec"]["service"]
    gateways = service.get("gateways") or [_MESH]
    several = service.get("portDiscovery") and (gateways[0] != _MESH or service.get("delegation"))
    return {"host": host} | ({"port": {"number": int(service["port"])}} if several else {})
