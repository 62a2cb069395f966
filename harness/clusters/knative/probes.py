"""Who answers a probe of Knative's network: pure. A header says whom the prober wants to find behind a Service.

Before a revision goes to zero the autoscaler makes sure in this way that requests for it would reach the activator.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from harness.model.timeline import JSON

HEADER: Final = "K-Network-Probe"
ACTIVATOR: Final = "activator"
QUEUE: Final = "queue"
"""What a pod's queue-proxy calls itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a probe."""

    status: HTTPStatus
    text: str


def service_of(host: str) -> tuple[str, str] | None:
    """Return namespace and name of the Service with a host name inside a cluster, whatever its domain; None for other names."""
    name, _, rest = host.partition(".")
    labels = rest.split(".")
    if not name or labels[1:2] != ["svc"]:
        return None
    return labels[0], name


def addresses(endpoints: JSON) -> set[str]:
    """Return the addresses of an Endpoints object that are ready."""
    subsets = endpoints.get("subsets") or ()
    return {row["ip"] for one in subsets for row in one.get("addresses") or ()}


def answer(wanted: str, behind: AbstractSet[str], activators: AbstractSet[str]) -> Answer:
    """Return what the one says who stands behind a Service with these ready addresses, to a probe for `wanted`.

    The activator where there is nobody else, and otherwise a pod: one that is still among them would get requests. Either has a word only
    for probes that want it.
    """
    if not behind:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "nobody is ready behind this Service")
    found = ACTIVATOR if behind <= activators else QUEUE
    if wanted != found:
        return Answer(HTTPStatus.BAD_REQUEST, f"a probe for {wanted!r} has reached {found!r}")
    return Answer(HTTPStatus.OK, found)
