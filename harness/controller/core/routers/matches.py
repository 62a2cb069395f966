"""Conditions of a Canary on requests: `spec.service.match` and `spec.analysis.match`, and their product.

Both are written as Istio writes them. A list means "any of them", an entry "all of it". Who is in an A/B test must meet one entry of
each list, so the product has every pair.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.controller.core.decision import JSON

_MAPS: Final = ("headers", "queryParams", "sourceLabels", "withoutHeaders")
"""Fields of an entry that hold conditions by name; both sides' hold."""
_ONE_OF: Final = ("exact", "prefix", "regex")


def service_matches(canary: JSON) -> tuple[JSON, ...]:
    """Return the entries of `spec.service.match`; none means every request."""
    return tuple((canary["spec"].get("service") or {}).get("match") or ())


def analysis_matches(canary: JSON) -> tuple[JSON, ...]:
    """Return the entries of `spec.analysis.match`; none means that this is no A/B test."""
    return tuple((canary["spec"].get("analysis") or {}).get("match") or ())


def product(first: Sequence[JSON], second: Sequence[JSON]) -> tuple[JSON, ...]:
    """Return every pair of entries as one entry; an empty list is no condition. Where both name the same thing, `first` wins.

    Such a clash has no exact form, as a route holds one condition for each header; the narrower one is that of the test.
    """
    if not first or not second:
        return tuple(copy.deepcopy(list(first or second)))
    return tuple(_both(one, other) for one in first for other in second)


def _both(first: JSON, second: JSON) -> JSON:
    merged = copy.deepcopy(second)
    for field, value in copy.deepcopy(first).items():
        if field in _MAPS:
            fold = field in ("headers", "withoutHeaders")
            taken = {name.lower() if fold else name for name in value or {}}
            kept = {
                name: condition
                for name, condition in (merged.get(field) or {}).items()
                if (name.lower() if fold else name) not in taken
            }
            merged[field] = kept | (value or {})
        else:
            merged[field] = value
    return merged


def numbered(canary: JSON) -> Iterable[tuple[str, JSON]]:
    """Yield every entry with the path of its field, for messages."""
    for index, entry in enumerate(service_matches(canary)):
        yield f"spec.service.match[{index}]", entry
    for index, entry in enumerate(analysis_matches(canary)):
        yield f"spec.analysis.match[{index}]", entry


def condition_problem(path: str, condition: object, allowed: Sequence[str] = _ONE_OF) -> str:
    """Return what is wrong with a condition on one string (`{exact: x}`): it holds exactly one of `allowed`, and that is not empty."""
    ways = {} if not isinstance(condition, dict) else {k: v for k, v in condition.items() if v}
    if len(ways) == 1 and next(iter(ways)) in allowed:
        return ""
    found = ", ".join(sorted(ways)) or "nothing"
    return f"{path}: found {found}; allowed: exactly one of {', '.join(allowed)}, not empty"
