"""Webhooks: which there are, what is posted to them, and what is wrong with an entry (spec canary-api 6).

When a type is called, and what a failure does, is the transition table's business; how a request is made, repeated and judged, the shell's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from harness.controller.core.analysis.entries import fingerprint, listed, place
from harness.controller.core.calls import Call
from harness.controller.core.moments import duration

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Severity

ROLLOUT: Final = "rollout"
EVENT: Final = "event"
TYPES: Final = (
    "confirm-rollout",
    "pre-rollout",
    ROLLOUT,
    "confirm-traffic-increase",
    "confirm-promotion",
    "rollback",
    "post-rollout",
    EVENT,
)
DEFAULT_TIMEOUT: Final = 10.0
"""Seconds for one attempt."""

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619


def kind_of(hook: JSON) -> str:
    """Return an entry's type; an empty one means rollout."""
    return str(hook.get("type") or ROLLOUT)


def hooks(canary: JSON, kind: str) -> tuple[JSON, ...]:
    """Return the entries of a type, in list order."""
    return tuple(hook for hook in listed(canary, "webhooks") if kind_of(hook) == kind)


def timeout(hook: JSON) -> float:
    """Return the seconds that one attempt gets."""
    return duration(hook.get("timeout")) or DEFAULT_TIMEOUT


def retries(hook: JSON) -> int:
    """Return how often a failed attempt is repeated."""
    given = hook.get("retries")
    return int(given) if isinstance(given, int | float) else 0


def muted(hook: JSON) -> bool:
    """Whether a closed gate sends no alert."""
    return bool(hook.get("muteAlert"))


def call(canary: JSON, hook: JSON, phase: str, occasion: str) -> Call:
    """Return the question to one entry of `hooks()`.

    `occasion` says when: it is different each time the hook is to be asked again.
    """
    name = str(hook.get("name") or kind_of(hook))
    key = f"webhook/{_position(canary, hook)}/{name}/{fingerprint(hook)}/{phase}/{occasion}"
    return Call(key, "webhook", name, hook, payload(canary, phase, hook.get("metadata")))


def payload(canary: JSON, phase: str, metadata: object = None) -> JSON:
    """Return the body that is posted. `metadata` is left out when there is none."""
    meta = canary["metadata"]
    body: JSON = {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "phase": phase,
        "checksum": checksum(canary),
    }
    if metadata and isinstance(metadata, dict):
        body["metadata"] = metadata
    return body


def event_payload(
    canary: JSON, message: str, severity: Severity, at: float, hook: JSON | None = None
) -> JSON:
    """Return the body for a webhook of type event, or for the global one (`hook` is None).

    `at`: seconds since the epoch. The entry's own metadata cannot replace what the event says.
    """
    own = (hook or {}).get("metadata")
    facts = {
        "eventMessage": message,
        "eventType": severity,
        "timestamp": str(int(at * 1000)),
    }
    metadata = {**(own if isinstance(own, dict) else {}), **facts}
    phase = str((canary.get("status") or {}).get("phase") or "")
    return payload(canary, phase, metadata)


def problem(canary: JSON) -> str:
    """Return what is wrong with the first entry that cannot work, with the allowed values; empty when all can."""
    for position, hook in enumerate(listed(canary, "webhooks")):
        wrong = _wrong(hook)
        if wrong:
            return f"{place('webhooks', position, hook)}: {wrong}"
    return ""


def _wrong(hook: JSON) -> str:
    if not hook.get("url"):
        return "url is missing"
    if not _is_http(hook["url"]):
        return "url is not an address such as http://HOST/PATH or https://HOST/PATH"
    if kind_of(hook) not in TYPES:
        return f"type: {hook['type']!r} is unknown; allowed: {', '.join(TYPES)}"
    given = hook.get("timeout")
    if given and not duration(given):
        return f"timeout: {given!r} is not a duration above zero; e.g. 30s, 2m or 1m30s"
    again = hook.get("retries")
    if again is not None and (not isinstance(again, int | float) or again < 0 or again % 1):
        return f"retries: {again!r} is not a whole number from 0"
    metadata = hook.get("metadata")
    if metadata is not None and not _strings(metadata):
        return "metadata is not a map of texts"
    return ""


def _is_http(url: object) -> bool:
    try:
        parts = urlsplit(str(url))
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _strings(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _position(canary: JSON, hook: JSON) -> int:
    # By identity first: the same entry listed twice is asked twice.
    every = listed(canary, "webhooks")
    same = (index for index, one in enumerate(every) if one is hook)
    equal = (index for index, one in enumerate(every) if one == hook)
    return next(same, next(equal, len(every)))


def checksum(canary: JSON) -> str:
    """Return a short text that changes with the tracked configs or the applied template, and with nothing else.

    Receivers compare it with what another controller sent, so it is the legacy recipe: FNV-1a of 32 bits over Go's way to print
    both, its decimal digits spelled in an alphabet without vowels. Source: the specification's vectors, webhook_checksum.
    """
    status = canary.get("status") or {}
    configs = status.get("trackedConfigs")
    printed = "<nil>"
    if isinstance(configs, dict):
        printed = "map[" + " ".join(f"{key}:{configs[key]}" for key in sorted(configs)) + "]"
    text = (
        "(struct { TrackedConfigs *map[string]string; LastAppliedSpec string })"
        f"{{TrackedConfigs:(*map[string]string){printed}"
        f" LastAppliedSpec:(string){status.get('lastAppliedSpec') or ''}}}"
    )
    value = _FNV_OFFSET
    for byte in text.encode("utf-8", "replace"):
        value = (value ^ byte) * _FNV_PRIME % 2**32
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))
