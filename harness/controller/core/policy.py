"""What whoever runs the controller has chosen for every Canary (spec canary-api 10); the defaults are Flagger's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SELECTOR_LABELS: Final = ("app", "name", "app.kubernetes.io/name")
"""Keys that may select a workload, in order of preference."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The choices; each is a flag of the controller."""

    selector_labels: tuple[str, ...] = SELECTOR_LABELS
    """Keys of the label that tells a target's pods apart, in order of preference. An existing primary has the one that it was made with."""
    include_label_prefix: tuple[str, ...] = ()
    """Prefixes of the target's labels and annotations that the primary gets too; `*` is all (`ownership.included`)."""
    cross_namespace_refs: bool = True
    """Whether MetricTemplates and AlertProviders of other namespaces may be used."""


DEFAULT: Final = Policy()
