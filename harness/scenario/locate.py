"""From a place in a document to a line in its file."""

from __future__ import annotations

from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""Keys and indexes from the top of a document."""


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Positions:
    """Where the keys and values of one document stand."""

    keys: dict[Path, Position] = field(default_factory=dict)
    values: dict[Path, Position] = field(default_factory=dict)

    def of(self, path: Path) -> Position | None:
        """Return where the value at `path` starts; for one that is missing, where its nearest parent is named."""
        found = self.values.get(path)
        while found is None and path:
            path = path[:-1]
            found = self.keys.get(path) or self.values.get(path)
        return found

    def of_key(self, path: Path) -> Position | None:
        """Return where the key at the end of `path` stands, else where `of` points."""
        return self.keys.get(path) or self.of(path)


def dotted(path: Path) -> str:
    """Return how people write a path, e.g. `spec.steps[0].until`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() or part.replace("-", "_").isidentifier():
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text
