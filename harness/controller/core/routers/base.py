"""What a router is: it keeps the objects that split traffic in the state that the Canary's status asks for.

A router decides nothing. The split is worked out from phase and status (`core/strategies/traffic.py`), in every pass anew, and the router
returns the writes that make it so: none when nothing differs. So a drifted route is mended with its weights kept (O18), a crash between
route and status is repaired, and another mesh is one more file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Objects, Write
    from harness.controller.core.names import Names


@dataclass(frozen=True, slots=True)
class Split:
    """How traffic is divided, in percent."""

    canary: int = 0
    mirror: bool = False
    """The primary serves everything, and the canary gets a copy."""

    @property
    def primary(self) -> int:
        """The primary's share."""
        return 100 - self.canary


@dataclass(frozen=True, slots=True)
class Wish:
    """What a router works on, as read in this pass."""

    canary: JSON
    """The raw Canary, status included (cookies of session affinity are kept there)."""
    names: Names
    split: Split = field(default_factory=Split)
    objects: Objects = field(default_factory=dict)
    target: JSON | None = None
    running: bool = False
    """Whether a run is under way, and not one that repairs the primary: only then an A/B test is one."""


class Router(Protocol):
    """A way to split traffic. Implementations have no state."""

    name: str
    """The provider, as people write it in `spec.provider`."""
    splits: bool
    """Whether it can give the canary a share; provider kubernetes cannot."""
    mirrors: bool
    needs: tuple[str, ...]
    """Plurals of what it reads and writes, beyond Services."""

    def problem(self, canary: JSON) -> str:
        """Return why this Canary cannot be routed, naming field and allowed values; empty when it can. Reads nothing but the Canary."""
        ...

    def route(self, wish: Wish) -> tuple[Write, ...]:
        """Return the writes that put the split in place; nothing when it is. Foreign fields of existing objects are kept."""
        ...

    def waiting(self, wish: Wish) -> str:
        """Return what the route still waits for (not accepted yet, an older generation); empty when it is in force."""
        ...

    def status(self, wish: Wish) -> JSON:
        """Return fields of the Canary's status that the split needs to be remembered (cookies); empty for none, null to remove."""
        ...

    def revert(self, wish: Wish) -> tuple[Write, ...]:
        """Return the writes that undo it, before a Canary with revertOnDeletion goes."""
        ...
