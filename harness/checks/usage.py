"""Which parts of the world an expression uses, so that it is not handed more, nor asked again when something else changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.checks.vocabulary import VARIABLES


@dataclass(slots=True)
class Usage:
    """Which fields of each variable are used; None: the variable as a whole."""

    fields: dict[str, set[str] | None] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    """List variables of which it matters how often an element is there."""

    def touch(self, variable: str) -> None:
        """Note that a variable is used, no field of it so far."""
        self.fields.setdefault(variable, set())

    def add(self, variable: str, name: str) -> None:
        """Note that a field of a variable, or of its elements, is used."""
        used = self.fields.setdefault(variable, set())
        if used is not None:
            used.add(name)

    def whole(self, variable: str) -> None:
        """Note that a variable is used as a value, with all its fields."""
        self.fields[variable] = None

    def sets(self) -> frozenset[str]:
        """Return the list variables of which only matters which elements there are: they stand in all() and exists() alone."""
        lists = (name for name, word in VARIABLES.items() if word.type.startswith("list("))
        return frozenset(
            name for name in lists if name not in self.counted and self.fields.get(name) is not None
        )
