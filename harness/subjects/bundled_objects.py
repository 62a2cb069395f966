"""What the bundled controller can do and what it needs in a cluster, whether it runs inside or outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.data import data_path
from harness.subjects.base import SUBJECT_LABEL
from harness.subjects.documents import documents

if TYPE_CHECKING:
    from harness.model.timeline import JSON

CONTROLLER: Final = "rollout-drill-controller"
"""Name of its service account, of its Deployment, and of the label `app.kubernetes.io/name` of its pods."""

CAPABILITIES: Final = (
    "ab-testing",
    "autoscaler",
    "blue-green",
    "change-fence",
    "config-tracking",
    "confirm-promotion",
    "daemonset",
    "deployment",
    "freeze",
    "knative-service",
    "manual-rollback-aborts",
    "match-label-keys",
    "metrics",
    "metrics-rate",
    "mirroring",
    "progress-deadline",
    "provider-kubernetes",
    "restart-on-new-revision",
    "restore-adopt",
    "restore-revert",
    "session-affinity",
    "skip-analysis",
    "start-limit",
    "sub-10s-interval",
    "suspend",
    "traffic-weights",
    "webhooks",
)


def crds() -> list[JSON]:
    """Return the CRDs of Canaries, and of the metrics and receivers that they refer to."""
    names = ("canaries", "metrictemplates", "alertproviders")
    found = (documents(data_path("fixtures", "crds", f"{name}.yaml")) for name in names)
    return [obj for each in found for obj in each]


def rights(namespace: str) -> list[JSON]:
    """Return service account, role and binding, all in one namespace."""
    objects = documents(data_path("fixtures", "rbac", "controller.yaml"))
    for obj in objects:
        obj["metadata"]["namespace"] = namespace
        for reference in obj.get("subjects", []):
            reference["namespace"] = namespace
    return objects


def deployment(namespace: str, image: str) -> JSON:
    """Return the shipped Deployment as drills use it, with no pod yet.

    One process and no leader election, so that a killed one is followed as soon as the next is started. Its pods carry a label by
    which the recorder leaves them out.
    """
    (obj,) = documents(data_path("fixtures", "manifests", "controller.yaml"))
    obj["metadata"]["namespace"] = namespace
    spec, pod = obj["spec"], obj["spec"]["template"]
    spec["replicas"] = 0
    # Never two of them at once: each would act on what the other has not seen yet.
    spec["strategy"] = {"type": "Recreate"}
    for metadata in (obj["metadata"], pod["metadata"]):
        metadata["labels"] = {**metadata["labels"], SUBJECT_LABEL: "bundled"}
    (container,) = pod["spec"]["containers"]
    container["image"] = image
    # One that was loaded into the nodes is in no registry.
    container["imagePullPolicy"] = "IfNotPresent"
    container["args"] = arguments([])
    return obj


def arguments(flags: list[str]) -> list[str]:
    """Return the arguments of the container: a scenario's `flags`, and behind them what the harness has to say itself."""
    return [*flags, "--no-leader-elect", "--metrics-host=0.0.0.0", "--metrics-port=8080"]
