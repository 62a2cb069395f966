"""Where the kinds that the core speaks of are served."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core.names import GROUP
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


def moved(resource: Resource, group: str) -> Resource:
    """Return where a kind is served when Canaries, and what they refer to, are served under `group`; other kinds stay."""
    return replace(resource, group=group) if resource.group == GROUP else resource


def served(group: str) -> Mapping[str, Resource]:
    """Return `RESOURCES` with Canaries of another API group."""
    return {plural: moved(resource, group) for plural, resource in RESOURCES.items()}
