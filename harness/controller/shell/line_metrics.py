"""The line of those that want to analyse, as Prometheus sees it. Worked out when it is asked for: a start moves everybody's position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.controller.shell.line import Line


class LineMetrics:
    """A collector for a registry of prometheus_client. Nothing is shown where nothing is limited."""

    def __init__(self, prefix: str, lines: Mapping[str, Line]) -> None:
        self._prefix = prefix
        self._lines = lines
        """By namespace."""

    def collect(self) -> Iterator[Any]:
        """Yield the gauges as they are now."""
        from prometheus_client.core import GaugeMetricFamily

        if not self._lines:
            return

        def gauge(name: str, text: str, *labels: str) -> Any:
            return GaugeMetricFamily(f"{self._prefix}_{name}", text, labels=["namespace", *labels])

        limit = gauge("analyses_limit", "How many Canaries may be under analysis at a time.")
        used = gauge("analyses", "Canaries that have a slot for their analysis.")
        many = gauge("queue_length", "Canaries that wait for a slot.")
        place = gauge("queue_position", "Place of a Canary that waits; 1 is next.", "name")
        for namespace, line in self._lines.items():
            view = line.view
            limit.add_metric([namespace], view.limit)
            used.add_metric([namespace], view.used)
            many.add_metric([namespace], len(view.waiting))
            for index, name in enumerate(view.waiting, start=1):
                place.add_metric([namespace, name], index)
        yield from (limit, used, many, place)
