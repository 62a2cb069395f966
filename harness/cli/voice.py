"""How commands speak: results on standard output, progress on standard error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable


def progress() -> Callable[[str], None]:
    """Return a function that prints a line of progress with the seconds since now."""
    began = time.monotonic()

    def say(line: str) -> None:
        typer.echo(f"[{time.monotonic() - began:6.1f} s] {line}", err=True)

    return say
