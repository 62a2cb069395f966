"""A scenario after its variant was chosen: plain, frozen, and ready to run or to judge.

Everything here is data: templates are rendered, durations are seconds, names are checked. The JSON form is what a timeline's
header carries; reading it back never fails because of redaction, since a redacted text may stand anywhere a text or a value did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from harness.model.actions import (
    ACTIONS,
    Action,
    ApplyAsStep,
    ApplyStep,
    DeleteStep,
    GateStep,
    HandbackStep,
    KillStep,
    MetricStep,
    NodeStep,
    PatchStep,
    ScaleStep,
    StartStep,
    StopStep,
    TemplatePatch,
    UpgradeStep,
    WaitStep,
    read_action,
)
from harness.model.flags import FlagValue, read_flags
from harness.model.nodes import Nodes, read_nodes
from harness.model.outcome import Outcome
from harness.model.standins import (
    PLACEHOLDERS,
    PROMETHEUS,
    RECEIVER,
    Receiver,
    read_metrics,
    read_receiver,
)
from harness.model.traffic import Traffic, read_traffic

DEFAULT_VARIANT: Final = "default"
"""Name of the only variant of a scenario that declares none."""

ANY_PHASE: Final = "any"
"""Expected phase of a drill whose rollouts may end in any phase: then its checks decide."""

CheckKind = Literal["eventually", "always", "never"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: at most one action, then at most one condition to wait for."""

    name: str
    action: Action | None = None
    until: str | None = None
    """CEL; the step is over once it is true. None: the step is over when its action is done."""
    within: float | None = None
    """Seconds that `until` may take; None exactly when there is no `until`."""
    change: bool = False
    """Whether this is *the* change, from which the report counts; true for at most one step."""

    @property
    def verb(self) -> str | None:
        """Name of the action's verb, or None for a step that only waits for its condition."""
        return None if self.action is None else self.action.VERB


@dataclass(frozen=True, slots=True)
class Check:
    """One statement over the timeline."""

    id: str
    title: str
    """A sentence for the report."""
    kind: CheckKind
    expression: str
    """CEL."""
    from_: str | None = None
    """Name of a step (from when its `until` held) or `end`; None: from the first observation."""
    until: str = "settled"
    """Name of a step (until its `until` held), `end`, or `settled`: the end of the settle time."""
    hold_for: float = 0.0
    """Seconds; only counts when the expression holds without a break for longer than this."""
    otherwise: Outcome = Outcome.FAIL
    """What becomes of it when it was seen not to hold: `fail`, or `unknown` for a check that only says whether the others mean
    anything."""


@dataclass(frozen=True, slots=True)
class Record:
    """A part of an object that the report quotes."""

    title: str
    object: str
    """`primary`, `target`, `primary-pod`, `target-pod`, `rollout` or `Kind/name`."""
    path: str
    """Dotted path within the object; empty for all of it."""
    at: tuple[str, ...] = ("end",)
    """When: names of steps (when their `until` held) or `end`, in the order given."""


@dataclass(frozen=True, slots=True)
class DoneWhen:
    """One line of the list that says when the question is answered."""

    text: str
    by: tuple[str, ...]
    """Ids of checks, the built-in ones and `verdict` included; all must pass."""


@dataclass(frozen=True, slots=True)
class Expect:
    """How the drill should end."""

    phase: str = "Succeeded"
    """A phase, or `any`."""
    fail: tuple[str, ...] = ()
    """Ids of the checks that must fail; all others must pass."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A scenario for one variant, with every template rendered."""

    name: str
    variant: str
    """E.g. `with-key` or `with-key,replicas=1`."""
    id: str
    """`name[variant]`."""
    question: str
    setup: str
    description: str
    """What this variant is about; may be empty."""
    requires: tuple[str, ...]
    """Features (`harness.model.features`) that subject or cluster must have."""
    nodes: Nodes
    values: Mapping[str, Any]
    expect: Expect
    settle: float
    """Seconds of observation after the last step."""
    manifests: tuple[str, ...]
    """Paths relative to the scenario's folder."""
    steps: tuple[Step, ...]
    record: tuple[Record, ...]
    checks: tuple[Check, ...]
    done_when: tuple[DoneWhen, ...]
    digest: str
    """First 12 hex digits of the SHA-256 over the scenario file and its manifests."""
    adopted: bool = False
    """Whether the manifests are somebody's own: never templated, and their namespace is replaced by the drill's."""
    subject: str | None = None
    """Name of the subject that the drill starts with; None: the user chooses."""
    kubernetes: str | None = None
    """Version of Kubernetes that the cluster starts with, e.g. `v1.34.4` or `v1.34`; None: the user's or the default."""
    slow: bool = False
    """Whether pytest runs it only when slow drills are asked for."""
    receiver: Receiver | None = None
    """What webhooks and alerts are answered; None: there is nobody to call."""
    metrics: Mapping[str, str] | None = None
    """Series -> its value at the start (`harness.model.standins.parse_value`); None: there is no metrics server."""
    controller: Mapping[str, FlagValue] | None = None
    """Flags of the bundled controller by their names in humps, with values; None: it is started as it is by default."""
    traffic: Traffic | None = None
    """Requests that a probe in the cluster sends; None: nobody asks anything."""

    @property
    def change_step(self) -> str | None:
        """Name of the step that is the change, if any."""
        return next((step.name for step in self.steps if step.change), None)

    @property
    def subjects(self) -> tuple[str | None, ...]:
        """Names of all subjects in their order: the first (None: the user's choice), and those of upgrade steps."""
        upgrades = (step.action for step in self.steps if isinstance(step.action, UpgradeStep))
        return self.subject, *(action.subject for action in upgrades if action.subject is not None)

    @property
    def placeholders(self) -> dict[str, str]:
        """The names that templates have for the addresses of its stand-ins, with what they get while none runs."""
        declared = {RECEIVER: self.receiver, PROMETHEUS: self.metrics}
        return {name: PLACEHOLDERS[name] for name, given in declared.items() if given is not None}

    @property
    def control(self) -> bool:
        """Whether this variant is a control: at least one of its checks is expected to fail."""
        return bool(self.expect.fail)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form: plain types only, durations in seconds."""
        body: dict[str, Any] = {
            item.name: _plain(getattr(self, item.name)) for item in dataclasses.fields(self)
        }
        body["nodes"] = self.nodes.to_json()
        body["steps"] = [_step_json(step) for step in self.steps]
        body["checks"] = [_check_json(check) for check in self.checks]
        body["doneWhen"] = body.pop("done_when")
        for name in ("receiver", "metrics", "controller", "traffic"):
            # Most scenarios have none, and their recordings are as they were before there was such a thing.
            if body[name] is None:
                del body[name]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Resolved:
        """Read the JSON form back, the redacted one too.

        Keys that are missing get their defaults and unknown ones are ignored, so that recordings of other versions can be judged.
        """
        return cls(
            name=str(body.get("name", "")),
            variant=str(body.get("variant", DEFAULT_VARIANT)),
            id=str(body.get("id", "")),
            question=str(body.get("question", "")),
            setup=str(body.get("setup", "")),
            description=str(body.get("description", "")),
            requires=_texts(body.get("requires")),
            nodes=read_nodes(body.get("nodes")),
            values=_mapping(body.get("values")),
            expect=_expect(body.get("expect")),
            settle=_number(body.get("settle")) or 0.0,
            manifests=_texts(body.get("manifests")),
            steps=tuple(_step(row) for row in _rows(body.get("steps"))),
            record=tuple(_record(row) for row in _rows(body.get("record"))),
            checks=tuple(_check(row) for row in _rows(body.get("checks"))),
            done_when=tuple(_done(row) for row in _rows(body.get("doneWhen"))),
            digest=str(body.get("digest", "")),
            adopted=body.get("adopted") is True,
            subject=_text(body.get("subject")),
            kubernetes=_text(body.get("kubernetes")),
            slow=body.get("slow") is True,
            receiver=read_receiver(body.get("receiver")),
            metrics=read_metrics(body.get("metrics")),
            controller=read_flags(body.get("controller")),
            traffic=read_traffic(body.get("traffic")),
        )


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _step_json(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "verb": step.verb,
        "action": _plain(step.action),
        "until": step.until,
        "within": step.within,
        "change": step.change,
    }


def _check_json(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "title": check.title,
        "kind": check.kind,
        "expression": check.expression,
        "from": check.from_,
        "until": check.until,
        "for": check.hold_for,
        "otherwise": check.otherwise.value,
    }


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return float(cast("float", value)) if good else None


def _expect(value: object) -> Expect:
    row = _mapping(value)
    return Expect(str(row.get("phase", "Succeeded")), _texts(row.get("fail")))


def _step(row: Mapping[str, Any]) -> Step:
    return Step(
        name=str(row.get("name", "")),
        action=read_action(row.get("verb"), row.get("action")),
        until=_text(row.get("until")),
        within=_number(row.get("within")),
        change=row.get("change") is True,
    )


def _check(row: Mapping[str, Any]) -> Check:
    return Check(
        id=str(row.get("id", "")),
        title=str(row.get("title", "")),
        kind=row.get("kind", "never"),
        expression=str(row.get("expression", "")),
        from_=_text(row.get("from")),
        until=str(row.get("until") or "settled"),
        hold_for=_number(row.get("for")) or 0.0,
        otherwise=Outcome.UNKNOWN if row.get("otherwise") == Outcome.UNKNOWN else Outcome.FAIL,
    )


def _record(row: Mapping[str, Any]) -> Record:
    return Record(
        title=str(row.get("title", "")),
        object=str(row.get("object", "")),
        path=str(row.get("path", "")),
        at=_texts(row.get("at")) or ("end",),
    )


def _done(row: Mapping[str, Any]) -> DoneWhen:
    return DoneWhen(str(row.get("text", "")), _texts(row.get("by")))


__all__ = [
    "ACTIONS",
    "ANY_PHASE",
    "DEFAULT_VARIANT",
    "Action",
    "ApplyAsStep",
    "ApplyStep",
    "Check",
    "CheckKind",
    "DeleteStep",
    "DoneWhen",
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
    "StartStep",
    "Step",
    "StopStep",
    "TemplatePatch",
    "UpgradeStep",
    "WaitStep",
]
