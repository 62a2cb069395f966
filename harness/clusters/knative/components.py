"""How Knative's three programs are started: arguments and environment (facts from their own manifests)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.clusters.knative import site
from harness.clusters.knative.component import Component
from harness.clusters.knative.names import HOST, NAMESPACE

if TYPE_CHECKING:
    from pathlib import Path

    from harness.clusters.knative.programs import Programs

_POD_ADDRESS: Final = "198.51.100.10"
"""What the autoscaler says of itself. It refuses a loopback address; nobody asks it there."""
_REFUSING: Final = "http://127.0.0.1:9"
"""Nothing listens on the discard port."""


def components(programs: Programs, kubeconfig: Path) -> tuple[Component, ...]:
    """Return what runs on a site, with the identity of `kubeconfig`."""
    identity = ("-kubeconfig", str(kubeconfig))
    dataplane = f"http://{HOST}:{site.DATAPLANE_PORT}"
    common = {
        "SYSTEM_NAMESPACE": NAMESPACE,
        "CONFIG_LOGGING_NAME": "config-logging",
        "CONFIG_OBSERVABILITY_NAME": "config-observability",
        "METRICS_DOMAIN": "knative.dev/internal/serving",
        # Client-side limits are for clusters that many share.
        "KUBE_API_QPS": "200",
        "KUBE_API_BURST": "400",
        # What is meant for a pod is answered in its place; loopback, the API server's too, is never asked through a proxy.
        "HTTP_PROXY": dataplane,
        "http_proxy": dataplane,
        "HTTPS_PROXY": _REFUSING,
        "https_proxy": _REFUSING,
    }
    webhook = {"WEBHOOK_NAME": "webhook", "WEBHOOK_PORT": str(site.INNER_WEBHOOK_PORT)}
    # There is one of each. The webhook is told so, our controller knows it, and the autoscaler would not listen.
    alone = ("-disable-ha",)
    own: tuple[tuple[str, Path, tuple[str, ...], dict[str, str]], ...] = (
        ("webhook", programs.webhook, alone, webhook),
        ("controller", programs.controller, (), {}),
        ("autoscaler", programs.autoscaler, (), {"POD_IP": _POD_ADDRESS}),
    )
    return tuple(
        Component(
            f"knative-{name}",
            program,
            (*identity, *arguments),
            {
                **common,
                "POD_NAME": f"{name}-0",
                # They would all take the same port.
                "PROFILING_PORT": str(site.PROFILING_PORT + number),
                **environment,
            },
        )
        for number, (name, program, arguments, environment) in enumerate(own)
    )
