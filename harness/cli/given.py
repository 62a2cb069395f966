"""Whether an option was given, or has its value from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether the parameter `name` stands on the command line, not in the environment or in the defaults."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
