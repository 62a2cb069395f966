"""Who answers queries: one file for each `spec.provider.type` of a MetricTemplate, and a line in SOURCES."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.shell.metric_sources import prometheus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON
    from harness.controller.shell.metric_sources.base import Source

SOURCES: Final[Mapping[str, Source]] = {"prometheus": prometheus.ask}


def unsupported_source(template: JSON) -> str:
    """Return why a MetricTemplate cannot be asked by this controller at all, with what can; empty when it can (G1)."""
    meta = template.get("metadata") or {}
    kind = str(((template.get("spec") or {}).get("provider") or {}).get("type") or "")
    if kind in SOURCES:
        return ""
    return (
        f"MetricTemplate {meta.get('name')!r}: spec.provider.type {kind!r} is not implemented;"
        f" allowed: {', '.join(SOURCES)}"
    )
