"""Types of a scenario's steps as they stand in the file: one optional verb each."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from harness.model.duration import Duration  # noqa: TC001 - pydantic reads annotations at run time
from harness.model.names import KUBERNETES, RELEASE, SUBJECT
from harness.model.nodes import NODE, TAINT, TAINT_FORMS
from harness.model.scenario_standins import (
    Change,  # noqa: TC001 - pydantic reads annotations at run time
    GateSpec,  # noqa: TC001 - the same
    Series,  # noqa: TC001 - the same
)
from harness.model.standins import RETRY_AFTER, GivenError

VERBS: Final = (
    "apply",
    "patch",
    "delete",
    "scale",
    "stop",
    "start",
    "kill",
    "upgrade",
    "handback",
    "gate",
    "metric",
    "applyAs",
    "node",
    "wait",
)
"""What a step can do."""
CHANGING_VERBS: Final = ("patch", "scale", "delete", "applyAs")
"""The first step with one of these is the change, unless another step says `change: true`."""
TARGET: Final = r"^(workloads?|rollouts?|[A-Z][A-Za-z0-9]*/[a-z0-9]([-.a-z0-9]*[a-z0-9])?)$"
"""How a step names one object, or all of a sort."""
DEFAULT_WITHIN: Final = 60.0
"""Seconds that `until` may take when the step does not say."""


class Model(BaseModel):
    """Base of all types of the file: exact types, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TemplateSpec(Model):
    """A change of the pod template of a workload."""

    annotations: dict[str, str] = Field(
        default={},
        description="Annotations to set on the pod template.",
        examples=[{"drill/revision": "2"}],
    )
    labels: dict[str, str] = Field(
        default={}, description="Labels to set on the pod template.", examples=[{"tier": "web"}]
    )
    image: str = Field(
        default="",
        description="New image of the first container.",
        examples=["registry.example/web:2"],
    )


_WHERE: Final = (
    "Which of `workloads` or `rollouts`: labels that the rollout object has in its manifest; all of them unless given. "
    "A workload is chosen by the labels of the rollout object that refers to it."
)


class PatchSpec(Model):
    """Changes objects: give `template`, `merge` or `status`."""

    target: str = Field(
        pattern=TARGET,
        description="What to change: `workload` (the rollout's target), `rollout`, `Kind/name`, or every one of the manifests: "
        "`workloads`, `rollouts`.",
        examples=["workload"],
    )
    where: dict[str, str] | None = Field(
        default=None, min_length=1, description=_WHERE, examples=[{"drill/phase": "Failed"}]
    )
    template: TemplateSpec | None = Field(
        default=None,
        description="Change of the pod template.",
        examples=[{"annotations": {"drill/revision": "2"}}],
    )
    merge: dict[str, Any] | None = Field(
        default=None,
        description="JSON merge patch of the whole object (null removes a field).",
        examples=[{"spec": {"paused": True}}],
    )
    status: dict[str, Any] | None = Field(
        default=None,
        description="JSON merge patch of the status, through its subresource: the fields within `status`.",
        examples=[{"lastAppliedSpec": "5d7f8"}],
    )
    refused: str = Field(
        default="",
        description="Part of the message with which the API server must refuse the change, e.g. because a webhook does: the step fails "
        "when it is accepted, or refused for another reason. Empty: it must be accepted.",
        examples=["Immutable fields changed"],
    )


class DeleteSpec(Model):
    """Deletes objects."""

    target: str = Field(
        pattern=TARGET,
        description="What to delete: `workload`, `rollout`, `Kind/name`, `workloads`, `rollouts`.",
        examples=["Deployment/web-primary"],
    )
    where: dict[str, str] | None = Field(
        default=None, min_length=1, description=_WHERE, examples=[{"drill/phase": "Failed"}]
    )
    orphan: bool = Field(
        default=False,
        description="Whether what it owns is left behind instead of being collected.",
        examples=[True],
    )


class ScaleSpec(Model):
    """Sets the number of replicas of workloads."""

    target: str = Field(
        pattern=TARGET,
        description="What to scale: `workload`, `Kind/name`, or `workloads`.",
        examples=["workload"],
    )
    where: dict[str, str] | None = Field(
        default=None, min_length=1, description=_WHERE, examples=[{"drill/phase": "Failed"}]
    )
    replicas: int = Field(ge=0, description="Number of replicas.", examples=[3])


class UpgradeSpec(Model):
    """Puts another subject or another version of Kubernetes in place: give one of the two."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["subject"]}, {"required": ["kubernetes"]}]},
    )

    subject: str | None = Field(
        default=None,
        pattern=SUBJECT,
        description="The controller that takes over: the one that runs is stopped, if it still runs; CRD and rights of the new "
        "one are applied, and it is started.",
        examples=["flagger@1.44.0"],
    )
    kubernetes: str | None = Field(
        default=None,
        pattern=KUBERNETES,
        description="The version of the control plane that takes over, with the same data.",
        examples=["v1.36"],
    )


class HandbackSpec(Model):
    """Makes the way back from the bundled controller, which must be stopped, to a Flagger."""

    to: str = Field(
        pattern=RELEASE,
        description="The released Flagger that takes over in a later step; its hashes are put into the statuses.",
        examples=["flagger@1.44.0"],
    )


class ApplyAsSpec(Model):
    """Applies objects as another field manager does, e.g. one that keeps a cluster like a repository."""

    manager: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        max_length=60,
        description="Name of the field manager. What it applied before and does not apply any more it gives up: such a field goes, "
        "unless somebody else has it too.",
        examples=["gitops"],
    )
    manifests: list[str] = Field(
        default=[],
        description="Files of `spec.manifests` whose objects it applies, whole.",
        examples=[["workload.yaml.j2"]],
    )
    target: str = Field(
        default="",
        pattern=rf"^$|{TARGET}",
        description="Instead of `manifests`: one object of the manifests, as in `patch`, that it applies after `merge`.",
        examples=["rollout"],
    )
    merge: dict[str, Any] | None = Field(
        default=None,
        description="JSON merge patch of what it applies to `target` (null leaves a field out of it).",
        examples=[{"spec": {"replicas": None}}],
    )
    force: bool = Field(
        default=True,
        description="Whether it takes fields that others have; without, a conflict fails the step.",
        examples=[False],
    )
    prune: list[str] = Field(
        default=[],
        description="Objects that are not in its repository any more, as `Kind/name`: they are deleted.",
        examples=[["Deployment/old"]],
    )


def _taint(text: str) -> str:
    if not TAINT.fullmatch(text):
        msg = f"{text!r} is no taint"
        raise GivenError(msg, TAINT_FORMS)
    return text


Taint = Annotated[str, AfterValidator(_taint)]
"""A taint as kubectl writes it."""


class NodeChangeSpec(Model):
    """Changes a simulated node of the drill's own cluster."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [field]} for field in ("becomes", "labels", "taints")]
        },
    )

    name: str = Field(
        pattern=NODE,
        description="The node; those that the cluster begins with are called `node-1` and so on.",
        examples=["node-3"],
    )
    becomes: Literal["joined", "gone", "cordoned", "uncordoned"] | None = Field(
        default=None,
        description="`joined`: a node of this name joins, and the step goes on once it is ready. `gone`: its Node object is deleted, and "
        "its pods with it at once, which the pod garbage collector would do about a minute later. `cordoned`, `uncordoned`: it takes no "
        "new pods, or takes them again.",
        examples=["joined"],
    )
    labels: dict[str, str | None] = Field(
        default={}, description="Labels to set; null removes one.", examples=[{"disk": "ssd"}]
    )
    taints: list[Taint] | None = Field(
        default=None,
        description="All its taints from now on, as `key=value:Effect` or `key:Effect`; an empty list removes them. Effects: NoSchedule, "
        "PreferNoSchedule, NoExecute.",
        examples=[["dedicated=batch:NoSchedule"]],
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.becomes is None and not self.labels and self.taints is None:
            msg = "says nothing to change"
            raise GivenError(msg, ("becomes", "labels", "taints"))
        return self


class StepSpec(Model):
    """One step: at most one verb, then at most one condition to wait for."""

    name: str = Field(
        min_length=1,
        max_length=60,
        description="Name of the step, unique; checks and records refer to it.",
        examples=["initialise"],
    )
    when: bool = Field(
        default=True,
        description="Whether there is such a step at all; a template makes it depend on values.",
        examples=["{{ rewrite == 'legacy' }}"],
    )
    apply: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Verb: apply the objects of these manifests, in this order.",
        examples=[["workload.yaml.j2", "canary.yaml.j2"]],
    )
    patch: PatchSpec | None = Field(
        default=None,
        description="Verb: change objects.",
        examples=[{"target": "workload", "template": {"annotations": {"drill/revision": "2"}}}],
    )
    delete: DeleteSpec | None = Field(
        default=None,
        description="Verb: delete objects.",
        examples=[{"target": "Deployment/web-primary"}],
    )
    scale: ScaleSpec | None = Field(
        default=None,
        description="Verb: set the replicas of workloads.",
        examples=[{"target": "workload", "replicas": 3}],
    )
    stop: Literal["subject"] | None = Field(
        default=None,
        description="Verb: end the controller under test in an orderly way.",
        examples=["subject"],
    )
    start: Literal["subject"] | None = Field(
        default=None,
        description="Verb: start the controller under test again.",
        examples=["subject"],
    )
    kill: Literal["subject"] | None = Field(
        default=None,
        description="Verb: kill the controller under test at once.",
        examples=["subject"],
    )
    upgrade: UpgradeSpec | None = Field(
        default=None,
        description="Verb: put another controller, or another version of Kubernetes, in the place of the one that runs.",
        examples=[{"subject": "flagger@1.44.0"}],
    )
    handback: HandbackSpec | None = Field(
        default=None,
        description="Verb: put the hashes of a Flagger into the statuses, as `drill controller handback --apply` does, so that it "
        "starts no analysis by itself when it takes over. The bundled controller must be stopped before.",
        examples=[{"to": "flagger@1.44.0"}],
    )
    gate: GateSpec | None = Field(
        default=None,
        description="Verb: change what a gate answers; what is not given is as for a new gate.",
        examples=[{"name": "approve", "answer": "open"}],
    )
    metric: dict[Series, Change] | None = Field(
        default=None,
        min_length=1,
        description="Verb: change metrics, and wait until the metrics server tells the new values: a number, `NaN`, `absent`, or a "
        "counter that grows (`5/s`). `down`: the server refuses every connection; `throttled`: it answers every query with 429 and "
        f"`Retry-After: {RETRY_AFTER}`; either until a step gives values without it.",
        examples=[{"success_rate": 80}],
    )
    apply_as: ApplyAsSpec | None = Field(
        default=None,
        alias="applyAs",
        description="Verb: apply objects as another field manager.",
        examples=[{"manager": "gitops", "manifests": ["canary.yaml.j2"]}],
    )
    node: NodeChangeSpec | None = Field(
        default=None,
        description="Verb: let a node join, leave, or change. The drill gets an embedded cluster of its own.",
        examples=[{"name": "node-4", "becomes": "joined"}],
    )
    wait: Duration | None = Field(
        default=None,
        description="Verb: let time pass. Prefer `until`, which does not wait longer than needed.",
        examples=["3s"],
    )
    until: str | None = Field(
        default=None,
        min_length=1,
        description="CEL: the step is over once this is true.",
        examples=['rollout.phase == "Initialized"'],
    )
    within: Duration | None = Field(
        default=None,
        description="How long `until` may take; 60s unless given. Only together with `until`.",
        examples=["2m"],
    )
    change: bool = Field(
        default=False,
        description="Whether this step is the change from which the report counts the time. "
        "Without any, it is the first step with patch, scale, delete or applyAs.",
        examples=[True],
    )
