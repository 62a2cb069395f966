"""Values of a controller's flags, as they stand in a scenario and in a recording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

from harness.model.standins import GivenError

FlagValue = str | int | float | bool
FORMS: Final = ("a text", "a number", "true", "false", "null")


def parse_flag(value: object) -> FlagValue | None:
    """Return the value of a flag as it is; None is one that is not given. Raises GivenError."""
    if isinstance(value, float) and not math.isfinite(value):
        msg = "must be a finite number"
        raise GivenError(msg, FORMS)
    if value is None or isinstance(value, str | int | float):
        return value
    msg = f"must be one value, not a {'list' if isinstance(value, list) else 'mapping'}"
    raise GivenError(msg, FORMS)


Flag = Annotated[
    FlagValue | None,
    BeforeValidator(parse_flag),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "null")]}),
]
"""The value of a flag in a scenario."""


def read_flags(value: object) -> dict[str, FlagValue] | None:
    """Read flags back from their JSON form; None where there are none. Never fails."""
    if not isinstance(value, Mapping):
        return None
    return {
        str(name): given for name, given in value.items() if isinstance(given, str | int | float)
    }
