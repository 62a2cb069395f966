"""How simulated nodes and pods behave: kwok stages, rendered with the seed of the cluster.

The stages in fixtures/stages take the place of kwokctl's own, which make every pod ready at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.clusters.base import ClusterError
from harness.clusters.knative.names import INGRESS_CLASS
from harness.data import data_path

if TYPE_CHECKING:
    from collections.abc import Sequence

BEHAVIOUR_LABEL: Final = "rollout-drill/pod"
"""On a pod: `never-ready`, `failing`, `flapping` or `slow`."""
FILES: Final = ("node.yaml.j2", "pod.yaml.j2", "misbehaving.yaml.j2")
PERIOD_MILLISECONDS: Final = 5000
"""How long a flapping pod stays as it is, a crashed container waits, and a slow pod takes longer."""
ROUTE_LABEL: Final = "rollout-drill/route"
"""On an HTTPRoute: `refused` or `never`; on a Knative Service: `never`."""
GATEWAY_CONTROLLER: Final = "rollout-drill/simulated-gateway"
"""Who a route's status says has answered."""
ADDON_FILES: Final = {"gateway-api": "gateway-api.yaml.j2", "knative": "knative.yaml.j2"}
"""Add-on -> the stages of its objects. kwok refuses to start with them before their CRDs are served."""
NODE_ADDRESS: Final = "127.0.0.1"
"""The kubelet's address of every node is where kwok itself listens; no other may be dialled."""


def render(seed: int, files: Sequence[str] = FILES) -> str:
    """Return the stages of these files as YAML documents, the same for the same seed."""
    import jinja2

    folder = data_path("fixtures", "stages")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - YAML for kwok, not HTML
    )
    environment.filters["oneline"] = lambda text: " ".join(str(text).split())
    values = {
        "seed": seed,
        "label": BEHAVIOUR_LABEL,
        "route_label": ROUTE_LABEL,
        "gateway_controller": GATEWAY_CONTROLLER,
        "ingress_class": INGRESS_CLASS,
        "node_address": NODE_ADDRESS,
        "period_milliseconds": PERIOD_MILLISECONDS,
        "slow_milliseconds": PERIOD_MILLISECONDS,
    }
    try:
        return "---\n".join(environment.get_template(name).render(values) for name in files)
    except jinja2.TemplateError as error:
        msg = f"The stages in {folder} cannot be rendered: {error}."
        raise ClusterError(msg) from error
