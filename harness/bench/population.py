"""The objects of the storm: one workload and one rollout object each, all alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.model.timeline import JSON

INTERVAL: Final = 10
"""Seconds; what Flagger raises shorter intervals to, so that both kinds of subject do the same work."""
ITERATIONS: Final = 2
IMAGE: Final = "registry.k8s.io/pause:3.10"
PODS_EACH: Final = 3
"""Pods of one rollout at the most: target, primary, and the one that replaces the primary's."""
PODS_OF_A_NODE: Final = 100
"""A little less than a simulated node takes."""
_PATIENCE: Final = 600
"""Seconds until a rollout counts as stuck: the storm is about throughput, and a busy control plane is no failure of the subject."""


def names(count: int) -> list[str]:
    """Return the names of `count` rollouts; a rollout object and its workload have the same one."""
    return [f"app-{number:04d}" for number in range(count)]


def nodes_for(count: int) -> int:
    """Return the number of nodes that always have room for the pods of `count` rollouts."""
    return -(-count * PODS_EACH // PODS_OF_A_NODE)


def workload(name: str, namespace: str) -> JSON:
    """Return the Deployment that a rollout object targets."""
    labels = {"app": name}
    container = {
        "name": "app",
        "image": IMAGE,
        "ports": [{"name": "http", "containerPort": 8080}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": _PATIENCE,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    }


def rollout(name: str, namespace: str) -> JSON:
    """Return the Canary for the workload of that name: blue-green, `ITERATIONS` times `INTERVAL` seconds."""
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "progressDeadlineSeconds": _PATIENCE,
            "service": {"port": 80, "targetPort": 8080},
            "analysis": {
                "interval": f"{INTERVAL}s",
                "iterations": ITERATIONS,
                "threshold": 5,
            },
        },
    }


def change(revision: str) -> JSON:
    """Return the merge patch that gives a workload a new revision."""
    annotations = {"rollout-drill/revision": revision}
    return {"spec": {"template": {"metadata": {"annotations": annotations}}}}
