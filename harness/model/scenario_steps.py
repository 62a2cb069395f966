"""Types of a scenario's steps as they stand in the file: one optional verb each."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.model.duration import Duration  # noqa: TC001 - pydantic reads annotations at run time

VERBS: Final = ("apply", "patch", "delete", "scale", "stop", "start", "kill", "wait")
"""What a step can do."""
RESERVED_VERBS: Final = ("applyAs", "upgrade", "node", "gate")
"""Verbs that a later version of the format will have; nothing else may use these names."""
CHANGING_VERBS: Final = ("patch", "scale", "delete")
"""The first step with one of these is the change, unless another step says `change: true`."""
TARGET: Final = r"^(workload|rollout|[A-Z][A-Za-z0-9]*/[a-z0-9]([-.a-z0-9]*[a-z0-9])?)$"
"""How a step names one object."""
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


class PatchSpec(Model):
    """Changes one object: give `template` or `merge`."""

    target: str = Field(
        pattern=TARGET,
        description="What to change: `workload` (the rollout's target), `rollout`, or `Kind/name`.",
        examples=["workload"],
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


class DeleteSpec(Model):
    """Deletes one object."""

    target: str = Field(
        pattern=TARGET,
        description="What to delete: `workload`, `rollout`, or `Kind/name`.",
        examples=["Deployment/web-primary"],
    )


class ScaleSpec(Model):
    """Sets the number of replicas of a workload."""

    target: str = Field(
        pattern=TARGET,
        description="What to scale: `workload`, or `Kind/name`.",
        examples=["workload"],
    )
    replicas: int = Field(ge=0, description="Number of replicas.", examples=[3])


class StepSpec(Model):
    """One step: at most one verb, then at most one condition to wait for."""

    name: str = Field(
        min_length=1,
        max_length=60,
        description="Name of the step, unique; checks and records refer to it.",
        examples=["initialise"],
    )
    apply: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Verb: apply the objects of these manifests, in this order.",
        examples=[["workload.yaml.j2", "canary.yaml.j2"]],
    )
    patch: PatchSpec | None = Field(
        default=None,
        description="Verb: change one object.",
        examples=[{"target": "workload", "template": {"annotations": {"drill/revision": "2"}}}],
    )
    delete: DeleteSpec | None = Field(
        default=None,
        description="Verb: delete one object.",
        examples=[{"target": "Deployment/web-primary"}],
    )
    scale: ScaleSpec | None = Field(
        default=None,
        description="Verb: set the replicas of a workload.",
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
        "Without any, it is the first step with patch, scale or delete.",
        examples=[True],
    )
