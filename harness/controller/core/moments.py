"""Times as the API writes them, to and from seconds since the epoch, and durations as Go writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def stamp(now: float) -> str:
    """Return `now` (seconds since the epoch) as RFC 3339 UTC with milliseconds.

    Fractions, because one-second intervals are paced from times kept in the status (B1); every RFC 3339 reader accepts them.
    """
    moment = datetime.fromtimestamp(now, tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def seconds(text: object) -> float | None:
    """Return an RFC 3339 time as seconds since the epoch; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def duration(text: object) -> float | None:
    """Return a duration such as `90s` or `1m30s` in seconds; None when it is none."""
    if not isinstance(text, str) or not text:
        return None
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
