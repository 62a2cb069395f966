"""Prometheus metrics: those that dashboards made for Flagger show, under its names, and ours.

The compatible ones (spec canary-api 10) name a Canary by its target, ours by itself. Everything that is told of a Canary disappears with
it. What is counted per Canary was seen by this process: counters begin at 0 with it, as everywhere in Prometheus.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness import __version__
from harness.controller.core import conditions as cond
from harness.controller.core.names import PRIMARY_SUFFIX, target_name
from harness.controller.shell.line_metrics import LineMetrics
from harness.controller.shell.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core.decision import JSON
    from harness.controller.shell.line import Line

PREFIX: Final = "rollout_drill_controller"
_RUNNING: Final = frozenset(
    {"Waiting", "Progressing", "WaitingPromotion", "Promoting", "Finalising"}
)
_STATUS: Final = {"Progressing": 0, "Failed": 2, "Frozen": 2}
"""Values of flagger_canary_status; every other phase is 1."""
_FULL: Final = 100
_RUN_BUCKETS: Final = (5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200)
_CALL_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_WAIT_BUCKETS: Final = (0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_CANARY: Final = ("name", "namespace")
_OUTCOME: Final = (*_CANARY, "deployment_strategy", "analysis_status")


@dataclass(slots=True)
class _Seen:
    """What was last told of one Canary."""

    namespace: str
    target: str
    phase: str
    since: float | None
    """When its present run began, seconds since the epoch."""
    skipped: bool
    strategy: str
    labels: set[tuple[Any, tuple[str, ...]]] = field(default_factory=set)
    """Series that go with it: the metric, and its labels."""


class Metrics(Meter):
    """Counts for Prometheus, in a registry of its own. `now`: seconds since the epoch."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            ProcessCollector,
            disable_created_metrics,
        )

        # One more series for each counter, which nobody reads. The library knows no other place to say so.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._now = now
        self._canaries: dict[str, _Seen] = {}
        self._totals: dict[str, int] = {}
        self._lines: dict[str, Line] = {}
        self.registry.register(LineMetrics(PREFIX, self._lines))

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Any:
            return Gauge(name, text, labels, registry=self.registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Any:
            return Counter(name, text, labels, registry=self.registry)

        def histogram(
            name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
        ) -> Any:
            return Histogram(name, text, labels, registry=self.registry, buckets=buckets)

        usual = Histogram.DEFAULT_BUCKETS
        ProcessCollector(registry=self.registry)
        gauge("flagger_info", "Version of the controller.", ("version", "mesh_provider")).labels(
            __version__, ""
        ).set(1)
        self._total = gauge("flagger_canary_total", "Canaries.", ("namespace",))
        self._status = gauge(
            "flagger_canary_status", "0 progressing, 2 failed, 1 anything else.", _CANARY
        )
        self._weight = gauge(
            "flagger_canary_weight", "Share of the traffic in percent.", ("workload", "namespace")
        )
        self._duration = histogram(
            "flagger_canary_duration_seconds", "Seconds of one pass over a canary.", _CANARY, usual
        )
        self._analysis = gauge(
            "flagger_canary_metric_analysis", "Last value of a metric.", (*_CANARY, "metric")
        )
        self._outcomes = {
            "Succeeded": counter("flagger_canary_successes", "Runs that succeeded.", _OUTCOME),
            "Failed": counter("flagger_canary_failures", "Runs that failed.", _OUTCOME),
        }
        # A frozen run has failed, for whoever counts.
        self._outcomes["Frozen"] = self._outcomes["Failed"]
        self._phase = gauge(
            f"{PREFIX}_canary_phase", "1 for the present phase.", (*_CANARY, "phase")
        )
        self._failed_checks = gauge(
            f"{PREFIX}_canary_failed_checks", "Failed checks of the present run.", _CANARY
        )
        self._conditions = {
            "ChangePending": gauge(
                f"{PREFIX}_canary_change_pending", "1 while suspended and a change waits.", _CANARY
            ),
            "Held": gauge(f"{PREFIX}_canary_held", "1 while a gate holds the run up.", _CANARY),
            "Unmeasured": gauge(
                f"{PREFIX}_canary_unmeasured", "1 while metrics give no verdict.", _CANARY
            ),
        }
        self._runs = histogram(
            f"{PREFIX}_run_duration_seconds",
            "From the start of a run to its end.",
            ("outcome",),
            _RUN_BUCKETS,
        )
        self._passes = counter(
            f"{PREFIX}_passes", "Passes, by the row of the transition table that decided.", ("row",)
        )
        self._pass_seconds = histogram(
            f"{PREFIX}_pass_duration_seconds",
            "From the decision to the last write of a pass, waiting for the turn included.",
            (),
            usual,
        )
        self._waiting = gauge(
            f"{PREFIX}_queue_depth", "Canaries that wait for their turn to write."
        )
        self._requests = counter(
            f"{PREFIX}_api_requests",
            "Requests to the API server; code none: no answer.",
            ("verb", "resource", "code"),
        )
        self._request_seconds = histogram(
            f"{PREFIX}_api_request_duration_seconds",
            "Until the answer was read; without watches.",
            ("verb",),
            usual,
        )
        self._conflicts = counter(
            f"{PREFIX}_conflicts", "Writes refused because somebody else was faster.", ("resource",)
        )
        self._calls = histogram(
            f"{PREFIX}_call_duration_seconds",
            "Webhooks, metrics and alerts.",
            ("kind", "result"),
            _CALL_BUCKETS,
        )
        self._queries = counter(
            f"{PREFIX}_metric_queries",
            "Queries sent, by provider; undecided: 429 or a time-out.",
            ("provider", "result"),
        )
        self._query_waits = histogram(
            f"{PREFIX}_metric_query_wait_seconds",
            "For the turn of a query, where --metrics-rate limits them.",
            ("provider",),
            _WAIT_BUCKETS,
        )
        self._degraded = gauge(
            f"{PREFIX}_degraded", "1 while the installed CRD has no place for the change fence."
        )
        self._leader = gauge(f"{PREFIX}_leader", "1 while this process works, 0 on standby.")

    def text(self) -> tuple[bytes, str]:
        """Return everything in Prometheus' text format, and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def saw(self, canary: JSON) -> None:
        """Take a state of a Canary; a phase that it entered since the last one is counted."""
        name, namespace = canary["metadata"]["name"], canary["metadata"]["namespace"]
        status: JSON = canary.get("status") or {}
        seen = self._known(name, namespace, target_name(canary))
        self._follow(seen, canary, status)
        labels = seen.target, namespace
        self._set(seen, self._status, labels, _STATUS.get(seen.phase, 1))
        weight = status.get("canaryWeight") or 0
        self._set(seen, self._weight, labels, weight)
        self._set(seen, self._weight, (seen.target + PRIMARY_SUFFIX, namespace), _FULL - weight)
        own = name, namespace
        self._set(seen, self._failed_checks, own, status.get("failedChecks") or 0)
        for kind, metric in self._conditions.items():
            true = (cond.find(status, kind) or {}).get("status") == "True"
            self._set(seen, metric, own, int(true))

    def forget(self, name: str) -> None:
        """Remove every series of a Canary."""
        seen = self._canaries.pop(name, None)
        if seen is None:
            return
        for metric, labels in seen.labels:
            metric.remove(*labels)
        self._count(seen.namespace, -1)

    def passed(self, name: str, seconds: float, row: str) -> None:
        """Count a pass."""
        self._passes.labels(row or "none").inc()
        self._pass_seconds.observe(seconds)
        seen = self._canaries.get(name)
        if seen is not None:
            labels = seen.target, seen.namespace
            seen.labels.add((self._duration, labels))
            self._duration.labels(*labels).observe(seconds)

    def called(self, kind: str, seconds: float, *, ok: bool) -> None:
        """Count a call."""
        self._calls.labels(kind, "ok" if ok else "failed").observe(seconds)

    def measured(self, canary: JSON, metric: str, value: float) -> None:
        """Show the value of a metric."""
        name, namespace = canary["metadata"]["name"], canary["metadata"]["namespace"]
        seen = self._known(name, namespace, target_name(canary))
        self._set(seen, self._analysis, (seen.target, namespace, metric), value)

    def queried(self, provider: str, result: str) -> None:
        """Count a query."""
        self._queries.labels(provider, result).inc()

    def queued(self, provider: str, seconds: float) -> None:
        """Count what a query waited."""
        self._query_waits.labels(provider).observe(seconds)

    def line(self, namespace: str, line: Line) -> None:
        """Show a line from now on."""
        self._lines[namespace] = line

    def waiting(self, more: int) -> None:
        """Count those who wait."""
        self._waiting.inc(more)

    def degraded(self, *, on: bool) -> None:
        """Show whether the fence has no place."""
        self._degraded.set(int(on))

    def leading(self, *, on: bool) -> None:
        """Show whether this process works; what it knew of Canaries goes when it ceases to."""
        self._leader.set(int(on))
        if not on:
            self._lines.clear()
            for name in list(self._canaries):
                self.forget(name)

    def asked(self, verb: str, resource: str, code: str, seconds: float | None) -> None:
        """Count a request."""
        self._requests.labels(verb, resource, code).inc()
        if seconds is not None:
            self._request_seconds.labels(verb).observe(seconds)
        # A creation that is refused with 409 found the object there, which is no conflict.
        if code == "409" and verb != "create":
            self._conflicts.labels(resource).inc()

    def _known(self, name: str, namespace: str, target: str) -> _Seen:
        seen = self._canaries.get(name)
        if seen is not None and seen.target != target:
            self.forget(name)  # the series of the old target's name would stay for ever
            seen = None
        if seen is None:
            seen = _Seen(namespace, target, "", None, skipped=False, strategy="")
            self._canaries[name] = seen
            self._count(namespace, 1)
        return seen

    def _follow(self, seen: _Seen, canary: JSON, status: JSON) -> None:
        """Take in the phase, and count a run that has ended."""
        phase, before = str(status.get("phase") or ""), seen.phase
        name = canary["metadata"]["name"]
        if phase != before:
            old = (name, seen.namespace, before)
            seen.labels.discard((self._phase, old))
            self._phase.remove(*old)
            self._set(seen, self._phase, (name, seen.namespace, phase), 1)
        seen.phase = phase
        if phase in _RUNNING:
            seen.strategy = _strategy(canary)
            seen.skipped = bool(canary["spec"].get("skipAnalysis"))
            # Promoted is Unknown all through a run, so that is when it began: known after a restart, too.
            seen.since = cond.since(status, cond.PROMOTED)
            return
        if before in _RUNNING and phase in self._outcomes:
            how = "skipped" if seen.skipped and phase == "Succeeded" else "completed"
            labels = (seen.target, seen.namespace, seen.strategy, how)
            seen.labels.add((self._outcomes[phase], labels))
            self._outcomes[phase].labels(*labels).inc()
            if seen.since is not None:
                self._runs.labels(phase).observe(max(self._now() - seen.since, 0.0))
        seen.since = None

    def _count(self, namespace: str, more: int) -> None:
        self._totals[namespace] = self._totals.get(namespace, 0) + more
        self._total.labels(namespace).set(self._totals[namespace])

    @staticmethod
    def _set(seen: _Seen, metric: Any, labels: tuple[str, ...], value: float) -> None:
        seen.labels.add((metric, labels))
        metric.labels(*labels).set(value)


def _strategy(canary: JSON) -> str:
    """Return the strategy as Flagger's metrics name it: by what the analysis asks for."""
    analysis: JSON = canary["spec"].get("analysis") or {}
    if not analysis.get("iterations"):
        return "canary"
    return "ab-testing" if analysis.get("match") else "blue-green"
