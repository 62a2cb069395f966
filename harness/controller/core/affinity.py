"""Label selectors inside a pod template that name the workload itself (spec objects 4, deviations O3 and O4).

The primary's pods carry another value of the selector label than the target's. A term that kept the old value would
speak of canary pods: an anti-affinity term would no longer keep primary pods apart, a spread constraint would count
the wrong pods. So in the primary that one value is replaced, and nothing else: other keys, other values, operators,
namespaces, matchLabelKeys and fields we have never heard of stay as they are.

Only the key of the selector label is looked at, not every key that could have been one: the primary's pods differ in
that label alone, and a rewritten value under another key would match no pod at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.names import PRIMARY_SUFFIX, Names

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

_TERMS: Final = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def rewrite_pod_spec(spec: JSON, names: Names) -> None:
    """Point the terms of a pod spec (a copy, changed in place) at the primary's pods.

    Concerned are podAntiAffinity, podAffinity (O4) and topologySpreadConstraints.
    """
    affinity = spec.get("affinity") or {}
    for kind in ("podAntiAffinity", "podAffinity"):
        for terms in _TERMS:
            for entry in (affinity.get(kind) or {}).get(terms) or []:
                # A preferred term is wrapped with its weight.
                term = entry.get("podAffinityTerm", entry)
                rewrite_selector(term.get("labelSelector"), names)
    for constraint in spec.get("topologySpreadConstraints") or []:
        rewrite_selector(constraint.get("labelSelector"), names)


def rewrite_selector(selector: JSON | None, names: Names) -> None:
    """Replace the value that names the workload in a label selector, in place."""
    if not selector:
        return
    labels = selector.get("matchLabels") or {}
    if names.label in labels:
        labels[names.label] = _value(labels[names.label], names)
    for expression in selector.get("matchExpressions") or []:
        if expression.get("key") == names.label and expression.get("values"):
            expression["values"] = [_value(value, names) for value in expression["values"]]


def _value(value: Any, names: Names) -> Any:
    """The label's own value counts (O3), and the Deployment's name, which is all that Flagger looks at."""
    return value + PRIMARY_SUFFIX if value in (names.value, names.target) else value
