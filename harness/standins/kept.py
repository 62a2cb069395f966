"""What of a webhook's or an alert's body is kept: a few fields whose shape is known, and nothing that might be a credential."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_WORD: Final = re.compile(r"[A-Za-z][-A-Za-z0-9]{0,39}")
_TEXTS: Final = frozenset(
    {
        *("text", "title", "description", "summary", "fallback", "pretext", "content", "message"),
        *("eventMessage", "activityTitle", "activitySubtitle", "activityText", "value"),
    }
)
"""Keys under which the usual receivers of alerts take texts for people."""
_LONGEST: Final = 1000
_DEEPEST: Final = 12


def kept(body: bytes, *, alert: bool) -> dict[str, str]:
    """Return the fields of `timeline_outside.Call` that a body gives: rollout, phase, event_type, kind, message.

    Of an alert the texts for people are kept, of any other webhook at most the text of an event. Never fails.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    metadata = document.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    message = inner.get("eventMessage")
    texts = list(dict.fromkeys(_texts(document, 0))) if alert else [message]
    return {
        "rollout": _shaped(document.get("name"), _NAME),
        "phase": _shaped(document.get("phase"), _WORD),
        "event_type": _shaped(document.get("eventType") or inner.get("eventType"), _WORD),
        "kind": _shaped(document.get("type") or inner.get("type"), _WORD),
        "message": " | ".join(text for text in texts if isinstance(text, str))[:_LONGEST],
    }


def _shaped(value: object, shape: re.Pattern[str]) -> str:
    return value if isinstance(value, str) and shape.fullmatch(value) else ""


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                if key in _TEXTS and item.strip():
                    yield " ".join(item.split())
            else:
                yield from _texts(item, depth + 1)
