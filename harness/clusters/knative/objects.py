"""What Knative's own manifests say on an embedded cluster: pure functions over the documents of its module."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.clusters.knative.names import INGRESS_CLASS, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.timeline import JSON

REGISTRIES: Final = (
    "kind.local",
    "ko.local",
    "dev.local",
    "registry.example",
    "index.docker.io",
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "mcr.microsoft.com",
    "public.ecr.aws",
    "quay.io",
    "registry.k8s.io",
)
"""Those of the scenarios, and well-known ones. Images of any other have to be named by digest: Knative takes no wildcard."""

CONFIG: Final[dict[str, dict[str, str]]] = {
    "config-deployment": {
        # No container runs, so any name will do; without one there are no revisions.
        "queue-sidecar-image": "dev.local/queue-proxy:simulated",
        # A revision waits for the digests of its images, and nobody can be asked for them: no registry is within reach.
        "registries-skipping-tag-resolving": ",".join(REGISTRIES),
        # Ten minutes by default: nobody waits that long to see that a revision never becomes ready.
        "progress-deadline": "60s",
    },
    "config-network": {
        "ingress-class": INGRESS_CLASS,
        # Pods are scraped one by one, by their addresses; with a mesh they could not be.
        "mesh-compatibility-mode": "disabled",
    },
    # Any domain will do, as long as it is said: without one Knative takes svc.cluster.local, and makes no route for outside.
    "config-domain": {"knative.example": ""},
    "config-autoscaler": {
        # The shortest that are allowed: a revision without requests is at zero some twelve seconds later, instead of ninety.
        "stable-window": "6s",
        "scale-to-zero-grace-period": "6s",
        "scale-to-zero-pod-retention-period": "0s",
        "allow-zero-initial-scale": "true",
    },
    # The autoscaler takes a lease though there is one of it, and a killed one holds it for this long. The others take none.
    "config-leader-election": {
        "lease-duration": "4s",
        "renew-deadline": "3s",
        "retry-period": "1s",
    },
    # The collector of old revisions must not take what a drill looks at.
    "config-gc": {"retain-since-create-time": "48h"},
}
"""ConfigMap -> what is added to it. Everything else stays as Knative has it."""


def configured(documents: Iterable[JSON]) -> list[JSON]:
    """Return ConfigMaps with what `CONFIG` adds. Raises KeyError for one that is not among them."""
    result = [copy.deepcopy(one) for one in documents if one["kind"] == "ConfigMap"]
    by_name = {one["metadata"]["name"]: one for one in result}
    for name, added in CONFIG.items():
        data = by_name[name].setdefault("data", {})
        data.update(added)
    return result


def called_at(documents: Iterable[JSON], port: int) -> list[JSON]:
    """Return webhook configurations whose Service is reached at `port` of this machine's loopback, and that Service.

    A Service that is a mere name for `localhost` lets the API server call a process beside it, with the certificate that Knative's
    webhook writes for the Service's name.
    """
    result = [copy.deepcopy(one) for one in documents]
    for one in result:
        for hook in one.get("webhooks") or ():
            hook["clientConfig"]["service"]["port"] = port
    service: JSON = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "webhook", "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    return [service, *result]


def registrations(documents: Iterable[JSON]) -> list[str]:
    """Return the names of the webhook configurations among some documents."""
    return [one["metadata"]["name"] for one in documents if one.get("webhooks")]


def simulated(documents: Iterable[JSON]) -> list[JSON]:
    """Return the activator as a pod that kwok plays: Knative sends the traffic of a revision without pods to its endpoints."""
    result = [copy.deepcopy(one) for one in documents]
    for one in result:
        if one["kind"] != "Deployment":
            continue
        one["spec"]["replicas"] = 1
        pod = one["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = 1
        for container in pod["containers"]:
            container["image"] = "dev.local/activator:simulated"
            container.pop("resources", None)
    return result
