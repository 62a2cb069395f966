"""Where the kinds that the core speaks of are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.kube.resource import (
    CANARY,
    CONFIGMAP,
    DAEMONSET,
    DEPLOYMENT,
    HPA,
    REPLICASET,
    SECRET,
    SERVICE,
    Resource,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ALWAYS: Final = ("canaries", "deployments", "services")
"""Kinds that are watched from the start; the others with the first Canary that needs them."""

RESOURCES: Final[Mapping[str, Resource]] = {
    "canaries": CANARY,
    "deployments": DEPLOYMENT,
    "daemonsets": DAEMONSET,
    "replicasets": REPLICASET,
    "services": SERVICE,
    "configmaps": CONFIGMAP,
    "secrets": SECRET,
    "horizontalpodautoscalers": HPA,
    "scaledobjects": Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject"),
    "httproutes": Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),
    "virtualservices": Resource(
        "networking.istio.io", "v1beta1", "virtualservices", "VirtualService"
    ),
    "destinationrules": Resource(
        "networking.istio.io", "v1beta1", "destinationrules", "DestinationRule"
    ),
    "kservices": Resource("serving.knative.dev", "v1", "services", "Service"),
    "krevisions": Resource("serving.knative.dev", "v1", "revisions", "Revision"),
}
