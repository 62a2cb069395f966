"""The queries behind `request-success-rate` and `request-duration`, for each provider (spec canary-api 5).

A success rate is what is not an error: 100 minus the errors' share. Asked the other way round, for what succeeded, a canary whose every
request fails has no such series and looks like one without traffic. Without traffic both have no values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core.settings import provider

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

SUCCESS_RATE: Final = "request-success-rate"
DURATION: Final = "request-duration"
NAMES: Final = (SUCCESS_RATE, DURATION)
UNITS: Final = {SUCCESS_RATE: " %", DURATION: " ms"}
QUANTILE: Final = 0.99


@dataclass(frozen=True, slots=True)
class _Series:
    """Where a kind of proxy or application counts its requests."""

    requests: str
    durations: str
    """A histogram's buckets."""
    scale: int
    """From its unit to milliseconds."""
    errors: str
    """Matcher of server errors."""


_HTTP: Final = _Series(
    "http_request_duration_seconds_count",
    "http_request_duration_seconds_bucket",
    1000,
    'status=~"5.*"',
)
_ISTIO: Final = _Series(
    "istio_requests_total",
    "istio_request_duration_milliseconds_bucket",
    1,
    'response_code=~"5.*"',
)
_ENVOY: Final = _Series(
    "envoy_cluster_upstream_rq",
    "envoy_cluster_upstream_rq_time_bucket",
    1,
    'envoy_response_code=~"5.*"',
)


def query(canary: JSON, name: str, known: JSON) -> str:
    """Return the PromQL of a built-in metric: percent, or milliseconds. `known` are the values of `render.values`."""
    series, chosen = _selected(canary, known)
    interval = known["interval"]
    if name == DURATION:
        times = "" if series.scale == 1 else f" * {series.scale}"
        buckets = f"rate({series.durations}{{{chosen}}}[{interval}])"
        return f"histogram_quantile({QUANTILE}, sum by (le) ({buckets})){times}"
    every = f"sum(rate({series.requests}{{{chosen}}}[{interval}]))"
    failed = f"sum(rate({series.requests}{{{chosen}, {series.errors}}}[{interval}]))"
    return f"100 - 100 * ({failed} or vector(0)) / {every}"


def _selected(canary: JSON, known: JSON) -> tuple[_Series, str]:
    namespace, target = known["namespace"], known["target"]
    wanted = provider(canary)
    if wanted == "knative":
        return _ENVOY, f'envoy_cluster_name="{namespace}/{known["route"]}"'
    if wanted == "kubernetes" or wanted.startswith("gatewayapi"):
        pods = _pod_names(canary, target)
        return _HTTP, f'kubernetes_namespace="{namespace}", kubernetes_pod_name=~"{pods}"'
    return _ISTIO, (
        f'reporter="destination", destination_workload_namespace="{namespace}",'
        f' destination_workload="{target}"'
    )


def _pod_names(canary: JSON, target: str) -> str:
    """Return a pattern of the target's pods that leaves the primary's out.

    A Deployment's pod ends in two random parts; `NAME-primary` has one more. A DaemonSet's ends in one, of five characters, so that
    `primary` is none.
    """
    literal = target.replace(".", "[.]")
    if (canary["spec"].get("targetRef") or {}).get("kind") == "DaemonSet":
        return f"{literal}-[0-9a-z]{{5}}"
    return f"{literal}-[0-9a-z]+-[0-9a-z]+"
