"""What a Flagger of some version says about itself and about targets. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to one question."""

    hash: str = ""
    """What the version would store as lastAppliedSpec."""
    configs: Mapping[str, str] | None = None
    """What it would store as trackedConfigs; None when it tracks none for this kind, or cannot."""
    problem: str = ""
    """Why there is no hash."""
    configs_problem: str = ""
    """Why there are no configs: something that is referred to is missing."""


@dataclass(frozen=True, slots=True)
class Flagger:
    """What a version says about itself, and its answers in the order of the questions."""

    kubernetes_api: str
    """Version of the Kubernetes types that it was built with, e.g. `v0.36.2`."""
    fenced: bool
    """Whether it keeps a change fence itself, and so understands the statuses as they are."""
    answers: Sequence[Told] = field(default=())
