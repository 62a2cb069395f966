"""What a kind of target is: how it is copied, scaled, put to zero, and when it is rolled out.

Implementations have no state and look at nothing but their arguments. The transition table speaks of target and primary only through
this protocol, so that a kind is one file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from harness.controller.core.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core.decision import JSON, Objects, Plural, Write
    from harness.controller.core.names import Names
    from harness.controller.core.readiness import Readiness
    from harness.controller.core.snapshots import Snapshot
    from harness.controller.core.templates import Difference


Role = Literal["apex", "primary", "canary"]
"""Of a Service of ours."""


def unchanged(_: JSON) -> None:
    """Change nothing in a pod spec."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Target and primary as read in this pass, and what concerns both."""

    canary: JSON
    names: Names
    target: JSON
    primary: JSON | None = None
    objects: Objects = field(default_factory=dict)
    revision: str = ""
    """What `flagger-id` of the primary's template is to say: hash of the target's template, and digest of its configs."""
    rewrite: Callable[[JSON], None] = unchanged
    """Points a pod spec (a copy, in place) at the `-primary` configs."""
    scaled: bool = False
    """An autoscaler owns the numbers (`spec.autoscalerRef`): the primary's replicas are not touched."""
    least: int = 1
    """Least replicas of a run when nothing else says: the autoscaler's minimum."""
    policy: Policy = DEFAULT
    """Which of the target's labels and annotations the primary gets."""
    rests: bool = False
    """The primary's autoscaler may take its last pod away (a ScaledObject with minReplicaCount 0): then its zero is as it should be."""
    selected: frozenset[str] = frozenset()
    """Values of `pod-template-hash` that our Services select now."""


class Apart:
    """What is the same for every kind whose primary is an object, or a name, of its own: nothing about it has to be remembered."""

    def selector(self, pair: Pair, role: Role, _held: JSON) -> JSON:
        """Return the selector label with its value on target or primary."""
        names = pair.names
        return {names.label: names.value if role == "canary" else names.primary_value}

    def remembered(self, _pair: Pair) -> JSON:
        """Nothing: the primary has a name of its own."""
        return {}

    def leftovers(self, _pair: Pair) -> tuple[Write, ...]:
        """Nothing: the primary rolls by itself."""
        return ()

    def counted(self, _pair: Pair) -> JSON:
        """Nothing: the target's selector finds no pods of the primary."""
        return {}


class Target(Protocol):
    """A kind of target."""

    kind: str
    """As people write it: Deployment, DaemonSet, Service, Knative Service."""
    plural: Plural
    pods: bool
    """Whether it has a pod template: configs, selector label and Services of ours."""
    scales: bool
    """Whether it can be put to zero."""
    copies: bool
    """Whether the primary is an object of its own, made from the target's template."""

    def problem(self, target: JSON) -> str:
        """Return why this target cannot be handled, naming field and allowed values; empty when it can. It is then left running."""
        ...

    def snapshot(self, target: JSON) -> Snapshot:
        """Return hash and fence."""
        ...

    def rolled_out(self, obj: JSON, percent: int) -> Readiness:
        """Judge target or primary."""
        ...

    def expected(self, obj: JSON) -> int:
        """Return how many pods an object asks for; 0 where it has none."""
        ...

    def canary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether the revision to be analysed is there and ready; at zero it is not."""
        ...

    def primary_ready(self, pair: Pair, percent: int) -> Readiness:
        """Whether what serves is rolled out; at zero only when the target is at zero too (P12, A12)."""
        ...

    def idle(self, pair: Pair) -> bool:
        """Whether the target is at zero; always True where nothing can be put to zero."""
        ...

    def empty(self, pair: Pair) -> bool:
        """Whether a run would judge not a single pod, since target and primary are both at zero on purpose."""
        ...

    def to_zero(self, pair: Pair) -> tuple[Write, ...]:
        """Return the write that takes the target's pods away; nothing when it is at zero."""
        ...

    def to_run(self, pair: Pair) -> tuple[Write, ...]:
        """Return the write that brings the target's pods back; nothing when it is not at zero."""
        ...

    def exists(self, pair: Pair) -> bool:
        """Whether there is a primary."""
        ...

    def create(self, pair: Pair) -> tuple[Write, ...]:
        """Return the writes that make the primary (and whatever stands in for it)."""
        ...

    def keep(self, pair: Pair) -> tuple[Write, ...]:
        """Return the writes that are needed in every phase (a core Service's `-canary`); usually nothing."""
        ...

    def promote(self, pair: Pair) -> tuple[Write, ...]:
        """Return the writes that bring the target's revision to the primary; nothing when it is there (P10)."""
        ...

    def revision_of(self, pair: Pair) -> str:
        """Return the revision that the primary was made from, as `Pair.revision` named it; empty when another controller made it."""
        ...

    def holds(self, pair: Pair) -> bool:
        """Whether the primary is exactly what the target makes, the name of the revision aside."""
        ...

    def differences(self, pair: Pair) -> tuple[Difference, ...]:
        """Where both differ in more than the primary's rewriting (D11)."""
        ...

    def revert(self, pair: Pair) -> tuple[Write, ...]:
        """Return the writes that let the target serve alone again, before its Canary goes."""
        ...

    def selector(self, pair: Pair, role: Role, held: JSON) -> JSON:
        """Return what the Service in that role selects; `held`: what it selects now, empty when there is none. Asked only of kinds with pods."""
        ...

    def remembered(self, pair: Pair) -> JSON:
        """Return status fields that name what serves as primary; empty for none."""
        ...

    def leftovers(self, pair: Pair) -> tuple[Write, ...]:
        """Return the writes that remove pods which served before the last promotion and serve no more; usually nothing."""
        ...

    def counted(self, pair: Pair) -> JSON:
        """Return labels that tell the target's pods from the primary's, beyond the target's own selector; empty where that does."""
        ...
