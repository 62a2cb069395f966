"""Merge patches that hold what differs and nothing else (RFC 7386)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core.canonical import same, without_nulls

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON


def difference(held: JSON, wanted: JSON) -> JSON:
    """Return the JSON merge patch that turns `held` into `wanted`; empty when both are equal, null counting as absent.

    Lists are replaced as a whole.
    """
    patch: JSON = {}
    for key in {**held, **wanted}:
        old, new = held.get(key), wanted.get(key)
        if same(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[key] = difference(old, new)
        else:
            patch[key] = without_nulls(new)
    return patch
