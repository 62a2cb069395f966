"""What of a Canary the Gateway API cannot do. One sentence with the field and what is allowed; then nothing is written (G1).

Fields that only concern Istio (gateways, delegation, retries, trafficPolicy) say so in the Canary API and are not looked at. A
condition that would be lost is another matter: the route would match more than was asked for.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from harness.controller.core.moments import duration
from harness.controller.core.routers import affinity, plan
from harness.controller.core.routers.gateway_rules import PREFIX_REWRITE, matches
from harness.controller.core.routers.matches import (
    analysis_matches,
    condition_problem,
    numbered,
    product,
    service_matches,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.decision import JSON

_MATCH_FIELDS: Final = ("uri", "method", "headers", "queryParams")
_METHODS: Final = frozenset(
    ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
)
_HARMLESS: Final = ("name", "statPrefix")
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TIME: Final = re.compile(r"([0-9]{1,5}(h|m|s|ms)){1,4}")
_MATCHES_EACH: Final = 64
_MATCHES_ALL: Final = 128
_LONGEST: Final = 4096
_LEAST_AGE: Final = 1


def problem(canary: JSON, provider: str) -> str:
    """Return the first thing that cannot be done; empty when all can."""
    found = chain(_parents(canary, provider), _service(canary), _conditions(canary, provider))
    first = next(found, "") or plan.problem(canary)
    return first or next(_counts(canary), "")


def _parents(canary: JSON, provider: str) -> Iterator[str]:
    references = canary["spec"]["service"].get("gatewayRefs") or []
    if not references:
        yield f"spec.service.gatewayRefs is empty; provider {provider} needs at least one entry {{name: GATEWAY}}"
    for index, reference in enumerate(references):
        if not reference.get("name"):
            yield f"spec.service.gatewayRefs[{index}].name is missing"


def _service(canary: JSON) -> Iterator[str]:
    service: JSON = canary["spec"]["service"]
    for index, host in enumerate(service.get("hosts") or ()):
        if not _HOST.fullmatch(str(host)):
            yield (
                f"spec.service.hosts[{index}]: {host!r} is no host name of the Gateway API; allowed: a lower-case name without port,"
                " perhaps starting with '*.'; no hosts at all for every host"
            )
    for field in ("timeout", "backendTimeout"):
        text = service.get(field)
        if text and not _TIME.fullmatch(str(text)):
            yield f"spec.service.{field}: {text!r}; allowed: whole numbers with h, m, s or ms, such as 1m30s"
    whole, part = duration(service.get("timeout")), duration(service.get("backendTimeout"))
    if whole and part and part > whole:
        yield f"spec.service.backendTimeout: {service['backendTimeout']} is longer than spec.service.timeout ({service['timeout']})"
    for index, entry in enumerate(service.get("mirror") or ()):
        backend = entry.get("backendRef") or {}
        where = f"spec.service.mirror[{index}].backendRef"
        if not backend.get("name"):
            yield f"{where}.name is missing"
        elif backend.get("kind", "Service") == "Service" and not backend.get("port"):
            yield f"{where}.port is missing; a Service needs one"
    yield from _cors(service.get("corsPolicy") or {})


def _cors(policy: JSON) -> Iterator[str]:
    for index, origin in enumerate(policy.get("allowOrigins") or ()):
        where = f"spec.service.corsPolicy.allowOrigins[{index}]"
        wrong = condition_problem(where, origin, ("exact",))
        if wrong:
            yield wrong
    age = policy.get("maxAge")
    seconds = duration(age)
    if age and (seconds is None or seconds < _LEAST_AGE):
        yield f"spec.service.corsPolicy.maxAge: {age!r}; allowed: a duration of at least 1s"


def _conditions(canary: JSON, provider: str) -> Iterator[str]:
    for where, entry in numbered(canary):
        for field, value in entry.items():
            if field not in _MATCH_FIELDS and field not in _HARMLESS and value:
                yield (
                    f"{where}.{field} is not supported by provider {provider};"
                    f" allowed: {', '.join(_MATCH_FIELDS)}"
                )
        yield from _path(f"{where}.uri", entry.get("uri"))
        yield from _method(f"{where}.method", entry.get("method"))
        for field in ("headers", "queryParams"):
            for name, condition in (entry.get(field) or {}).items():
                yield from _text(f"{where}.{field}.{name}", condition)


def _method(where: str, condition: JSON | None) -> Iterator[str]:
    if not condition:
        return
    wrong = condition_problem(where, condition, ("exact",))
    if wrong:
        yield wrong
    elif condition["exact"] not in _METHODS:
        yield f"{where}.exact: {condition['exact']!r}; allowed: {', '.join(sorted(_METHODS))}"


def _text(where: str, condition: JSON) -> Iterator[str]:
    wrong = condition_problem(where, condition, ("exact", "regex"))
    if wrong:
        yield wrong
    elif max(len(text) for text in condition.values()) > _LONGEST:
        yield f"{where} is longer than {_LONGEST} characters"


def _path(where: str, condition: JSON | None) -> Iterator[str]:
    if not condition:
        return
    wrong = condition_problem(where, condition)
    if wrong:
        yield wrong
        return
    way, text = next((way, text) for way, text in condition.items() if text)
    if way != "regex" and (not text.startswith("/") or "//" in text):
        yield f"{where}.{way}: {text!r}; allowed: a path that starts with '/' and has no '//'"


def _counts(canary: JSON) -> Iterator[str]:
    own, tested = len(service_matches(canary)), len(analysis_matches(canary))
    split = max(own, 1) * max(tested, 1)
    kept = affinity.settings_of(canary)
    cookie = max(own, 1) * (0 if not kept else 2 if kept.get("primaryCookieName") else 1)
    rest = max(own, 1) if tested else 0
    if max(split, own) > _MATCHES_EACH or split + rest + cookie > _MATCHES_ALL:
        yield (
            f"spec.analysis.match with {tested} and spec.service.match with {own} entries make {split + rest + cookie} matches;"
            f" allowed: {_MATCHES_EACH} in a rule and {_MATCHES_ALL} in a route"
        )
    rewrite: JSON = canary["spec"]["service"].get("rewrite") or {}
    if not rewrite.get("uri") or rewrite.get("type") != PREFIX_REWRITE:
        return
    for entries in (
        service_matches(canary),
        product(analysis_matches(canary), service_matches(canary)),
    ):
        made = matches(entries)
        if len(made) != 1 or made[0]["path"]["type"] != "PathPrefix":
            yield (
                f"spec.service.rewrite.type: {PREFIX_REWRITE} needs exactly one match with uri.prefix (or none at all);"
                f" spec.service.match has {own}, spec.analysis.match {tested} entries"
            )
