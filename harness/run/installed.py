"""What must hold for a drill that observes an installed controller: read from its flags, and from what the drill would apply.

Its flags cannot be changed, so where the two do not fit the drill would only wait for what cannot come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model.duration import format_duration, parse_duration
from harness.model.timeline import Precondition
from harness.subjects.installed import Installed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from harness.model.timeline import JSON
    from harness.run.parts import Parts
    from harness.subjects.detect import Controller

NEEDS = {"istio": "istio", "gatewayapi": "gateway-api", "knative": "knative"}
"""The add-on that a provider needs; `kubernetes` needs none."""

Premise = tuple[bool, str]
"""Whether it holds, and why, in a sentence without its end."""


def premises(parts: Parts) -> list[Precondition]:
    """Return the preconditions of a drill with `installed`; none for any other subject, and none where nothing is known of it."""
    subject = parts.subject
    if not isinstance(subject, Installed):
        return []
    objects = [obj for several in parts.manifests.values() for obj in several]
    found = fits(subject.controllers, objects, parts.plan.resolved.requires)
    return [Precondition(parts.live.now(), holds, text) for holds, text in found]


def fits(
    controllers: Sequence[Controller], objects: Sequence[JSON], requires: Collection[str]
) -> list[Premise]:
    """Return what must hold between the controllers that act on a drill's Canaries and its objects."""
    if not controllers:
        return []
    first = controllers[0]
    found: list[Premise] = []
    if len(controllers) > 1:
        others = " and ".join(one.public for one in controllers)
        found.append((False, f"one controller acts on the drill's Canaries: there are {others}"))
    for canary in objects:
        if canary.get("kind") == "Canary":
            found += _of_canary(first, canary, objects, requires)
    return found


def _of_canary(
    controller: Controller, canary: JSON, objects: Sequence[JSON], requires: Collection[str]
) -> Iterator[Premise]:
    spec: Mapping[str, Any] = canary.get("spec") or {}
    name = f"Canary {canary['metadata']['name']}"
    reference = spec.get("targetRef") or {}
    target = next((one for one in objects if _is(one, reference)), None)
    labels = _selector(target)
    if target is not None and labels:
        wanted = ", ".join(controller.selector_labels)
        which = f"{reference['kind']} {reference['name']}"
        selected = next((key for key in controller.selector_labels if key in labels), "")
        yield (
            bool(selected),
            f"{which} is selected by {selected}"
            if selected
            else f"{which} is selected by none of the labels that {controller.public} knows: {wanted}",
        )
    provider = str(spec.get("provider") or controller.provider)
    needed = NEEDS.get(provider.partition(":")[0], "")
    if needed and needed not in requires:
        told = "names" if spec.get("provider") else "names none, and so has that of the controller:"
        yield (
            False,
            f"the provider of {name} fits: it {told} {provider}, and the scenario does not require {needed}",
        )
    interval = _interval(spec)
    if controller.loop and interval is not None and interval < controller.loop:
        yield (
            True,
            f"{name} has an interval of {format_duration(interval)}, and {controller.public} looks every {format_duration(controller.loop)}",
        )


def _is(obj: JSON, reference: Mapping[str, Any]) -> bool:
    return bool(reference) and (obj.get("kind"), (obj.get("metadata") or {}).get("name")) == (
        reference.get("kind"),
        reference.get("name"),
    )


def _selector(target: JSON | None) -> Mapping[str, str]:
    """Return the labels by which a workload selects its pods; a core Service as a target has none of these."""
    if target is None or target.get("kind") not in {"Deployment", "DaemonSet"}:
        return {}
    selector = (target.get("spec") or {}).get("selector") or {}
    labels: Mapping[str, str] = selector.get("matchLabels") or {}
    return labels


def _interval(spec: Mapping[str, Any]) -> float | None:
    text = (spec.get("analysis") or {}).get("interval")
    try:
        return None if text is None else parse_duration(text)
    except ValueError:
        return None
