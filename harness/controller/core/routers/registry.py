"""Which router a Canary gets: the one file that another mesh is entered into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.controller.core.routers.gateway import GatewayRouter
from harness.controller.core.routers.istio import IstioRouter
from harness.controller.core.routers.knative import KnativeRouter
from harness.controller.core.routers.kubernetes import KubernetesRouter
from harness.controller.core.settings import provider

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.routers.base import Router

# v1beta1 and v1 of the Gateway API are one object, served under both since v1 exists (Gateway API 1.0); we read and write v1.
_ROUTERS: Final[tuple[Router, ...]] = (
    GatewayRouter("gatewayapi:v1"),
    GatewayRouter("gatewayapi:v1beta1"),
    IstioRouter(),
    KnativeRouter(),
    KubernetesRouter(),
)
_BY_NAME: Final = {router.name: router for router in _ROUTERS}
PROVIDERS: Final[tuple[str, ...]] = tuple(_BY_NAME)
"""Values of `spec.provider` that are implemented."""


def router_for(canary: JSON) -> Router | None:
    """Return the router of a Canary; an omitted provider means istio. None: not implemented, and nothing is written (G1)."""
    return _BY_NAME.get(provider(canary))
