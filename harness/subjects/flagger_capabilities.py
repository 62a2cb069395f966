"""What each version of Flagger can do, in the words of a scenario's `requires`, and where that is known from.

A scenario that requires what a version does not have is `unsupported` on it, not failed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

Version = tuple[int, int, int]

FIRST: Final[Version] = (1, 0, 0)
"""The first version with today's API, flagger.app/v1beta1."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One feature."""

    feature: str
    since: Version | None
    """First version that has it; None: no version has it."""
    why: str
    """How it does it, or why not, and where that is known from."""
    api: Version | None = None
    """Where its client library decides, the first version of k8s.io/api that is enough. Asked instead of `since` where it is known."""


_BY_PROVIDER: Final = "by the provider that the Canary names, where the cluster has its API"

CAPABILITIES: Final = (
    Capability("ab-testing", FIRST, _BY_PROVIDER),
    Capability("autoscaler", FIRST, "copies the target's HorizontalPodAutoscaler and pauses it"),
    Capability("blue-green", FIRST, "spec.analysis.iterations with provider kubernetes"),
    Capability("change-fence", None, "no released version keeps status.lastTrackedRevision"),
    Capability("config-tracking", FIRST, "on unless -enable-config-tracking=false"),
    Capability("confirm-promotion", FIRST, "webhook of that type"),
    Capability("daemonset", FIRST, "spec.targetRef.kind DaemonSet"),
    Capability("deployment", FIRST, "spec.targetRef.kind Deployment"),
    Capability(
        "freeze",
        None,
        "a failed revision is always scaled to zero, but for a failed promotion since 1.44.0",
    ),
    Capability(
        "knative-service", (1, 41, 0), "provider knative; roles for serving.knative.dev since then"
    ),
    Capability(
        "manual-rollback-aborts",
        None,
        "an analysis goes on over the template that was promoted before (known deviation D5)",
    ),
    Capability(
        "match-label-keys",
        (1, 38, 0),
        "the primary is made from typed objects: k8s.io/api 0.30.3 in 1.38.0 has the field, 0.27.11 in 1.37.0 does not",
        api=(0, 29, 0),
    ),
    Capability("metrics", FIRST, "built-in ones from -metrics-server, others by MetricTemplate"),
    Capability(
        "metrics-rate",
        None,
        "every check queries at once, and an answer of 429 counts as a failed check",
    ),
    Capability("mirroring", FIRST, _BY_PROVIDER),
    Capability("progress-deadline", FIRST, "spec.progressDeadlineSeconds"),
    Capability("provider-kubernetes", FIRST, "-mesh-provider kubernetes"),
    Capability("restart-on-new-revision", FIRST, "starts over at iteration 0"),
    Capability(
        "restore-adopt", None, "the primary is a Deployment of its own; the target is never deleted"
    ),
    Capability("restore-revert", None, "the target keeps the failed template, at zero replicas"),
    Capability("session-affinity", (1, 25, 0), "spec.analysis.sessionAffinity, by changelog"),
    Capability("skip-analysis", FIRST, "spec.skipAnalysis"),
    Capability("start-limit", None, "every canary has a job of its own that starts when it likes"),
    Capability(
        "sub-10s-interval", None, "raises spec.analysis.interval to 10 s, and looks every 10 s"
    ),
    Capability("suspend", (1, 32, 0), "spec.suspend, by changelog"),
    Capability("traffic-weights", FIRST, _BY_PROVIDER),
    Capability("webhooks", FIRST, "spec.analysis.webhooks; nothing but loopback can be reached"),
)


def capabilities(version: str, api: str | None = None) -> tuple[str, ...]:
    """Return the features of a version, e.g. `1.44.0`; of an unknown version those that all have.

    `api` is the version of k8s.io/api that it is compiled with, e.g. `v0.36.2`, where that is known.
    """
    number = numbers(version) or FIRST
    library = numbers(api or "")
    return tuple(row.feature for row in CAPABILITIES if _has(row, number, library))


def numbers(version: str) -> Version | None:
    """Return the numbers of a version, whatever follows them; None when there are none."""
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _has(row: Capability, number: Version, library: Version | None) -> bool:
    if row.api is not None and library is not None:
        return library >= row.api
    return row.since is not None and number >= row.since
