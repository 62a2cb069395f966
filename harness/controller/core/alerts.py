"""Alerts: who wants to be told of what, and which facts go along (spec canary-api 7). How they look is `alert_payloads.py`.

A severity that is not given means info, as documented (A3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.analysis.entries import listed, outside, place
from harness.controller.core.names import target_name
from harness.controller.core.settings import Settings, provider

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Alert

SEVERITIES: Final = ("info", "warn", "error")
"""From the least to the most severe; an entry wants its own and all after it."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """One entry of spec.analysis.alerts that wants an alert."""

    name: str
    """The entry's name, for the log."""
    provider: str
    """Name of the AlertProvider."""
    namespace: str
    """Where it is; the Canary's own by default."""


Fact = tuple[str, str]
"""Title and value, both for people."""


def recipients(canary: JSON, severity: str) -> tuple[Recipient, ...]:
    """Return who wants an alert of this severity, in list order."""
    own = canary["metadata"]["namespace"]
    found = []
    for entry in listed(canary, "alerts"):
        reference = entry.get("providerRef") or {}
        wanted = entry.get("severity") or SEVERITIES[0]
        if wanted in SEVERITIES and _rank(severity) >= _rank(wanted) and reference.get("name"):
            name = str(entry.get("name") or reference["name"])
            where = str(reference.get("namespace") or own)
            found.append(Recipient(name, str(reference["name"]), where))
    return tuple(found)


def facts(canary: JSON, alert: Alert, cluster_name: str = "") -> tuple[Fact, ...]:
    """Return what is listed with an alert: the cluster, when it has a name, and what is released how, when the alert asks for it."""
    found: list[Fact] = [("Cluster", cluster_name)] if cluster_name else []
    if alert.facts:
        settings = Settings.of(canary)
        kind = (canary["spec"].get("targetRef") or {}).get("kind") or "Deployment"
        found += [
            ("Target", f"{kind}/{target_name(canary)}.{canary['metadata']['namespace']}"),
            ("Failed checks threshold", str(settings.threshold)),
            ("Progress deadline", f"{settings.deadline:g}s"),
            ("Traffic routing", routing(canary)),
        ]
    return tuple(found)


def routing(canary: JSON) -> str:
    """Return in words how traffic moves; provider kubernetes can only switch it as a whole."""
    analysis: JSON = canary["spec"].get("analysis") or {}
    iterations = analysis.get("iterations") or 0
    if provider(canary) == "kubernetes":
        return "Blue/Green"
    if iterations > 0:
        return "A/B testing" if analysis.get("match") else "Blue/Green"
    most = analysis.get("maxWeight") or 100
    if analysis.get("stepWeight"):
        return f"Weight, step {_plain(analysis['stepWeight'])}, at most {_plain(most)}"
    if analysis.get("stepWeights"):
        return "Weight, steps " + ", ".join(_plain(step) for step in analysis["stepWeights"])
    return "Weight"


def problem(canary: JSON, *, cross_namespace: bool = True) -> str:
    """Return what is wrong with the first entry that can never be sent, with what is allowed; empty when all can.

    `cross_namespace`: whether a provider may be in another namespace.
    """
    for position, entry in enumerate(listed(canary, "alerts")):
        wrong = _wrong(canary, entry, cross_namespace=cross_namespace)
        if wrong:
            return f"{place('alerts', position, entry)}: {wrong}"
    return ""


def _wrong(canary: JSON, entry: JSON, *, cross_namespace: bool) -> str:
    reference = entry.get("providerRef")
    if not isinstance(reference, dict) or not reference.get("name"):
        return "providerRef.name is missing"
    severity = entry.get("severity")
    if severity and severity not in SEVERITIES:
        return f"severity: {severity!r} is unknown; allowed: {', '.join(SEVERITIES)}"
    elsewhere = outside(canary, reference)
    if elsewhere and not cross_namespace:
        return (
            f"providerRef.namespace: {elsewhere!r} is another namespace, which this controller was"
            " told not to allow; use an AlertProvider beside the Canary"
        )
    return ""


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
