"""Router of provider kubernetes: there is no traffic to split, so it writes nothing (spec objects 7).

The three Services belong to `core/services.py`, which every provider needs; apex and `-primary` always select the primary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core.routers.knative import knative_target_problem

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Write
    from harness.controller.core.routers.base import Wish


class KubernetesRouter:
    """Splits nothing."""

    name: str = "kubernetes"
    splits: bool = False
    mirrors: bool = False
    needs: tuple[str, ...] = ()

    def problem(self, canary: JSON) -> str:
        """See Router. What asks for traffic (weights, match, mirror) falls back to blue-green, as specified, and is no problem."""
        return knative_target_problem(canary, self.name)

    def route(self, _wish: Wish) -> tuple[Write, ...]:
        """See Router."""
        return ()

    def waiting(self, _wish: Wish) -> str:
        """See Router."""
        return ""

    def status(self, _wish: Wish) -> JSON:
        """See Router."""
        return {}

    def revert(self, _wish: Wish) -> tuple[Write, ...]:
        """See Router."""
        return ()
