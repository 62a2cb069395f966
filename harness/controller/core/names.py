"""Names derived from a Canary and its target: Services, the primary, the selector label (spec objects 1 and 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.policy import DEFAULT

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.policy import Policy

PRIMARY_SUFFIX: Final = "-primary"
CANARY_SUFFIX: Final = "-canary"
MAX_LABEL: Final = 63
"""Longest Service name and longest label value that the API accepts."""
MAX_NAME: Final = 253
"""Longest name of a Deployment."""
GROUP: Final = "flagger.app"
"""API group of Canaries, MetricTemplates and AlertProviders, unless the controller is told another one."""
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Canary"
MANAGER: Final = "rollout-drill-controller"
"""Our field manager, and so the name under which managedFields show our writes."""

_SERVICE_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Names:
    """Every name one Canary stands for."""

    namespace: str
    canary: str
    target: str
    apex: str
    """`spec.service.name`, or the target's name; the Service that users call. Always the target's where the target is a Service."""
    label: str = ""
    """Key of the selector label; empty while the target is unknown or has none."""
    value: str = ""
    """Its value on the target."""

    @property
    def primary(self) -> str:
        """Name of the primary Deployment."""
        return self.target + PRIMARY_SUFFIX

    @property
    def primary_service(self) -> str:
        """Name of the Service that always selects the primary."""
        return self.apex + PRIMARY_SUFFIX

    @property
    def canary_service(self) -> str:
        """Name of the Service that selects the target."""
        return self.apex + CANARY_SUFFIX

    @property
    def primary_value(self) -> str:
        """Value of the selector label on the primary's pods."""
        return self.value + PRIMARY_SUFFIX


def api_version(canary: JSON) -> str:
    """Return the `apiVersion` that a Canary has itself: its group is another one than Flagger's where two controllers share a cluster."""
    return str(canary.get("apiVersion") or API_VERSION)


def target_name(canary: JSON) -> str:
    """Return the name in `spec.targetRef`, or an empty string."""
    return str(((canary.get("spec") or {}).get("targetRef") or {}).get("name") or "")


def names_of(canary: JSON, target: JSON | None, policy: Policy = DEFAULT) -> Names:
    """Return the names of a Canary; without a target the selector label is unknown."""
    meta = canary["metadata"]
    name = target_name(canary)
    spec = canary.get("spec") or {}
    service = (spec.get("service") or {}).get("name") or name
    if (spec.get("targetRef") or {}).get("kind") == "Service":
        # The target is what users call, be it a core Service or Knative's; a second name would be nobody's (spec objects 9).
        service = name
    label, value = selector_label(target, policy) if target else ("", "")
    return Names(meta["namespace"], meta["name"], name, str(service), label, value)


def selector_label(target: JSON, policy: Policy = DEFAULT) -> tuple[str, str]:
    """Return key and value of the label that tells the target's pods apart; empty when it has none."""
    labels = ((target.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    for key in policy.selector_labels:
        if key in labels:
            return key, str(labels[key])
    return "", ""


@dataclass(frozen=True, slots=True)
class NameProblem:
    """Why the names of a Canary cannot work."""

    message: str
    too_long: bool = True


def problem(names: Names) -> NameProblem | None:
    """Return why these names cannot work, or None (case C17).

    Checked before anything is written, so that a name one character too long leaves no half-made objects.
    """
    longest = MAX_LABEL - len(PRIMARY_SUFFIX)
    limit = (
        f"at most {longest} are possible, since {PRIMARY_SUFFIX!r} is appended and {MAX_LABEL} is"
        " the limit"
    )
    if len(names.apex) > longest:
        text = f"Service name {names.apex!r} has {len(names.apex)} characters; {limit}"
        return NameProblem(text)
    if len(names.value) > longest:
        text = (
            f"value {names.value!r} of label {names.label!r} has {len(names.value)} characters;"
            f" {limit}"
        )
        return NameProblem(text)
    if len(names.primary) > MAX_NAME:
        text = f"name {names.primary!r} of the primary is longer than {MAX_NAME} characters"
        return NameProblem(text)
    if not _SERVICE_NAME.fullmatch(names.apex):
        text = (
            f"Service name {names.apex!r} is not valid: lower-case letters, digits and '-',"
            " starting with a letter and not ending with '-'; set spec.service.name"
        )
        return NameProblem(text, too_long=False)
    return None
