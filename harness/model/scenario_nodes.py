"""What a scenario file says of the nodes that it needs."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from harness.model.nodes import NODE
from harness.model.scenario_steps import Model, Taint

_Node = Annotated[str, Field(pattern=NODE)]
_APART: Final = (
    "Needs `node-changes` in `requires`: nodes of a cluster that is not ours are left as they are."
)


class NodesSpec(Model):
    """How many schedulable nodes the drill needs; another number makes its verdict `unknown`."""

    model_config = ConfigDict(
        json_schema_extra={"not": {"required": ["count", "min"]}},
    )

    count: int | None = Field(
        default=None,
        ge=1,
        description="Exactly this many schedulable nodes, `node-1` and so on; those with a taint of the scenario's count among them.",
        examples=[2],
    )
    min: int | None = Field(
        default=None,
        ge=1,
        description="At least this many schedulable nodes; 1 unless `count` or this is given.",
        examples=[2],
    )
    replicas_per_eligible: int | None = Field(
        default=None,
        ge=1,
        alias="replicasPerEligible",
        description="On a cluster that is not ours, the value `replicas` is this many for each node that the drill may use, unless "
        "`--set`, a variant or the matrix says otherwise; and exactly these nodes are needed. Elsewhere it means nothing.",
        examples=[1],
    )
    labels: dict[_Node, dict[str, str]] = Field(
        default={},
        description=f"Labels of single nodes, by the node's name. {_APART}",
        examples=[{"node-1": {"disk": "ssd"}, "node-2": {"disk": "ssd"}}],
    )
    taints: dict[_Node, list[Taint]] = Field(
        default={},
        description="Taints of single nodes, by the node's name, each as `key=value:Effect` or `key:Effect`; they are there before the "
        f"first pod is. {_APART}",
        examples=[{"node-3": ["dedicated=batch:NoSchedule"]}],
    )
