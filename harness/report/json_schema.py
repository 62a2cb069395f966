"""What the schemas of our JSON outputs have in common: objects that have exactly their own keys, and stable texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def close(definitions: Iterable[dict[str, Any]]) -> None:
    """Make every object among these definitions refuse unknown keys and require all of its own."""
    for definition in definitions:
        if "properties" in definition:
            definition["additionalProperties"] = False
            definition["required"] = sorted(definition["properties"])


def document(title: str, body: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the whole schema, its definitions in order of their names."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **body,
        "title": title,
        "$defs": dict(sorted(definitions.items())),
    }
