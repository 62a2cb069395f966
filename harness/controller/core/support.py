"""What is refused, and why: one sentence on the Canary instead of a silent half (G1, A6, case C17).

A refused Canary gets a condition and an event. Nothing else is written, neither to its target nor to its phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.names import SELECTOR_LABELS, Names, problem, target_name
from harness.controller.core.settings import provider

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

PROVIDERS: Final = ("kubernetes",)
TARGET_KINDS: Final = ("Deployment",)

# Field, whether the Canary uses it, what to do instead. Everything here is API that this controller does not act on yet;
# to ignore it would promote without the gate, or without the alert, that somebody relies on.
_ANALYSIS_FIELDS: Final = ("metrics", "webhooks", "alerts")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a Canary is left alone."""

    reason: str
    """One word for machines: Unsupported, Invalid, NameTooLong or NoSelectorLabel."""
    message: str


def refusal(canary: JSON, names: Names, target: JSON | None) -> Refusal | None:
    """Return why this Canary cannot be served, or None. Without a target only the Canary itself is judged."""
    return _unsupported(canary) or _invalid(canary, names, target)


def _unsupported(canary: JSON) -> Refusal | None:
    spec: JSON = canary["spec"]
    wanted = provider(canary)
    if wanted not in PROVIDERS:
        how = (
            "spec.provider" if spec.get("provider") else "spec.provider (unset, which means istio)"
        )
        return _not_yet(f"{how}: {wanted!r} is not implemented; allowed: {', '.join(PROVIDERS)}")
    kind = (spec.get("targetRef") or {}).get("kind")
    if kind not in TARGET_KINDS:
        return _not_yet(
            f"spec.targetRef.kind: {kind!r} is not implemented; allowed: {', '.join(TARGET_KINDS)}"
        )
    if spec.get("autoscalerRef"):
        return _not_yet("spec.autoscalerRef is not implemented; remove it")
    if spec.get("revertOnDeletion"):
        return _not_yet("spec.revertOnDeletion: true is not implemented; remove it")
    analysis: JSON = spec.get("analysis") or {}
    used = [f"spec.analysis.{name}" for name in _ANALYSIS_FIELDS if analysis.get(name)]
    if used:
        verb = "is" if len(used) == 1 else "are"
        return _not_yet(f"{', '.join(used)} {verb} not implemented; remove to go on without")
    return None


def _invalid(canary: JSON, names: Names, target: JSON | None) -> Refusal | None:
    if not target_name(canary):
        return Refusal("Invalid", "spec.targetRef.name is missing")
    if not (canary["spec"].get("service") or {}).get("port"):
        return Refusal("Invalid", "spec.service.port is missing")
    affinity = (canary["spec"].get("analysis") or {}).get("sessionAffinity") or {}
    cookie = affinity.get("cookieName")
    if cookie and cookie == affinity.get("primaryCookieName"):
        return Refusal(
            "Invalid",
            f"spec.analysis.sessionAffinity: cookieName and primaryCookieName are both {cookie!r};"
            " they must differ",
        )
    if target is not None and not names.label:
        return Refusal(
            "NoSelectorLabel",
            f"Deployment {names.target!r}: spec.selector.matchLabels has none of the labels"
            f" {', '.join(SELECTOR_LABELS)}",
        )
    wrong = problem(names)
    return Refusal("NameTooLong" if wrong.too_long else "Invalid", wrong.message) if wrong else None


def _not_yet(message: str) -> Refusal:
    return Refusal("Unsupported", message)
