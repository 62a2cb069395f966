"""Durations as people write them in scenario files."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

PATTERN: Final = r"^(?=\d)(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?(\d+(\.\d+)?ms)?$"
"""What a duration looks like; also the pattern in the published JSON schema."""
EXAMPLES: Final = ("500ms", "1s", "1m30s", "2m", "1h")
_SHAPE: Final = re.compile(PATTERN)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(value: object) -> float:
    """Return the seconds of a duration such as `1m30s`.

    Raises ValueError for anything else; numbers are refused because their unit would be a guess.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        msg = "must be a duration"
        raise ValueError(msg)  # noqa: TRY004 - pydantic takes only ValueError for a finding
    if isinstance(value, int | float):
        hint = "must not be negative" if value < 0 else f"has no unit; for seconds write {value}s"
        raise ValueError(hint)  # noqa: TRY004 - the same
    text = value.strip()
    if text.startswith("-"):
        msg = "must not be negative"
        raise ValueError(msg)
    if not _SHAPE.match(text):
        msg = f"{value!r} is not a duration"
        raise ValueError(msg)
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: float) -> str:
    """Return a duration the way scenario files write it, e.g. `1m30s`."""
    milliseconds = round(seconds * 1000)
    parts: list[str] = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "pattern": PATTERN, "examples": list(EXAMPLES)}),
]
"""A duration; validated it is a float of seconds."""
