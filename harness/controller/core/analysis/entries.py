"""Entries of `spec.analysis`, as lists of raw dicts, and how messages name them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON


def listed(canary: JSON, field: str) -> tuple[JSON, ...]:
    """Return the entries of `spec.analysis.<field>` in list order."""
    analysis = (canary.get("spec") or {}).get("analysis") or {}
    return tuple(entry for entry in analysis.get(field) or () if isinstance(entry, dict))


def place(field: str, position: int, entry: JSON) -> str:
    """Return how messages name an entry. Never with its URL, which may hold a token."""
    name = entry.get("name")
    return f"spec.analysis.{field}[{position}]" + (f" ({name})" if name else "")


def fingerprint(entry: JSON) -> str:
    """Return eight hex digits that change with an entry, so that an edited entry is a new question."""
    text = json.dumps(entry, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def outside(canary: JSON, reference: object) -> str:
    """Return the namespace that a reference names when it is not the Canary's own, or an empty string."""
    named = reference.get("namespace") if isinstance(reference, dict) else None
    return str(named) if named and named != canary["metadata"].get("namespace") else ""
