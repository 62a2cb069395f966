"""What a step can do: one type per verb, and how each is read back from a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, cast

from harness.model.standins import GateAnswer, read_answer

EVERY: Final = ("rollouts", "workloads")
"""Targets that mean every rollout object of the manifests, or the workload of each."""


@dataclass(frozen=True, slots=True)
class ApplyStep:
    """Apply the objects of some manifests, in this order."""

    VERB: ClassVar[str] = "apply"

    manifests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TemplatePatch:
    """A change of a workload's pod template; empty parts are left alone."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    """New image of the first container."""


@dataclass(frozen=True, slots=True)
class PatchStep:
    """Change objects: their pod template, by a raw merge patch, or their status. Exactly one of the three is given."""

    VERB: ClassVar[str] = "patch"

    target: str
    """`workload`, `rollout`, `Kind/name`, or `workloads` and `rollouts`: every one of the manifests."""
    template: TemplatePatch | None = None
    merge: Mapping[str, Any] | None = None
    status: Mapping[str, Any] | None = None
    """JSON merge patch of the status subresource: what stands within `status`."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Labels that an object of the manifests must have to be chosen; those of a workload are its rollout object's. Empty: all."""
    refused: str = ""
    """Part of the message with which the API server must refuse the change; empty: it must accept it."""


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """Delete objects."""

    VERB: ClassVar[str] = "delete"

    target: str
    """As in `PatchStep`."""
    where: Mapping[str, str] = field(default_factory=dict)
    """As in `PatchStep`."""
    orphan: bool = False
    """Whether what the object owns is left behind; otherwise it is collected in the background, as kubectl does."""


@dataclass(frozen=True, slots=True)
class ScaleStep:
    """Set the number of replicas of workloads."""

    VERB: ClassVar[str] = "scale"

    target: str
    """As in `PatchStep`; `rollouts` cannot be scaled."""
    replicas: int
    where: Mapping[str, str] = field(default_factory=dict)
    """As in `PatchStep`."""


@dataclass(frozen=True, slots=True)
class StopStep:
    """Ask the subject's process to end, and wait until it has."""

    VERB: ClassVar[str] = "stop"


@dataclass(frozen=True, slots=True)
class StartStep:
    """Start the subject's process again."""

    VERB: ClassVar[str] = "start"


@dataclass(frozen=True, slots=True)
class KillStep:
    """End the subject's process without giving it a chance to finish anything."""

    VERB: ClassVar[str] = "kill"


@dataclass(frozen=True, slots=True)
class UpgradeStep:
    """Put another subject, or another version of Kubernetes, in the place of the one that runs. Exactly one is given.

    A subject: the running one is stopped, if it still runs; the new one's CRD and rights are applied, and it is started.
    """

    VERB: ClassVar[str] = "upgrade"

    subject: str | None = None
    """Name of the new subject, e.g. `flagger@1.44.0`."""
    kubernetes: str | None = None
    """Version of the new control plane, e.g. `v1.35.4` or `v1.35`; it keeps its data."""


@dataclass(frozen=True, slots=True)
class HandbackStep:
    """Put the hashes of a Flagger into the statuses that the bundled controller left."""

    VERB: ClassVar[str] = "handback"

    to: str
    """Name of the subject that takes over, e.g. `flagger@1.44.0`."""


@dataclass(frozen=True, slots=True)
class GateStep:
    """Change what a gate, or a receiver of alerts, answers."""

    VERB: ClassVar[str] = "gate"

    name: str
    answer: GateAnswer = field(default_factory=GateAnswer)


@dataclass(frozen=True, slots=True)
class MetricStep:
    """Change metrics."""

    VERB: ClassVar[str] = "metric"

    values: Mapping[str, str]
    """Series -> its value (`harness.model.standins.parse_change`)."""


@dataclass(frozen=True, slots=True)
class ApplyAsStep:
    """Apply objects as another field manager, and delete those that it has no more. Either manifests or a target, or neither."""

    VERB: ClassVar[str] = "applyAs"

    manager: str
    manifests: tuple[str, ...] = ()
    target: str = ""
    """One object of the manifests, as in `PatchStep`."""
    merge: Mapping[str, Any] | None = None
    """JSON merge patch of what is applied to `target`."""
    force: bool = True
    prune: tuple[str, ...] = ()
    """Each `Kind/name`."""


@dataclass(frozen=True, slots=True)
class NodeStep:
    """Let a simulated node join, leave or change."""

    VERB: ClassVar[str] = "node"

    name: str
    becomes: str | None = None
    """`joined`, `gone`, `cordoned` or `uncordoned`; None: it stays."""
    labels: Mapping[str, str | None] = field(default_factory=dict)
    """Those to set, and with None those to remove."""
    taints: tuple[str, ...] | None = None
    """All that it has from now on, as `key=value:Effect`; None: those it has."""


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Let time pass."""

    VERB: ClassVar[str] = "wait"

    seconds: float


Action = (
    ApplyStep
    | PatchStep
    | DeleteStep
    | ScaleStep
    | StopStep
    | StartStep
    | KillStep
    | UpgradeStep
    | HandbackStep
    | GateStep
    | MetricStep
    | ApplyAsStep
    | NodeStep
    | WaitStep
)

ACTIONS: Final[dict[str, type[Action]]] = {
    cls.VERB: cls
    for cls in (
        ApplyStep,
        PatchStep,
        DeleteStep,
        ScaleStep,
        StopStep,
        StartStep,
        KillStep,
        UpgradeStep,
        HandbackStep,
        GateStep,
        MetricStep,
        ApplyAsStep,
        NodeStep,
        WaitStep,
    )
}
"""Verb -> type of its action."""


def read_action(verb: object, value: object) -> Action | None:
    """Return the action of a verb from its JSON form; None for a verb of another version. Never fails."""
    cls = ACTIONS.get(str(verb))
    row = _mapping(value)
    if cls is None:
        return None
    if cls is ApplyStep:
        return ApplyStep(_texts(row.get("manifests")))
    if cls is PatchStep:
        return _patch(row)
    if cls is DeleteStep:
        where = _mapping(row.get("where"))
        return DeleteStep(str(row.get("target", "")), where, row.get("orphan") is True)
    if cls is ScaleStep:
        replicas = row.get("replicas")
        whole = replicas if isinstance(replicas, int) and not isinstance(replicas, bool) else 0
        return ScaleStep(str(row.get("target", "")), whole, _mapping(row.get("where")))
    if cls is UpgradeStep:
        return UpgradeStep(_text(row.get("subject")), _text(row.get("kubernetes")))
    if cls is HandbackStep:
        return HandbackStep(str(row.get("to", "")))
    outside = _outside(cls, row)
    if outside is not None:
        return outside
    if cls is WaitStep:
        seconds = row.get("seconds")
        good = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        return WaitStep(float(cast("float", seconds)) if good else 0.0)
    return cls()  # type: ignore[call-arg]  # stop, start and kill have no arguments


def _outside(cls: type[Action], row: Mapping[str, Any]) -> Action | None:
    if cls is NodeStep:
        taints = None if row.get("taints") is None else _texts(row.get("taints"))
        labels = _mapping(row.get("labels"))
        return NodeStep(str(row.get("name", "")), _text(row.get("becomes")), labels, taints)
    if cls is GateStep:
        return GateStep(str(row.get("name", "")), read_answer(row.get("answer")))
    if cls is MetricStep:
        values = _mapping(row.get("values"))
        return MetricStep({name: str(value) for name, value in values.items()})
    if cls is ApplyAsStep:
        merge = row.get("merge")
        return ApplyAsStep(
            str(row.get("manager", "")),
            _texts(row.get("manifests")),
            str(row.get("target", "")),
            None if merge is None else _mapping(merge),
            row.get("force") is not False,
            _texts(row.get("prune")),
        )
    return None


def _patch(row: Mapping[str, Any]) -> PatchStep:
    template, merge, status = (row.get(key) for key in ("template", "merge", "status"))
    return PatchStep(
        str(row.get("target", "")),
        None if not isinstance(template, Mapping) else _template(template),
        None if merge is None else _mapping(merge),
        None if status is None else _mapping(status),
        _mapping(row.get("where")),
        str(row.get("refused", "")),
    )


def _template(row: Mapping[str, Any]) -> TemplatePatch:
    return TemplatePatch(
        _mapping(row.get("annotations")), _mapping(row.get("labels")), str(row.get("image", ""))
    )


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return None if value is None else str(value)
