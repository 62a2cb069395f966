"""Which requests would be under way where: pure functions over Knative's objects.

Nobody sends requests here. A Service says by an annotation how many are under way at any time, and they are spread as the split of its
ingress says; so traffic that moves takes its load along, and a revision that gets none is scaled to zero by the real autoscaler.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.clusters.knative.names import CONCURRENCY, REVISION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model.timeline import JSON

Key = tuple[str, str]
"""Namespace and name."""
_ALL: Final = 100


class LoadError(ValueError):
    """The annotation of a Service is no number of requests; the message is a sentence."""


def key_of(obj: JSON) -> Key:
    """Return namespace and name of an object."""
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def concurrency(service: JSON) -> float:
    """Return how many requests are under way to a Service. Raises LoadError."""
    said = (service["metadata"].get("annotations") or {}).get(CONCURRENCY)
    if said is None:
        return 0.0
    try:
        number = float(said)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        namespace, name = key_of(service)
        msg = (
            f"Knative Service {namespace}/{name}: annotation {CONCURRENCY} is {said!r}, which counts as no requests; "
            "allowed: a number of requests, 0 or more"
        )
        raise LoadError(msg)
    return number


def split(ingress: JSON) -> dict[str, int]:
    """Return percent by revision, as the path of an ingress has it on which its main host's plain requests go.

    That is the first without a prefix and without headers: Knative puts challenges for certificates, and tags that a header asks for,
    before it; hosts of tags come after. A percent of 0 is left out in JSON, and a split that stands alone has all of it.
    """
    for rule in ingress["spec"].get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            if path.get("path") or path.get("headers"):
                continue
            rows = path.get("splits") or ()
            default = _ALL if len(rows) == 1 else 0
            shares: dict[str, int] = {}
            for row in rows:
                name = str(row["serviceName"])
                shares[name] = shares.get(name, 0) + int(row.get("percent") or default)
            return shares
    return {}


def by_revision(services: Iterable[JSON], ingresses: Mapping[Key, JSON]) -> dict[Key, float]:
    """Return the requests under way by revision; those without any are left out. A Service that says nonsense has none."""
    load: dict[Key, float] = {}
    for service in services:
        namespace, name = key_of(service)
        try:
            total = concurrency(service)
        except LoadError:
            continue
        ingress = ingresses.get((namespace, name))
        if not total or ingress is None:
            continue
        for revision, percent in split(ingress).items():
            if percent:
                load[namespace, revision] = total * percent / _ALL
    return load


def revision_of(pod: JSON) -> Key:
    """Return namespace and name of a pod's revision."""
    meta = pod["metadata"]
    return meta["namespace"], str((meta.get("labels") or {}).get(REVISION, ""))


def is_ready(pod: JSON) -> bool:
    """Whether a pod would answer."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


@dataclass(frozen=True, slots=True)
class Picture:
    """What follows from all Services, ingresses and pods at one moment; worked out once, since the autoscaler asks each pod every second."""

    load: Mapping[Key, float] = field(default_factory=dict)
    """Requests under way by revision; above 0."""
    ready: Mapping[str, JSON] = field(default_factory=dict)
    """Pods that would answer, by address."""
    many: Mapping[Key, int] = field(default_factory=dict)
    """How many pods of a revision would answer."""

    @classmethod
    def of(
        cls, services: Iterable[JSON], ingresses: Mapping[Key, JSON], pods: Iterable[JSON]
    ) -> Picture:
        """Return the picture of these objects."""
        able = [pod for pod in pods if is_ready(pod)]
        return cls(
            by_revision(services, ingresses),
            {str(pod["status"].get("podIP") or ""): pod for pod in able},
            Counter(revision_of(pod) for pod in able),
        )

    def waiting(self) -> dict[Key, float]:
        """Return the part of the load that the activator holds back, since no pod is there to take it."""
        return {key: number for key, number in self.load.items() if not self.many.get(key)}

    def of_pod(self, address: str) -> tuple[str, Key, float] | None:
        """Return name and revision of the pod with an address, and its part of the load, which all have alike; None when none would answer."""
        pod = self.ready.get(address)
        if pod is None:
            return None
        key = revision_of(pod)
        return str(pod["metadata"]["name"]), key, self.load.get(key, 0.0) / self.many[key]


class Seconds:
    """Who has told of a revision's load in a second. The autoscaler adds up what it hears within one.

    So a load that goes over from the activator to the first pods, or back, would be twice as high for once, and as many pods be started.
    """

    def __init__(self) -> None:
        self._last: dict[Key, tuple[int, str]] = {}

    def counts(self, key: Key, who: str, second: int) -> bool:
        """Return whether nobody else has told of it in this second, and take it down as told by `who` in that case."""
        last, by = self._last.get(key, (second, who))
        if last == second and by != who:
            return False
        self._last[key] = second, who
        return True
