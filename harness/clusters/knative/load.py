"""Which requests would be under way where: pure functions over Knative's objects.

Nobody sends requests here. A Service says by an annotation how many are under way at any time, and they are spread as the split of its
ingress says; so traffic that moves takes its load along, and a revision that gets none is scaled to zero by the real autoscaler.
"""

from __future__ import annotations

import math
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
        msg = f"Knative Service {namespace}/{name}: annotation {CONCURRENCY} is {said!r}; allowed: a number of requests, 0 or more"
        raise LoadError(msg)
    return number


def split(ingress: JSON) -> dict[str, int]:
    """Return percent by revision, as the first path of an ingress has it; that is where its main host's requests go."""
    for rule in ingress["spec"].get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            shares: dict[str, int] = {}
            for row in path.get("splits") or ():
                name = str(row["serviceName"])
                shares[name] = shares.get(name, 0) + int(row.get("percent") or _ALL)
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


def waiting(load: Mapping[Key, float], pods: Iterable[JSON]) -> dict[Key, float]:
    """Return the part of the load that the activator holds back, since no pod is there to take it."""
    served = {revision_of(pod) for pod in pods if is_ready(pod)}
    return {key: number for key, number in load.items() if key not in served}


def of_pod(
    address: str, load: Mapping[Key, float], pods: Iterable[JSON]
) -> tuple[str, float] | None:
    """Return name of the ready pod with an address, and its part of its revision's load; None when there is none."""
    ready = [pod for pod in pods if is_ready(pod)]
    found = next((pod for pod in ready if (pod["status"] or {}).get("podIP") == address), None)
    if found is None:
        return None
    key = revision_of(found)
    many = sum(1 for pod in ready if revision_of(pod) == key)
    return str(found["metadata"]["name"]), load.get(key, 0.0) / many
