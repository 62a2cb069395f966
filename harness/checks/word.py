"""One name that an expression may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Word:
    """One name that an expression may use."""

    type: str
    doc: str
    example: Any
    choices: tuple[str, ...] = ()
    """All values that a string can have, where they are few; comparing with another one is an error."""
