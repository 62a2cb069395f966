"""Manifests for tests of the controller, as users write them, and the patches that users make to them."""

from __future__ import annotations

import copy
from typing import Any

JSON = dict[str, Any]


def merge(base: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def deployment(name: str = "web", image: str = "app:1", replicas: int = 3, **spec: Any) -> JSON:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]},
            },
            **spec,
        },
    }


def daemonset(name: str = "web", image: str = "app:1", **spec: Any) -> JSON:
    """A DaemonSet; `spec` goes over the defaults, as the API server has filled them in."""
    obj = deployment(name, image)
    del obj["spec"]["replicas"]
    obj["kind"] = "DaemonSet"
    obj["spec"] |= {
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        }
    } | spec
    return obj


def service(name: str = "web", **spec: Any) -> JSON:
    """A core Service that selects the pods of `web`."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
            **spec,
        },
    }


def kservice(name: str = "web", image: str = "app:1") -> JSON:
    """A Knative Service."""
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}},
    }


def configmap(name: str = "settings", **data: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n"},
        "data": data,
    }


def hpa(name: str = "web", least: int = 2, most: int = 6) -> JSON:
    """A HorizontalPodAutoscaler for the Deployment of that name."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80},
                    },
                }
            ],
        },
    }


def canary(**spec: Any) -> JSON:
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "n"},
        "spec": {
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "progressDeadlineSeconds": 20,
            "service": {"port": 80},
            "analysis": {"interval": "2s", "threshold": 2, "iterations": 2},
            **spec,
        },
    }


def target_ref(kind: str) -> JSON:
    """`spec.targetRef` for a kind as people say it: Deployment, DaemonSet, Service, Knative."""
    versions = {"Service": "v1", "Knative": "serving.knative.dev/v1"}
    api_kind = "Service" if kind == "Knative" else kind
    return {"apiVersion": versions.get(kind, "apps/v1"), "kind": api_kind, "name": "web"}


def image(name: str) -> JSON:
    """A merge patch that changes the image of a Deployment."""
    containers = [{"name": "c", "image": name, "resources": {}}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def image_of(obj: JSON) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


def with_configmap(obj: JSON, name: str = "settings") -> JSON:
    """That workload, with a ConfigMap in the environment of its first container."""
    obj = copy.deepcopy(obj)
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": name}}]
    return obj
