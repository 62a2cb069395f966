"""What a benchmark is going to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StormPlan:
    """The storm, the same for every subject."""

    canaries: int
    subjects: tuple[str, ...]
    out: Path
    idle: float = 60.0
    """Seconds that nothing is changed."""
    upgrade: bool = False
    """Whether the subject is stopped and started again over the settled objects."""
    restarts: int = 0
    """How often that is done once more, in a loop."""
    profile: bool = False
    """Whether the bundled controller runs under a profiler."""
    seed: int = 1
    binaries: str = "auto"
    reproduce: str = ""
    """The command that does the same again."""
