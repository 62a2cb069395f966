"""Session affinity: the cookies that keep a client on the version it met first (spec state-machine 5, deviation O19).

A cookie is derived, not drawn: from the Canary's UID, the revision under analysis, the role and the cookie before it. So a pass that
was cut off between route and status comes to the same cookie again, and a cookie in the status that does not follow from them belongs
to another run (or to another controller) and is replaced.

- The canary's cookie is new for each run, also when the same revision is tried again, since the one before it goes in.
- The primary's cookie is new for each step (each weight), and lives for one interval.
- While nothing goes to the canary, the cookie of the last run is expired on whoever still sends it, with the attributes that it was set
  with: a browser deletes a cookie only under the same Domain and Path.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.settings import Settings

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.routers.base import Split, Wish

CANARY_COOKIE: Final = "sessionAffinityCookie"
PREVIOUS_COOKIE: Final = "previousSessionAffinityCookie"
PRIMARY_COOKIE: Final = "primarySessionAffinityCookie"
DEFAULT_MAX_AGE: Final = 86400
"""Seconds that a client stays on the canary."""
_FIELD: Final = "spec.analysis.sessionAffinity"
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
_SAME_SITE: Final = ("Strict", "Lax", "None")
_SPECIAL: Final = frozenset(".+*?()|[]{}^$\\")
_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class Cookies:
    """The cookies of one split as `name=value`; empty for none."""

    canary: str = ""
    """Set on the canary's answers; who sends it goes to the canary."""
    primary: str = ""
    """The same for the primary; empty too without `primaryCookieName`."""
    previous: str = ""
    """Of the run before this one. Expired while nothing goes to the canary."""


def settings_of(canary: JSON) -> JSON:
    """Return `spec.analysis.sessionAffinity`; empty when there is none."""
    return ((canary["spec"].get("analysis") or {}).get("sessionAffinity")) or {}


def cookies(canary: JSON, split: Split) -> Cookies:
    """Return the cookies for a split: the same before and after they were written to the status."""
    wanted = settings_of(canary)
    status: JSON = canary.get("status") or {}
    held = str(status.get(CANARY_COOKIE) or "")
    before = str(status.get(PREVIOUS_COOKIE) or "")
    if not wanted:
        return Cookies()
    if split.canary <= 0:
        return Cookies(previous=held or before)
    name = str(wanted["cookieName"])
    fresh = _minted(canary, name, "canary", before)
    if held and held != fresh:
        before = held
        fresh = _minted(canary, name, "canary", before)
    other = str(wanted.get("primaryCookieName") or "")
    primary = _minted(canary, other, "primary", f"{before} {split.canary}") if other else ""
    return Cookies(fresh, primary, before)


def status(wish: Wish) -> JSON:
    """Return what the status must remember of the cookies: only fields that differ, null to remove one."""
    if not settings_of(wish.canary):
        return {}
    held: JSON = wish.canary.get("status") or {}
    now = cookies(wish.canary, wish.split)
    wanted = {
        CANARY_COOKIE: now.canary,
        PREVIOUS_COOKIE: now.previous,
        PRIMARY_COOKIE: now.primary,
    }
    return {
        field: value or None for field, value in wanted.items() if (held.get(field) or "") != value
    }


def set_canary(canary: JSON, cookie: str) -> str:
    """Return the Set-Cookie header that keeps a client on the canary."""
    wanted = settings_of(canary)
    return _header(wanted, cookie, int(wanted.get("maxAge") or DEFAULT_MAX_AGE))


def set_primary(canary: JSON, cookie: str) -> str:
    """Return the Set-Cookie header that keeps a client on the primary for one interval."""
    return _header(settings_of(canary), cookie, max(round(Settings.of(canary).interval), 1))


def expire(canary: JSON, cookie: str) -> str:
    """Return the Set-Cookie header that makes a client forget a cookie."""
    return _header(settings_of(canary), cookie, -1)


def pattern(cookie: str) -> str:
    """Return a regular expression for a Cookie header that has exactly this cookie among others.

    It is anchored and has no escape sequences but of punctuation, since some gateways match parts and each has its own dialect.
    """
    literal = "".join(f"\\{char}" if char in _SPECIAL else char for char in cookie)
    return f"^(.*; *)?{literal} *(;.*)?$"


def problem(canary: JSON) -> str:
    """Return what is wrong with `spec.analysis.sessionAffinity`; empty when nothing is."""
    wanted = settings_of(canary)
    if not wanted:
        return ""
    for field in ("cookieName", "primaryCookieName"):
        name = wanted.get(field)
        if name is None and field == "primaryCookieName":
            continue
        if not _TOKEN.fullmatch(str(name or "")):
            return f"{_FIELD}.{field}: {name!r} is no name for a cookie; allowed: letters, digits and !#$%&'*+-.^_`|~"
    for field in ("domain", "path"):
        text = str(wanted.get(field) or "")
        if not text.isprintable() or any(char in ";," for char in text):
            return f"{_FIELD}.{field}: {text!r} may hold neither ';' nor ',' nor control characters"
    same_site = wanted.get("sameSite")
    if same_site not in (None, "", *_SAME_SITE):
        return f"{_FIELD}.sameSite: {same_site!r}; allowed: {', '.join(_SAME_SITE)}"
    age = wanted.get("maxAge")
    if age is not None and age < 0:
        return f"{_FIELD}.maxAge: {age}; allowed: seconds from 1 (0 means {DEFAULT_MAX_AGE})"
    return ""


def _minted(canary: JSON, name: str, role: str, before: str) -> str:
    applied = (canary.get("status") or {}).get("lastAppliedSpec") or ""
    told = json.dumps([canary["metadata"]["uid"], applied, role, before])
    return f"{name}={hashlib.sha256(told.encode()).hexdigest()[:_LENGTH]}"


def _header(wanted: JSON, cookie: str, age: int) -> str:
    parts = [cookie, f"Max-Age={age}"]
    if wanted.get("domain"):
        parts.append(f"Domain={wanted['domain']}")
    if wanted.get("httpOnly"):
        parts.append("HttpOnly")
    if wanted.get("partitioned"):
        parts.append("Partitioned")
    if wanted.get("path"):
        parts.append(f"Path={wanted['path']}")
    if wanted.get("sameSite"):
        parts.append(f"SameSite={wanted['sameSite']}")
    if wanted.get("secure"):
        parts.append("Secure")
    return "; ".join(parts)
