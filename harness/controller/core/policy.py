"""What whoever runs the controller has chosen for every Canary (spec canary-api 10); the defaults are Flagger's where it has the choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SELECTOR_LABELS: Final = ("app", "name", "app.kubernetes.io/name")
"""Keys that may select a workload, in order of preference."""
NO_VERDICT_TIMEOUT: Final = 300.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The choices; each is a flag of the controller."""

    selector_labels: tuple[str, ...] = SELECTOR_LABELS
    """Keys of the label that tells a target's pods apart, in order of preference. An existing primary has the one that it was made with."""
    include_label_prefix: tuple[str, ...] = ()
    """Prefixes of the target's labels and annotations that the primary gets too; `*` is all (`ownership.included`)."""
    cross_namespace_refs: bool = True
    """Whether MetricTemplates and AlertProviders of other namespaces may be used."""
    no_verdict_timeout: float = NO_VERDICT_TIMEOUT
    """Seconds for which a metrics provider may give no verdict without an interruption (429, time-outs) before that counts as failed checks; 0:
    it does from the first on, as in Flagger."""
    most_analyses: int | None = None
    """How many Canaries may be under analysis at a time (deviation D4); None: any number."""
    most_analyses_per_namespace: int | None = None
    """The same for each namespace."""

    @property
    def limited(self) -> bool:
        """Whether there is a limit on analyses; without one nothing of it is ever asked or said."""
        return self.most_analyses is not None or self.most_analyses_per_namespace is not None


DEFAULT: Final = Policy()
