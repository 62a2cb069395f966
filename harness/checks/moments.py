"""How it was when a step held: what `at["…"]` is, for expressions that compare then with now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.section import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE: Final = "one"
"""Key of the only view: a map from names of steps to moments."""
KEPT: Final = ("rollout", "primary", "target", "apex", "route")
"""Variables that a moment has, as far as they were known. Lists are not among them: they would be handed over at every evaluation."""


class Moments:
    """The section `at`."""

    def __init__(self) -> None:
        self.section = Section()
        self.section.put(ONE, {})

    def held(self, step: str, t: float, world: Mapping[str, Any]) -> None:
        """A step held in this world. Views are never changed, so they can be kept as they are."""
        moment = {"t": float(t), **{name: world[name] for name in KEPT if name in world}}
        self.section.put(ONE, {**(self.section.get(ONE) or {}), step: moment})
