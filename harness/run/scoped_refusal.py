"""Why a drill does not enter a namespace that others use: one sentence, before anything is made. Pure functions over raw objects.

Services, ReplicaSets and controllers choose pods by labels, and a drill's manifests have the labels that their author gave them. Other
values could be put in for each drill, but not without changing what is drilled: selectors, anti-affinity terms and the labels that a
controller derives are what many scenarios are about. So labels stay, and where anything could be confused the drill does not begin. In
a namespace of its own, which every drill has otherwise, nobody's selector reaches its pods at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.model.timeline import JSON, RolloutKind

_DERIVED: Final = ("", "-primary", "-canary")
"""What a controller appends to the names of targets, Services and configurations for what it makes."""
_NAMED: Final = frozenset(
    {
        *("Deployment", "DaemonSet", "Service", "HorizontalPodAutoscaler", "ConfigMap", "Secret"),
        *("HTTPRoute", "VirtualService", "DestinationRule", "ScaledObject", "StatefulSet"),
    }
)
"""Kinds that a controller makes under such names."""
Labels = dict[str, str]


def refusal(
    namespace: str,
    wanted: Sequence[JSON],
    there: Sequence[JSON],
    rollout: RolloutKind,
    *,
    acts: bool,
) -> str:
    """Return why a drill of the objects `wanted` does not enter; empty when it may.

    Args:
        namespace: Its name.
        wanted: The drill's rendered objects.
        there: What is in the namespace: kind and metadata, Services with their spec.
        rollout: The kind of the rollout objects.
        acts: Whether a controller is started there, which acts on all rollout objects that there are.
    """
    head = f"Namespace {namespace} cannot be used by this drill, and nothing was made there: "
    why = (
        _other_rollout(there, rollout)
        if acts and any(obj["kind"] == rollout.kind for obj in wanted)
        else ""
    )
    why = why or _taken(wanted, there, rollout) or _chosen(wanted, there, rollout)
    return f"{head}{why}." if why else ""


def _other_rollout(there: Sequence[JSON], rollout: RolloutKind) -> str:
    others = [_name(obj) for obj in there if obj["kind"] == rollout.kind]
    if not others:
        return ""
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"{rollout.kind} {others[0]}{more} of somebody else is in it, on which the drill's controller would act"


def _taken(wanted: Sequence[JSON], there: Sequence[JSON], rollout: RolloutKind) -> str:
    have = {(str(obj["kind"]), _name(obj)) for obj in there}
    own = {(str(obj["kind"]), _name(obj)) for obj in wanted}
    derived = {(kind, name) for kind in _NAMED for name in _derived(wanted, rollout)}
    for kind, name in sorted(have & (own | derived)):
        what = (
            "a manifest of the scenario" if (kind, name) in own else "the controller of this drill"
        )
        return f"{kind} {name} is in it, and {what} makes one of that name"
    return ""


def _derived(wanted: Sequence[JSON], rollout: RolloutKind) -> set[str]:
    names = {_name(obj) for obj in wanted if obj["kind"] in {"ConfigMap", "Secret"}}
    for obj in wanted:
        if obj["kind"] == rollout.kind:
            spec = obj.get("spec") or {}
            target = str((spec.get("targetRef") or {}).get("name") or "")
            service = str((spec.get("service") or {}).get("name") or target)
            scaler = str((spec.get("autoscalerRef") or {}).get("name") or "")
            names |= {name for name in (target, service, scaler) if name}
    return {f"{name}{suffix}" for name in names for suffix in _DERIVED}


def _chosen(wanted: Sequence[JSON], there: Sequence[JSON], rollout: RolloutKind) -> str:
    """Return which of their Services would choose the drill's pods, or whose pods the drill's selectors would choose."""
    targets = {
        str(((obj.get("spec") or {}).get("targetRef") or {}).get("name") or "")
        for obj in wanted
        if obj["kind"] == rollout.kind
    }
    pods = [labels for obj in wanted for labels in _pod_labels(obj, targets)]
    for service in there:
        selector = (service.get("spec") or {}).get("selector") or {}
        if service["kind"] == "Service" and any(_selects(selector, labels) for labels in pods):
            told = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
            return f"Service {_name(service)} of somebody else selects {told}, which the drill's pods would have"
    selectors = [selector for obj in wanted for selector in _selectors(obj, targets)]
    for pod in there:
        labels = pod["metadata"].get("labels") or {}
        hit = next(
            (one for one in selectors if pod["kind"] == "Pod" and _selects(one, labels)), None
        )
        if hit is not None:
            told = ",".join(f"{key}={value}" for key, value in sorted(hit.items()))
            return f"Pod {_name(pod)} of somebody else has {told}, which the drill's objects select"
    return ""


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def _pod_labels(obj: JSON, targets: set[str]) -> Iterator[Labels]:
    """Yield the labels of the pods that an object leads to: its own, and those that the primary of a target has."""
    if obj["kind"] == "Pod":
        yield dict(obj["metadata"].get("labels") or {})
        return
    template = (obj.get("spec") or {}).get("template")
    if not isinstance(template, dict):
        return
    labels = {
        str(k): str(v) for k, v in ((template.get("metadata") or {}).get("labels") or {}).items()
    }
    yield labels
    if _name(obj) in targets:
        for changed in _as_primary(_match_labels(obj)):
            yield {**labels, **changed}


def _selectors(obj: JSON, targets: set[str]) -> Iterator[Labels]:
    selector = (obj.get("spec") or {}).get("selector")
    if obj["kind"] == "Service" and isinstance(selector, dict):
        yield selector
        return
    if own := _match_labels(obj):
        yield own
        if _name(obj) in targets:
            yield from ({**own, **changed} for changed in _as_primary(own))


def _match_labels(obj: JSON) -> Labels:
    selector = (obj.get("spec") or {}).get("selector")
    own: Any = selector.get("matchLabels") if isinstance(selector, dict) else None
    return {str(key): str(value) for key, value in own.items()} if isinstance(own, dict) else {}


def _as_primary(selector: Labels) -> Iterator[Labels]:
    # Which of the keys is the one that tells the primary apart is a matter of its flags: each may be.
    for key, value in selector.items():
        yield {key: f"{value}-primary"}


def _name(obj: JSON) -> str:
    return str(obj["metadata"]["name"])
