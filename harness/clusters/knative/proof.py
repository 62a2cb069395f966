"""What has to hold before a cluster counts as one with Knative: each a wait with a name, a deadline, and what was seen last."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.embedded.readiness import check_cancelled
from harness.clusters.knative.names import NAMESPACE
from harness.kube.errors import AlreadyExists, KubeError, NotFound
from harness.kube.resource import CONFIGMAP, Resource

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable, Iterable

    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON

RIGHTS_WITHIN: Final = 30.0
"""Seconds until kube-controller-manager has filled an aggregated role; it takes about one."""
ANSWERS_WITHIN: Final = 60.0
"""Seconds until Knative's webhook answers, and until a Service is ready; each takes some seconds."""
LOOK: Final = 0.1
"""Neither rights nor answers of a webhook can be watched."""
MANAGER: Final = "rollout-drill"
SERVICE: Final = Resource("serving.knative.dev", "v1", "services", "Service")
_HOOKS: Final = "admissionregistration.k8s.io"
HOOKS: Final = tuple(
    Resource(_HOOKS, "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
DEFAULTED: Final = "containerConcurrency"
"""A field of a revision that Knative's webhook sets."""
_TRIAL: Final = "trial"
TRIAL: Final[JSON] = {
    "apiVersion": SERVICE.api_version,
    "kind": SERVICE.kind,
    "metadata": {"name": _TRIAL},
    "spec": {
        "template": {
            # Without a pod it is quick.
            "metadata": {"annotations": {"autoscaling.knative.dev/initial-scale": "0"}},
            "spec": {"containers": [{"image": "dev.local/trial"}]},
        }
    },
}


class NotYetError(Exception):
    """What is waited for does not hold; the message is what is seen instead."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits for one cluster's Knative; ends early when nobody wants the cluster any more."""

    cluster: str
    cancelled: threading.Event | None = None

    async def until(
        self, what: str, holds: Callable[[], Awaitable[object]], seconds: float
    ) -> None:
        """Return when `holds` returns instead of raising NotYetError or KubeError.

        Raises ClusterError, which says `what` did not come in time and what was seen last, and CancelledError.
        """
        last = "nothing was answered"
        try:
            async with asyncio.timeout(seconds):
                while True:
                    check_cancelled(self.cluster, self.cancelled)
                    try:
                        await holds()
                    except (KubeError, NotYetError) as error:
                        last = str(error)
                    else:
                        return
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            seen = last.rstrip(".")
            msg = f"Embedded cluster {self.cluster!r}: {what} within {seconds:g} s: {seen}."
            raise ClusterError(msg) from None


async def rights(client: KubeClient, patience: Patience) -> None:
    """Return once the identity of `client`, which is that of Knative's programs, may read their ConfigMaps. Raises ClusterError.

    A program that may not gives up after some seconds, and the role that says so is filled by kube-controller-manager.
    """
    await patience.until(
        "the service account of Knative had no rights",
        lambda: client.get(CONFIGMAP, "config-logging", NAMESPACE),
        RIGHTS_WITHIN,
    )


async def registered(client: KubeClient, names: Iterable[str], patience: Patience) -> None:
    """Return once the webhook has signed its own certificate and said so in all its configurations. Raises ClusterError."""
    wanted = set(names)

    async def look() -> None:
        lacking = set(wanted)
        for resource in HOOKS:
            found, _ = await client.list(resource)
            lacking -= {one["metadata"]["name"] for one in found if _signed(one)}
        if lacking:
            msg = f"there is no CA in {', '.join(sorted(lacking))}"
            raise NotYetError(msg)

    await patience.until("the webhook of Knative was not registered", look, ANSWERS_WITHIN)


async def takes_services(client: KubeClient, patience: Patience) -> None:
    """Return once a Service that nobody asked for came back with defaults, was ready, and was deleted. Raises ClusterError.

    That takes all three programs and the simulated ingress.
    """

    async def defaulted() -> None:
        answer = await client.raw(
            "POST",
            SERVICE.path(NAMESPACE),
            {"dryRun": "All", "fieldManager": MANAGER},
            {**TRIAL, "metadata": {"generateName": f"{_TRIAL}-"}},
        )
        if DEFAULTED not in answer["spec"]["template"]["spec"]:
            msg = "a Service came back as it was sent"
            raise NotYetError(msg)

    async def ready() -> None:
        try:
            found = await client.get(SERVICE, _TRIAL, NAMESPACE)
        except NotFound:
            # One that an installation left which was cut short is as good.
            with contextlib.suppress(AlreadyExists):
                await client.create(SERVICE, TRIAL, NAMESPACE, field_manager=MANAGER)
            msg = "it was created just now"
            raise NotYetError(msg) from None
        conditions = (found.get("status") or {}).get("conditions") or ()
        stated: JSON = next((one for one in conditions if one["type"] == "Ready"), {})
        if stated.get("status") != "True":
            raise NotYetError(_in_words(stated))

    await patience.until("the webhook of Knative did not answer", defaulted, ANSWERS_WITHIN)
    await patience.until("no Service of Knative became ready", ready, ANSWERS_WITHIN)
    await client.delete(SERVICE, _TRIAL, NAMESPACE)


def _signed(configuration: JSON) -> bool:
    hooks = configuration.get("webhooks") or ()
    return bool(hooks) and all(hook["clientConfig"].get("caBundle") for hook in hooks)


def _in_words(condition: JSON) -> str:
    if not condition:
        return "it has no condition Ready, since nobody looks after it"
    said = condition.get("message") or condition.get("reason") or ""
    return f"its condition Ready is {condition['status']}{f' ({said})' if said else ''}"
