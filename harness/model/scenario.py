"""Types of scenario files (drill/v1), and of what they resolve to for one variant.

The file is read in three stages: the document as written, the document with its templates rendered for one variant
(`ScenarioFile`), and `Resolved`, which the runner and the timeline use.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from harness.model.duration import Duration, format_duration, parse_duration
from harness.model.flags import Flag  # noqa: TC001 - pydantic reads annotations at run time
from harness.model.names import KUBERNETES, SUBJECT
from harness.model.resolved import (
    ACTIONS,
    DEFAULT_VARIANT,
    Action,
    ApplyAsStep,
    ApplyStep,
    Check,
    CheckKind,
    DeleteStep,
    DoneWhen,
    Expect,
    GateStep,
    HandbackStep,
    KillStep,
    MetricStep,
    Nodes,
    NodeStep,
    PatchStep,
    Record,
    Resolved,
    ScaleStep,
    StartStep,
    Step,
    StopStep,
    TemplatePatch,
    UpgradeStep,
    WaitStep,
)
from harness.model.scenario_checks import (
    BUILT_IN_CHECKS,
    VERDICT,
    CheckSpec,
    DoneWhenSpec,
    ExpectSpec,
    RecordSpec,
)
from harness.model.scenario_nodes import NodesSpec
from harness.model.scenario_standins import (
    ReceiverSpec,  # noqa: TC001 - pydantic reads annotations at run time
    Series,  # noqa: TC001 - the same
    Value,  # noqa: TC001 - the same
)
from harness.model.scenario_steps import Model, StepSpec
from harness.model.scenario_traffic import (
    TrafficSpec,  # noqa: TC001 - pydantic reads annotations at run time
)

API_VERSION: Final = "drill/v1"
NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NAME_LENGTH: Final = 40
"""Leaves room for prefix and suffix in the name of a namespace (at most 63)."""


class Metadata(Model):
    """Identifies the scenario."""

    name: str = Field(
        pattern=NAME,
        max_length=NAME_LENGTH,
        description="Name of the scenario: lower case letters, digits and dashes, at most 40; the name of its folder.",
        examples=["node-spread-blue-green"],
    )


class VariantSpec(Model):
    """One variant: a drill of its own, with its own expectation."""

    description: str = Field(
        default="",
        description="What this variant is about, in a sentence.",
        examples=["The control: without the key the new pod has no place."],
    )
    values: dict[str, Any] = Field(
        default={},
        description="Values that differ from `spec.values`; only names declared there.",
        examples=[{"revisionKey": False}],
    )
    subject: str | None = Field(
        default=None,
        pattern=SUBJECT,
        description="The controller under test, where it differs from `spec.subject`.",
        examples=["flagger@1.44.0"],
    )
    slow: bool = Field(
        default=False,
        description="Whether it takes so long that pytest runs it with `-m slow` only; so does every drill that needs a controller "
        "other than the bundled one.",
        examples=[True],
    )
    expect: ExpectSpec = Field(
        default=ExpectSpec(),
        description="What differs from `spec.expect`.",
        examples=[{"phase": "Failed", "fail": ["never-blocked"]}],
    )


class Spec(Model):
    """What the scenario sets up, does and decides."""

    question: str = Field(
        min_length=1,
        description="The question that the scenario answers.",
        examples=["Does a blue-green promotion complete on as many nodes as replicas?"],
    )
    setup: str = Field(
        default="",
        description="One sentence about the workload, for the report.",
        examples=["A Deployment of {{ replicas }} replicas."],
    )
    requires: list[str] = Field(
        default=[],
        description="Features that subject and cluster must have; a missing one makes the verdict `unsupported`.",
        examples=[["blue-green"]],
    )
    subject: str | None = Field(
        default=None,
        pattern=SUBJECT,
        description="The controller under test that the drill starts with; unless given, the user chooses with `--subject`, which "
        "a scenario that names it refuses. Subjects that steps upgrade to must have the required features too.",
        examples=["flagger@1.44.0"],
    )
    controller: dict[str, Flag] | None = Field(
        default=None,
        min_length=1,
        description="Flags that the bundled controller is started with, by name without dashes and in humps, as `drill controller run "
        "--help` has them: `maxConcurrentAnalyses` is --max-concurrent-analyses. true and false stand for flags that take no value; "
        "one that is null is not given. Other subjects are started without them, so a flag that is for a feature needs it in `requires`.",
        examples=[{"maxConcurrentAnalyses": 5}],
    )
    kubernetes: str | None = Field(
        default=None,
        pattern=KUBERNETES,
        description="The version of Kubernetes that the cluster starts with; the default one unless given.",
        examples=["v1.34"],
    )
    nodes: NodesSpec = Field(
        default=NodesSpec(),
        description="How many nodes it needs, and what sets single ones apart.",
        examples=[{"count": 2}],
    )
    values: dict[str, Any] = Field(
        default={},
        description="What templates and expressions can use, with defaults; `--set` and variants change them. "
        "null stands for a value that is not set.",
        examples=[{"replicas": 2, "interval": "1s"}],
    )
    variants: dict[str, VariantSpec | None] | None = Field(
        default=None,
        min_length=1,
        description="Variants by name; one named `default` unless given.",
        examples=[{"with-key": {}, "without-key": {"values": {"revisionKey": False}}}],
    )
    matrix: dict[str, list[Any]] = Field(
        default={},
        description="Values by name, each a list: every combination is a drill of its own, for each variant.",
        examples=[{"replicas": [1, 2]}],
    )
    expect: ExpectSpec = Field(
        default=ExpectSpec(),
        description="How the drill should end: Succeeded and no failing check, unless given.",
        examples=[{"phase": "Succeeded"}],
    )
    settle: Duration = Field(
        default=1.0,
        description="How long observation goes on after the last step; 1s unless given.",
        examples=["2s"],
        json_schema_extra={"default": "1s"},
    )
    receiver: ReceiverSpec | None = Field(
        default=None,
        description="An HTTP server of the drill's own for webhooks and alerts; templates have its address as `receiver`.",
        examples=[{"gates": {"approve": {"answer": "closed"}}}],
    )
    metrics: dict[Series, Value] | None = Field(
        default=None,
        min_length=1,
        description="Metrics with their values at the start, told by a metrics server of the drill's own; templates have its address "
        "as `prometheus`, and the controller under test is started with it.",
        examples=[{"success_rate": 99.5}],
    )
    traffic: TrafficSpec | None = Field(
        default=None,
        description="Requests that a probe in the cluster sends while the drill is under way, for checks of who answers and what fails; "
        "needs `network` in `requires`, which simulated nodes lack.",
        examples=[{"rate": 20}],
    )
    manifests: list[str] = Field(
        min_length=1,
        description="Files beside the scenario with the objects to apply: YAML, several documents each; "
        "names that end in `.j2` are Jinja2 templates.",
        examples=[["workload.yaml.j2", "canary.yaml.j2"]],
    )
    steps: list[StepSpec] = Field(
        min_length=1,
        description="What is done, in order.",
        examples=[[{"name": "initialise", "apply": ["workload.yaml.j2"]}]],
    )
    record: list[RecordSpec] = Field(
        default=[],
        description="Parts of objects that the report quotes.",
        examples=[[{"title": "The term", "object": "primary", "path": "spec.template"}]],
    )
    checks: list[CheckSpec] = Field(
        min_length=1,
        description="What must hold, beside the built-in checks.",
        examples=[[{"id": "served", "always": "primary.ready >= 1"}]],
    )
    done_when: list[DoneWhenSpec] = Field(
        default=[],
        alias="doneWhen",
        description="When the question is answered, line by line.",
        examples=[[{"text": "The result can be posted.", "by": ["verdict"]}]],
    )


class ScenarioFile(Model):
    """A scenario file, with its templates rendered."""

    api_version: Literal["drill/v1"] = Field(
        alias="apiVersion", description="Version of the format.", examples=["drill/v1"]
    )
    kind: Literal["Scenario"] = Field(
        description="What the document is.",
        examples=["Scenario"],
    )
    metadata: Metadata = Field(
        description="Identifies the scenario.", examples=[{"name": "node-spread-blue-green"}]
    )
    spec: Spec = Field(
        description="What the scenario sets up, does and decides.",
        examples=[{"question": "Does it work?"}],
    )


__all__ = [
    "ACTIONS",
    "API_VERSION",
    "BUILT_IN_CHECKS",
    "DEFAULT_VARIANT",
    "VERDICT",
    "Action",
    "ApplyAsStep",
    "ApplyStep",
    "Check",
    "CheckKind",
    "DeleteStep",
    "DoneWhen",
    "Duration",
    "Expect",
    "GateStep",
    "HandbackStep",
    "KillStep",
    "MetricStep",
    "NodeStep",
    "Nodes",
    "PatchStep",
    "Record",
    "Resolved",
    "ScaleStep",
    "ScenarioFile",
    "StartStep",
    "Step",
    "StopStep",
    "TemplatePatch",
    "UpgradeStep",
    "WaitStep",
    "format_duration",
    "parse_duration",
]
