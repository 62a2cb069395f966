"""What goes into `decide()` and what comes out of it. Plain data, no behaviour beyond look-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness.controller.core.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.controller.core.calls import Answer, Call

JSON = dict[str, Any]
"""A raw object as the API server serves it. Never a typed model: unknown fields must survive (O1, O2, D7)."""

Plural = Literal[
    "canaries",
    "deployments",
    "daemonsets",
    "services",
    "configmaps",
    "secrets",
    "horizontalpodautoscalers",
    "scaledobjects",
    "httproutes",
    "virtualservices",
    "destinationrules",
    "kservices",
    "krevisions",
    "replicasets",
]
"""The kinds that a pass may read. `kservices` and `krevisions` are Knative's services and revisions."""
Objects = Mapping[str, Mapping[str, JSON]]
"""Objects by plural and name."""
Severity = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A Canary's place in the line of those that want to analyse (deviation D4)."""

    granted: bool
    position: int = 0
    """1: next; 0 when granted."""
    waiting: int = 0
    """How many wait, this one included."""
    limit: str = ""
    """The limit that holds it up, in words."""


@dataclass(frozen=True, slots=True)
class World:
    """What was read, besides the Canary itself: everything of one namespace that concerns it."""

    target: JSON | None = None
    """The object that `spec.targetRef` names."""
    primary: JSON | None = None
    """The object of the same kind and name with `-primary`; None for a Knative Service, which has none."""
    services: Mapping[str, JSON] = field(default_factory=dict)
    """Services by name; those of other names are ignored."""
    objects: Objects = field(default_factory=dict)
    """Whatever else concerns the Canary: configs, scalers, routes, revisions."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Kinds that this Canary needs and that cannot be watched, with the reason (no CRD, no permission)."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """Kinds of configs that cannot be watched, with the reason: target and primary share such objects."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """Answers to calls of earlier passes, by key, since the last status write."""
    unmeasurable: str = ""
    """Why a metric of this Canary can never be measured here: its template names a source that is not implemented."""
    refused_write: str = ""
    """What the API server said when it refused the last write for this Canary; empty once a write went through."""
    rival: str = ""
    """An older Canary with the same target."""
    revisions: Sequence[JSON] | None = None
    """The target's ReplicaSets, others too; None while they were not read, which only some passes need."""
    ready_pods: int | None = None
    """The target's pods that are ready and not on their way out, counted by themselves; None while they were not, which only rare passes
    need. Unlike a workload's status this is never behind."""
    prunes_fence: bool = False
    """The installed CRD has no place for the fence (D10)."""
    policy: Policy = DEFAULT
    """What whoever runs the controller has chosen."""
    turn: Turn | None = None
    """This Canary's place in the line for an analysis; None while it was not asked for, which only rows that begin or resume one do."""
    crd_drops: tuple[str, ...] = ()
    """What this Canary asks for and the installed CRD has no place for: fields and enum values, as paths."""
    tracking_held: bool = False
    """A tracking write was just refused: go on without, it is tried again later (spec change-detection B5)."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write to an object, idempotent: done twice it changes nothing, done on a stale read it is refused.

    create: `body` is the object; refused when the name exists.
    patch: `body` is a JSON merge patch. replace: `body` is the whole object. delete: `body` is empty; gone already is success.
    """

    verb: Literal["create", "patch", "replace", "delete"]
    resource: Plural
    name: str
    body: JSON
    precondition: str = ""
    """The resourceVersion that `body` was computed from; empty for create."""
    uid: str = ""
    """delete: this very object, in the state of `precondition`, with what it owns; refused when another one has its name, or it was changed."""


@dataclass(frozen=True, slots=True)
class Alert:
    """What goes to the people who want to be told (spec canary-api 7)."""

    severity: Literal["info", "warn", "error"]
    message: str
    facts: bool = False
    """Whether target, threshold, deadline and routing are listed with it."""


@dataclass(frozen=True, slots=True)
class Note:
    """An event to record on the Canary, at most once for each `key`."""

    severity: Severity
    message: str
    key: str
    """Names the occasion: the same fact, seen again by a later pass or after a crash, has the same key."""
    alert: Alert | None = None
    """Sent once, when the event is new."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What the answer to a write of ours must hold for its fence to be recorded (spec change-detection B6)."""

    resource: Plural
    name: str
    """The target."""
    hash: str
    """Its hash; another one means that somebody changed the template meanwhile, which must not be fenced in."""
    revision: str = ""
    """The revision of the template with that hash, when it is known from before the write."""
    otherwise: JSON | None = None
    """When the answer holds another template: the status patch to write instead, to which its hash and fence are added."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one pass does, in this order: `writes`, `notes`, then the `status`.

    The status goes last on purpose. Until it is written, the next pass (after a crash, say) sees the old status, decides the same
    again and finds the writes done.
    """

    row: str = ""
    """Name of the row of the transition table that decided; for logs and tests."""
    writes: tuple[Write, ...] = ()
    notes: tuple[Note, ...] = ()
    status: JSON | None = None
    """JSON merge patch for `.status`, with the Canary's resourceVersion as precondition; None when nothing changes (P15)."""
    refresh: Refresh | None = None
    """When set, the status gets the fence of what the write to the target returned."""
    tracking: bool = False
    """Nothing but tracking is written: a refusal is a warning, and the rollout goes on (spec change-detection B5)."""
    keeps_answers: bool = False
    """The status write counts no answer: those that there are stay."""
    calls: tuple[Call, ...] = ()
    """Questions to be answered before the next pass; nothing else is decided meanwhile but `writes` and `notes`."""
    asks_turn: bool = False
    """Nothing was decided yet: ask the line for a turn and decide again."""
    reads_pods: bool = False
    """Nothing was decided yet: count the target's ready pods and decide again."""
    pods: JSON = field(default_factory=dict)
    """Labels that tell the target's pods from others that its selector finds too."""
    reads_revisions: bool = False
    """Nothing was decided yet: read the target's ReplicaSets and decide again."""
    looked: str = ""
    """Row of the change table that this pass came to, or why it did not ask; empty when another pass follows at once."""
    requeue_after: float | None = None
    """Seconds until time alone can change the decision; None when only a watch can."""
