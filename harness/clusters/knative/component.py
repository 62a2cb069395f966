"""One program of Knative, as its site starts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Component:
    """A program with its arguments and its environment, beside the little that every process gets."""

    name: str
    """As its log and its process are called: `knative-webhook`."""
    program: Path
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "name": self.name,
            "program": str(self.program),
            "args": self.args,
            "env": self.env,
        }

    @staticmethod
    def of(plain: dict[str, Any]) -> Component:
        """Return what `plain` returned."""
        return Component(
            plain["name"], Path(plain["program"]), tuple(plain["args"]), dict(plain["env"])
        )
