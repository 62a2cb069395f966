"""What is refused, and why: one sentence on the Canary instead of a silent half (G1, A6, case C17).

A refused Canary gets a condition and an event. Nothing else is written, neither to its target nor to its phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.controller.core import alerts, autoscalers, layout, restore, schema
from harness.controller.core.analysis import metrics, webhooks
from harness.controller.core.names import Names, problem, target_name
from harness.controller.core.ownership import controller_of
from harness.controller.core.routers.registry import PROVIDERS, router_for
from harness.controller.core.settings import Settings, provider
from harness.controller.core.targets.registry import KINDS, target_for

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, World
    from harness.controller.core.policy import Policy

KNATIVE = "knative"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a Canary is left alone."""

    reason: str
    """One word for machines: Unsupported, Invalid, NameTooLong, NoSelectorLabel, Missing or Conflict."""
    message: str


def refusal(canary: JSON, names: Names, world: World) -> Refusal | None:
    """Return why this Canary cannot be served, or None. Without a target only the Canary itself is judged."""
    return (
        _unsupported(canary)
        or _dropped(world)
        or _invalid(canary, world.policy)
        or _surroundings(world)
        or _target(canary, names, world)
    )


def _unsupported(canary: JSON) -> Refusal | None:
    spec: JSON = canary["spec"]
    wanted = provider(canary)
    if router_for(canary) is None:
        how = (
            "spec.provider" if spec.get("provider") else "spec.provider (unset, which means istio)"
        )
        return _not_yet(f"{how}: {wanted!r} is not implemented; allowed: {', '.join(PROVIDERS)}")
    if target_for(canary) is None:
        kind = (spec.get("targetRef") or {}).get("kind")
        return _not_yet(f"spec.targetRef.kind: {kind!r} is not implemented; allowed: {KINDS}")
    return None


def _dropped(world: World) -> Refusal | None:
    return _not_yet(schema.refusal(world.crd_drops)) if world.crd_drops else None


def _invalid(canary: JSON, policy: Policy) -> Refusal | None:
    if not target_name(canary):
        return _wrong("spec.targetRef.name is missing")
    router, target = router_for(canary), target_for(canary)
    # Knative makes the Services of its targets itself.
    knative = target is not None and target.plural == "kservices"
    if not knative and not (canary["spec"].get("service") or {}).get("port"):
        return _wrong("spec.service.port is missing")
    if router is None or target is None:  # said already
        return None
    if (router.name == KNATIVE) != (target.plural == "kservices"):
        return _wrong(
            f"spec.provider {provider(canary)!r} and a target of kind {target.kind} do not go together: provider knative"
            " needs a Service of serving.knative.dev/v1, and only that provider takes one"
        )
    affinity = (canary["spec"].get("analysis") or {}).get("sessionAffinity") or {}
    cookie = affinity.get("cookieName")
    if cookie and cookie == affinity.get("primaryCookieName"):
        return _wrong(
            f"spec.analysis.sessionAffinity: cookieName and primaryCookieName are both {cookie!r};"
            " they must differ"
        )
    settings = Settings.of(canary, splits=router.splits, mirrors=router.mirrors)
    if wrong := restore.problem(settings, target) or layout.problem(canary, target):
        return _wrong(wrong)
    if settings.strategy == "weights" and not settings.steps and not settings.skip_analysis:
        return _wrong(
            "spec.analysis has no steps: give one of iterations, stepWeight (1 to 100) or stepWeights"
        )
    found = (
        router.problem(canary)
        or autoscalers.problem(canary)
        or webhooks.problem(canary)
        or metrics.problem(canary, cross_namespace=policy.cross_namespace_refs)
        or alerts.problem(canary, cross_namespace=policy.cross_namespace_refs)
    )
    return _wrong(found) if found else None


def _surroundings(world: World) -> Refusal | None:
    if world.rival:
        return Refusal(
            "Conflict",
            f"Canary {world.rival} has the same target and is older; delete one of the two",
        )
    if world.unmeasurable:
        return _not_yet(world.unmeasurable)
    for plural, why in sorted(world.absent.items()):
        return Refusal("Missing", f"{plural} cannot be watched: {why}")
    return None


def _target(canary: JSON, names: Names, world: World) -> Refusal | None:
    kind, target = target_for(canary), world.target
    if target is not None and kind is not None:
        if kind.pods and not names.label:
            return Refusal(
                "NoSelectorLabel",
                f"{kind.kind} {names.target!r}: spec.selector.matchLabels has none of the labels"
                f" {', '.join(world.policy.selector_labels)}",
            )
        if wrong := kind.problem(target):
            return _wrong(wrong)
        if kind.pods and (wrong := _unselected(canary, names, world.primary)):
            return Refusal("Conflict", wrong)
        if (
            kind.pods
            and not kind.copies
            and (wrong := layout.conflict(canary, names, world.objects))
        ):
            return _wrong(wrong)
    found = problem(names)
    return Refusal("NameTooLong" if found.too_long else "Invalid", found.message) if found else None


def _unselected(canary: JSON, names: Names, primary: JSON | None) -> str:
    """Return why Services that select by the target's label would not find our primary's pods; empty when they do.

    Selectors are for life, so this happens when --selector-labels was changed, or the target made again with another label.
    """
    owner = controller_of(primary) if primary is not None else None
    if primary is None or owner is None or owner.get("uid") != canary["metadata"]["uid"]:
        return ""  # not ours, or nobody's: that has a row of its own
    selected = primary["spec"]["selector"].get("matchLabels") or {}
    if selected.get(names.label) == names.primary_value:
        return ""
    return (
        f"{names.primary!r} does not select {names.label}={names.primary_value}, as a primary of {names.target!r} must: it was"
        " made for another label, and nothing is written while it is there"
    )


def _wrong(message: str) -> Refusal:
    return Refusal("Invalid", message)


def _not_yet(message: str) -> Refusal:
    return Refusal("Unsupported", message)
