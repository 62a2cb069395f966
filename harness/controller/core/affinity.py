"""Label selectors inside a pod template that name the workload itself (spec objects 4, deviations O3 and O4).

The primary's pods carry another value of the selector label than the target's. A term that kept the old value would
speak of canary pods: an anti-affinity term would no longer keep primary pods apart, a spread constraint would count
the wrong pods. So in the primary that one value is replaced, and nothing else: other keys, other values, operators,
namespaces, matchLabelKeys and fields we have never heard of stay as they are.

Only the key of the selector label is looked at, not every key that could have been one: the primary's pods differ in
that label alone, and a rewritten value under another key would match no pod at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.names import PRIMARY_SUFFIX, Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.controller.core.decision import JSON

_TERMS: Final = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def rewrite_pod_spec(spec: JSON, names: Names) -> None:
    """Point the terms of a pod spec (a copy, changed in place) at the primary's pods.

    Concerned are podAntiAffinity, podAffinity (O4) and topologySpreadConstraints.
    """
    for selector in _selectors(spec):
        _replace(selector, names.label, _to_primary(names))


def undo_pod_spec(spec: JSON, names: Names) -> None:
    """Point the terms of a primary's pod spec (a copy, changed in place) at the target's pods again."""
    back = {new: old for old, new in _to_primary(names).items()}
    for selector in _selectors(spec):
        _replace(selector, names.label, back)


def rewrite_selector(selector: JSON | None, names: Names) -> None:
    """Replace the value that names the workload in a label selector, in place."""
    if selector:
        _replace(selector, names.label, _to_primary(names))


def _selectors(spec: JSON) -> Iterator[JSON]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAntiAffinity", "podAffinity"):
        for terms in _TERMS:
            for entry in (affinity.get(kind) or {}).get(terms) or []:
                # A preferred term is wrapped with its weight.
                yield entry.get("podAffinityTerm", entry).get("labelSelector") or {}
    for constraint in spec.get("topologySpreadConstraints") or []:
        yield constraint.get("labelSelector") or {}


def _replace(selector: JSON, label: str, values: Mapping[str, str]) -> None:
    labels = selector.get("matchLabels") or {}
    if label in labels:
        labels[label] = values.get(labels[label], labels[label])
    for expression in selector.get("matchExpressions") or []:
        if expression.get("key") == label and expression.get("values"):
            expression["values"] = [values.get(value, value) for value in expression["values"]]


def _to_primary(names: Names) -> dict[str, str]:
    """The label's own value counts (O3), and the Deployment's name, which is all that Flagger looks at."""
    return {value: value + PRIMARY_SUFFIX for value in (names.target, names.value)}
