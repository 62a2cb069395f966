"""An HTTPRoute of the Gateway API: which of its fields are ours, and what the API server fills in.

Written for `gateway.networking.k8s.io/v1`, standard channel; fields that only some releases have (`requestMirror.percent`, the CORS
filter) are used only when the Canary asks for them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.controller.core.routers.objects import Kind

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.routers.overlay import Shape

GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
EVERY_PATH: Final = {"type": "PathPrefix", "value": "/"}

_NAMED: Final[Shape] = {"name": None, "value": None}
_HEADERS: Final[Shape] = {"set": _NAMED, "add": _NAMED, "remove": None}
_BACKEND: Final[Shape] = dict.fromkeys(("group", "kind", "name", "namespace", "port"))
_PATH: Final[Shape] = dict.fromkeys(("type", "replaceFullPath", "replacePrefixMatch"))
_CORS: Final[Shape] = dict.fromkeys(
    (
        "allowOrigins",
        "allowMethods",
        "allowHeaders",
        "exposeHeaders",
        "allowCredentials",
        "maxAge",
    )
)
_FILTER: Final[Shape] = {
    "type": None,
    "requestHeaderModifier": _HEADERS,
    "responseHeaderModifier": _HEADERS,
    "urlRewrite": {"hostname": None, "path": _PATH},
    "requestMirror": {"backendRef": _BACKEND, "percent": None, "fraction": None},
    "requestRedirect": None,
    "extensionRef": None,
    "cors": _CORS,
}
_CONDITION: Final[Shape] = {"type": None, "name": None, "value": None}
MATCH: Final[Shape] = {
    "path": {"type": None, "value": None},
    "headers": _CONDITION,
    "queryParams": _CONDITION,
    "method": None,
}
RULE: Final[Shape] = {
    "matches": MATCH,
    "filters": _FILTER,
    "backendRefs": {**_BACKEND, "weight": None, "filters": _FILTER},
    "timeouts": {"request": None, "backendRequest": None},
}
PARENT: Final[Shape] = dict.fromkeys(("group", "kind", "namespace", "name", "sectionName", "port"))


def filled(spec: JSON) -> JSON:
    """Return a copy of an HTTPRoute's spec with the server's defaults, and lists that are keyed by name sorted by it."""
    spec = copy.deepcopy(spec)
    spec["parentRefs"] = [parent(one) for one in spec.get("parentRefs") or []]
    for rule in spec.get("rules") or []:
        rule["matches"] = [_match(one) for one in rule.get("matches") or [{}]]
        rule["filters"] = [_filter(one) for one in rule.get("filters") or []]
        rule["backendRefs"] = [
            _backend(one)
            | {"weight": one.get("weight", 1)}
            | {"filters": [_filter(each) for each in one.get("filters") or []]}
            for one in rule.get("backendRefs") or []
        ]
    return spec


def parent(reference: JSON) -> JSON:
    """Return a parentRef with the server's defaults."""
    return {"group": GATEWAY_GROUP, "kind": "Gateway"} | reference


def _match(match: JSON) -> JSON:
    match["path"] = EVERY_PATH | (match.get("path") or {})
    for field in ("headers", "queryParams"):
        if match.get(field):
            match[field] = sorted(
                ({"type": "Exact"} | one for one in match[field]), key=lambda one: str(one["name"])
            )
    return match


def _backend(reference: JSON) -> JSON:
    return {"group": "", "kind": "Service"} | reference


def _filter(one: JSON) -> JSON:
    for field in ("requestHeaderModifier", "responseHeaderModifier"):
        for verb in ("set", "add"):
            if (one.get(field) or {}).get(verb):
                one[field][verb] = sorted(one[field][verb], key=lambda entry: str(entry["name"]))
    mirrored = one.get("requestMirror")
    if mirrored:
        mirrored["backendRef"] = _backend(mirrored.get("backendRef") or {})
        if mirrored.get("fraction"):
            mirrored["fraction"] = {"denominator": 100} | mirrored["fraction"]
    if one.get("cors") is not None:
        one["cors"] = {"maxAge": 5} | one["cors"]
    return one


HTTP_ROUTE: Final = Kind(
    plural="httproutes",
    api_version=f"{GATEWAY_GROUP}/v1",
    kind="HTTPRoute",
    shape={"parentRefs": PARENT, "hostnames": None, "rules": RULE},
    rules="rules",
    matches="matches",
    filled=filled,
)
