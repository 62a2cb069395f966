"""Texts from outside, made fit for messages: short, on one line, and without what was given in confidence."""

from __future__ import annotations

import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST: Final = 300
"""Characters of an answer that a message quotes."""
MASK: Final = "***"
_SHORTEST_SECRET: Final = 4
"""Shorter texts would be masked in the middle of ordinary words."""


def cleaned(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` on one line, without control characters and secrets, and not longer than LONGEST."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, MASK)
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= LONGEST else flat[:LONGEST] + "…"


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the parts of a URL that no message may repeat: the whole of it, its path, credentials and query."""
    try:
        parts = urlsplit(url)
        values = [value for _, value in parse_qsl(parts.query)]
        login = [unquote(part) for part in (parts.username, parts.password) if part]
        userinfo = parts.netloc.rpartition("@")[0]
    except ValueError:
        return (url,)
    path = [parts.path] if parts.path.strip("/") else []
    return (url, userinfo, parts.query, *login, *values, *path)


def fault(error: BaseException) -> dict[str, str]:
    """Return type and place of an unexpected error, for the log. Not its text, which may hold an address or a token."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "where": where}


def host_of(url: str) -> str:
    """Return host and port of a URL, which is all of it that messages show."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "an address without a host"
    except ValueError:
        return "an address that is no URL"
