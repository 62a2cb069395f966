"""A Canary's routing in the words of the Gateway API (spec objects 11): matches, filters, backends.

What has no exact counterpart is refused by `gateway_problems.py` before anything is written. `uri.prefix` becomes PathPrefix, which
compares whole path elements (`/a` does not match `/ab`), as users of the Gateway API expect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.moments import duration
from harness.controller.core.routers import plan
from harness.controller.core.routers.gateway_shape import EVERY_PATH, parent
from harness.controller.core.routers.matches import service_matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.controller.core.decision import JSON
    from harness.controller.core.routers.base import Wish

COOKIE: Final = "Cookie"
_PATH_TYPES: Final = (("exact", "Exact"), ("prefix", "PathPrefix"), ("regex", "RegularExpression"))
_TYPES: Final = (("exact", "Exact"), ("regex", "RegularExpression"))
PREFIX_REWRITE: Final = "ReplacePrefixMatch"
_FULL_REWRITE: Final = "ReplaceFullPath"


def spec_of(wish: Wish) -> JSON:
    """Return the spec of the HTTPRoute for a split."""
    return _spec(wish, [_rule(wish, rule) for rule in plan.rules(wish, COOKIE)])


def reverted_spec(wish: Wish) -> JSON:
    """Return the spec that sends everything to the apex Service, whatever that selects."""
    rule = _common(wish, service_matches(wish.canary))
    rule["backendRefs"] = [_service(wish, wish.names.apex) | {"weight": 1}]
    return _spec(wish, [rule])


def matches(entries: Sequence[JSON]) -> list[JSON]:
    """Return the matches of a rule, defaults filled in."""
    return [_match(entry) for entry in entries or ({},)]


def _spec(wish: Wish, rules: list[JSON]) -> JSON:
    service: JSON = wish.canary["spec"]["service"]
    spec: JSON = {
        "parentRefs": [parent(one) for one in service.get("gatewayRefs") or ()],
        "rules": rules,
    }
    if service.get("hosts"):
        spec["hostnames"] = list(service["hosts"])
    return spec


def _rule(wish: Wish, rule: plan.Rule) -> JSON:
    result = _common(wish, rule.matches)
    if rule.mirror:
        result.setdefault("filters", []).append(_mirror(wish))
    primary = _service(wish, wish.names.primary_service) | {"weight": rule.primary}
    canary = _service(wish, wish.names.canary_service) | {"weight": rule.canary}
    for backend, cookie in ((primary, rule.primary_cookie), (canary, rule.canary_cookie)):
        if cookie:
            backend["filters"] = [_set_cookie(cookie)]
    if rule.role == "split":
        result["backendRefs"] = [primary, canary]
    else:
        result["backendRefs"] = [canary if rule.canary else primary]
    return result


def _common(wish: Wish, entries: Sequence[JSON]) -> JSON:
    service: JSON = wish.canary["spec"]["service"]
    rule: JSON = {"matches": matches(entries)}
    filters = list(_filters(service))
    if filters:
        rule["filters"] = filters
    timeouts = {
        theirs: service[ours]
        for ours, theirs in (("timeout", "request"), ("backendTimeout", "backendRequest"))
        if service.get(ours)
    }
    if timeouts:
        rule["timeouts"] = timeouts
    return rule


def _service(wish: Wish, name: str) -> JSON:
    port = int(wish.canary["spec"]["service"]["port"])
    return {"group": "", "kind": "Service", "name": name, "port": port}


def _match(entry: JSON) -> JSON:
    path = entry.get("uri")
    result: JSON = {"path": _condition(path, _PATH_TYPES) if path else dict(EVERY_PATH)}
    if entry.get("method"):
        result["method"] = entry["method"]["exact"]
    for field in ("headers", "queryParams"):
        named: JSON = entry.get(field) or {}
        if named:
            result[field] = [{"name": k, **_condition(named[k], _TYPES)} for k in sorted(named)]
    return result


def _condition(condition: JSON, types: Iterable[tuple[str, str]]) -> JSON:
    return next(
        {"type": theirs, "value": condition[ours]} for ours, theirs in types if condition.get(ours)
    )


def _filters(service: JSON) -> Iterable[JSON]:
    headers: JSON = service.get("headers") or {}
    for side in ("request", "response"):
        change = _header_change(headers.get(side) or {})
        if change:
            yield {"type": f"{side.title()}HeaderModifier", f"{side}HeaderModifier": change}
    rewrite: JSON = service.get("rewrite") or {}
    if rewrite.get("uri") or rewrite.get("authority"):
        yield {"type": "URLRewrite", "urlRewrite": _rewritten(rewrite)}
    for entry in service.get("mirror") or ():
        backend = {"group": "", "kind": "Service", **entry["backendRef"]}
        yield {"type": "RequestMirror", "requestMirror": {"backendRef": backend}}
    if service.get("corsPolicy"):
        yield {"type": "CORS", "cors": _cors(service["corsPolicy"])}


def _header_change(change: JSON) -> JSON:
    result: dict[str, Any] = {
        verb: [{"name": name, "value": change[verb][name]} for name in sorted(change[verb])]
        for verb in ("set", "add")
        if change.get(verb)
    }
    if change.get("remove"):
        result["remove"] = list(change["remove"])
    return result


def _rewritten(rewrite: JSON) -> JSON:
    result: JSON = {}
    if rewrite.get("authority"):
        result["hostname"] = rewrite["authority"]
    if rewrite.get("uri"):
        kind = PREFIX_REWRITE if rewrite.get("type") == PREFIX_REWRITE else _FULL_REWRITE
        field = kind[0].lower() + kind[1:]
        result["path"] = {"type": kind, field: rewrite["uri"]}
    return result


def _cors(policy: JSON) -> JSON:
    origins = list(policy.get("allowOrigin") or ())
    origins += [one["exact"] for one in policy.get("allowOrigins") or ()]
    result: JSON = {"allowOrigins": list(dict.fromkeys(origins))} if origins else {}
    for field in ("allowMethods", "allowHeaders", "exposeHeaders"):
        if policy.get(field):
            result[field] = list(policy[field])
    if policy.get("allowCredentials"):
        result["allowCredentials"] = True
    age = duration(policy.get("maxAge"))
    if age is not None:
        result["maxAge"] = int(age)
    return result


def _mirror(wish: Wish) -> JSON:
    percent = plan.mirror_percent(wish.canary)
    copied: JSON = {"backendRef": _service(wish, wish.names.canary_service)}
    if percent < plan.FULL:
        copied["percent"] = percent
    return {"type": "RequestMirror", "requestMirror": copied}


def _set_cookie(value: str) -> JSON:
    change = {"add": [{"name": "Set-Cookie", "value": value}]}
    return {"type": "ResponseHeaderModifier", "responseHeaderModifier": change}
