"""JSON text from an API server, with its numbers as they were written.

Python reads `1.10` and `1e3` as floats and would write `1.1` and `1000.0`. Where the text itself counts (a hash
over a raw object), that would be another value; so such numbers remember their text. Whole numbers are exact.
"""

from __future__ import annotations

import json
from typing import Any, Final, Self


class Written(float):
    """A number with a fraction or an exponent, and its text in `written`."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, text: str | float) -> Self:
        """Read a number."""
        number = super().__new__(cls, text)
        number.written = str(text)
        return number


_DECODER: Final = json.JSONDecoder(parse_float=Written)


def decode(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError for anything else."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())
