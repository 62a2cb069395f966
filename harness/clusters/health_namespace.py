"""What the namespace that drills are to use asks of pods: quota, limits, Pod Security, network policies. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.clusters.survey import Survey
    from harness.model.timeline import JSON

_Row = tuple[str, Literal["ok", "note", "missing", "unknown"], str]
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_STATED: Final = {
    "cpu": ("requests", "cpu"),
    "requests.cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}
"""What a quota counts -> what every container has to state then."""


def rows(survey: Survey) -> Iterator[_Row]:
    """Yield topic, state and text."""
    name = survey.namespace
    if not name:
        yield (
            "namespace",
            "ok",
            "each drill makes one of its own; quotas and limits count there as far as the cluster gives them to new ones",
        )
        return
    found = survey.seen("namespaces")
    if found is None:
        yield "namespace", "unknown", f"{name} itself may not be read"
    elif not found:
        yield "namespace", "missing", f"there is no namespace {name}"
    elif found[0]["metadata"].get("deletionTimestamp"):
        yield "namespace", "missing", f"{name} is being deleted"
    else:
        yield "namespace", "ok", f"{name} is there, and stays"
        yield _pod_security(found[0])
    yield from _quotas(survey)
    yield from _limits(survey.seen("limitranges"))
    yield from _network(survey.seen("networkpolicies"))


def enforces_restricted(namespace: JSON) -> bool:
    """Whether only pods that meet Pod Security's `restricted` are admitted."""
    return bool((namespace["metadata"].get("labels") or {}).get(ENFORCE) == "restricted")


def _pod_security(namespace: JSON) -> _Row:
    level = (namespace["metadata"].get("labels") or {}).get(ENFORCE)
    if enforces_restricted(namespace):
        text = (
            "restricted is enforced: containers that state no security context get one that passes"
        )
        return "Pod Security", "note", text
    return (
        "Pod Security",
        "ok",
        f"{level} is enforced" if level else "the namespace enforces nothing of its own",
    )


def _quotas(survey: Survey) -> Iterator[_Row]:
    quotas, limits = survey.seen("resourcequotas"), survey.seen("limitranges")
    if quotas is None:
        yield "ResourceQuota", "unknown", "may not be listed"
        return
    if not quotas:
        yield "ResourceQuota", "ok", "none"
    for quota in quotas:
        hard = (quota.get("spec") or {}).get("hard") or {}
        used = (quota.get("status") or {}).get("used") or {}
        counts = ", ".join(
            f"{key} {used.get(key, '?')} of {hard[key]} used" for key in sorted(hard)
        )
        must = {_STATED[key] for key in hard if key in _STATED} - _defaults(limits or ())
        name = quota["metadata"]["name"]
        if must:
            what = ", ".join(f"{kind}.{resource}" for kind, resource in sorted(must))
            text = f"{name} refuses pods whose containers do not state {what}, and no LimitRange has a default for it ({counts})"
            yield "ResourceQuota", "note", text
        else:
            yield "ResourceQuota", "note", f"{name}: {counts}"


def _defaults(limits: Sequence[JSON]) -> set[tuple[str, str]]:
    """Return what containers that do not state it get from LimitRanges."""
    found: set[tuple[str, str]] = set()
    for row in _of_containers(limits):
        found |= {("limits", resource) for resource in row.get("default") or ()}
        # A default limit is the default request, too.
        both = {*(row.get("defaultRequest") or ()), *(row.get("default") or ())}
        found |= {("requests", resource) for resource in both}
    return found


def _limits(limits: Sequence[JSON] | None) -> Iterator[_Row]:
    if limits is None:
        yield "LimitRange", "unknown", "may not be listed"
        return
    if not limits:
        yield "LimitRange", "ok", "none"
    for one in limits:
        parts = [
            f"{field} {resource} {value}"
            for row in _of_containers([one])
            for field in ("min", "max", "defaultRequest", "default")
            for resource, value in sorted((row.get(field) or {}).items())
        ]
        text = f"{one['metadata']['name']}: {', '.join(parts) or 'nothing about containers'}"
        yield "LimitRange", "note", text


def _of_containers(limits: Sequence[JSON]) -> Iterator[dict[str, Any]]:
    for one in limits:
        for row in (one.get("spec") or {}).get("limits") or ():
            if row.get("type") == "Container":
                yield row


def _network(policies: Sequence[JSON] | None) -> Iterator[_Row]:
    if policies is None:
        yield "NetworkPolicy", "unknown", "may not be listed"
        return
    denied = [(one["metadata"]["name"], way) for one in policies for way in _denies(one)]
    for name, way in denied:
        text = f"{name} denies all {way} by default: requests to drills' pods fail; placement drills send none"
        yield "NetworkPolicy", "note", text
    if not denied:
        text = f"{len(policies)}, none denies by default" if policies else "none"
        yield "NetworkPolicy", "ok", text


def _denies(policy: JSON) -> Iterator[str]:
    spec = policy.get("spec") or {}
    selector = spec.get("podSelector") or {}
    if selector.get("matchLabels") or selector.get("matchExpressions"):
        return
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for kind in ("Ingress", "Egress"):
        if kind in types and not spec.get(kind.lower()):
            yield kind.lower()
