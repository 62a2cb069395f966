"""How simulated nodes and pods behave: kwok stages, rendered with the seed of the cluster.

The stages in fixtures/stages take the place of kwokctl's own, which make every pod ready at once.
"""

from __future__ import annotations

from typing import Final

from harness.clusters.base import ClusterError
from harness.data import data_path

BEHAVIOUR_LABEL: Final = "rollout-drill/pod"
"""On a pod: `never-ready`, `failing`, `flapping` or `slow`."""
FILES: Final = ("node.yaml.j2", "pod.yaml.j2", "misbehaving.yaml.j2")
PERIOD_MILLISECONDS: Final = 5000
"""How long a flapping pod stays as it is, a crashed container waits, and a slow pod takes longer."""
NODE_ADDRESS: Final = "127.0.0.1"
"""The kubelet's address of every node is where kwok itself listens; no other may be dialled."""


def render(seed: int) -> str:
    """Return the stages as YAML documents, the same for the same seed."""
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
        "node_address": NODE_ADDRESS,
        "period_milliseconds": PERIOD_MILLISECONDS,
        "slow_milliseconds": PERIOD_MILLISECONDS,
    }
    try:
        return "---\n".join(environment.get_template(name).render(values) for name in FILES)
    except jinja2.TemplateError as error:
        msg = f"The stages in {folder} cannot be rendered: {error}."
        raise ClusterError(msg) from error
