"""ScaledObject of KEDA, keda.sh/v1alpha1.

**The pause.** KEDA would scale a resting target up again, so its ScaledObject is paused at zero with an annotation, and only that annotation is
ever written (O2). It is never copied (O12, case C14): the primary would stay at zero. A copy that another controller made with it is
healed, since nothing but that mistake asks for no pods on the primary; any other pause that somebody puts on the copy stays.

**A user's own pause** of the original, at another number, is not lost: while the target rests, the number waits in an annotation of
ours, and it is back in force when the run starts. KEDA would otherwise hold an idle target at that number. A pause at zero cannot be told
from one that Flagger left, and ends with the next run. What a user sets while the target rests wins over what waits.

**Queries.** A trigger's query that counts the target's requests would scale the primary by the canary's. So names are replaced: as
`primaryScalerQueries` says, or else the target's name (with or without `-canary`), where it stands as a word of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from harness.controller.core.autoscalers.base import FIELD, Scaler, reference
from harness.controller.core.names import CANARY_SUFFIX, PRIMARY_SUFFIX, target_name

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Plural, Write

PAUSED: Final = "autoscaling.keda.sh/paused-replicas"
"""KEDA holds the workload at that number and does nothing else."""
WAITING: Final = "rollout-drill/paused-replicas"
"""The number that a user had paused at, while ours is in force."""
_ZERO: Final = "0"
_PAUSED_AS_IS: Final = "autoscaling.keda.sh/paused"
"""Holds the workload at the number it has. Also said of one object at one time, so not copied either."""
_NAME_LABEL: Final = "scaledobject.keda.sh/name"
"""Label by which KEDA repeats an object's own name."""


class ScaledObject(Scaler):
    """KEDA's."""

    kind: ClassVar[str] = "ScaledObject"
    plural: ClassVar[Plural] = "scaledobjects"
    api_version: ClassVar[str] = "keda.sh/v1alpha1"
    least_field: ClassVar[str] = "minReplicaCount"
    most_field: ClassVar[str] = "maxReplicaCount"
    default_bounds: ClassVar[tuple[int, int | None]] = (0, 100)
    zero: ClassVar[bool] = True
    own_keys: ClassVar[frozenset[str]] = frozenset({PAUSED, WAITING, _PAUSED_AS_IS, _NAME_LABEL})

    @property
    def warning(self) -> str:
        """What can hardly be meant: another workload, or a query for a trigger that does not exist."""
        triggers = ((self.source or {}).get("spec") or {}).get("triggers") or []
        named = {trigger.get("name") for trigger in triggers}
        lost = sorted(set(_queries(self.canary)) - named) if self.source else []
        if lost:
            return (
                f"{FIELD}.primaryScalerQueries names {', '.join(map(repr, lost))}, but no trigger of"
                f" {self.kind} {self.name!r} has that name"
            )
        return super().warning

    def keep(self) -> tuple[Write, ...]:
        """Return the write that makes the copy, or ends a pause at zero that it never should have had; nothing when all is well."""
        if (
            not self.problem
            and self.copy is not None
            and _annotations(self.copy).get(PAUSED) == _ZERO
        ):
            return self._patch(self.copy, _annotate({PAUSED: None}))
        return super().keep()

    def pause(self) -> tuple[Write, ...]:
        """Return the write that pauses the original at zero."""
        held = _annotations(self.source)
        if self.source is None or held.get(PAUSED) == _ZERO:
            return ()
        change: JSON = {PAUSED: _ZERO}
        if held.get(PAUSED) is not None or WAITING in held:
            # Also takes away a number that waits although the user has ended that pause.
            change[WAITING] = held.get(PAUSED)
        return self._patch(self.source, _annotate(change))

    def resume(self) -> tuple[Write, ...]:
        """Return the write that ends our pause, and puts a user's back."""
        held = _annotations(self.source)
        change: JSON = {PAUSED: held.get(WAITING)} if held.get(PAUSED) == _ZERO else {}
        if WAITING in held:
            change[WAITING] = None
        return self._patch(self.source, _annotate(change)) if self.source and change else ()

    def promote(self) -> tuple[Write, ...]:
        """Return the write that brings the copy up to date; healing the pause goes with it."""
        writes = super().promote()
        if not writes or self.copy is None or _annotations(self.copy).get(PAUSED) != _ZERO:
            return writes or self.keep()
        (write,) = writes
        meta: JSON = write.body.setdefault("metadata", {})
        meta.setdefault("annotations", {})[PAUSED] = None
        return writes

    def _spec(self, source: JSON) -> JSON:
        spec = super()._spec(source)
        if spec.get(self.least_field) == 0 and (source.get("spec") or {}).get(self.least_field):
            # Zero as the minimum already says what the idle count says, and KEDA refuses one that is not below it.
            spec.pop("idleReplicaCount", None)
        hpa = (spec.get("advanced") or {}).get("horizontalPodAutoscalerConfig") or {}
        if hpa.get("name"):
            hpa["name"] += PRIMARY_SUFFIX
        for trigger in spec.get("triggers") or []:
            self._retarget(trigger)
        return spec

    def _retarget(self, trigger: JSON) -> None:
        metadata: JSON = trigger.get("metadata") or {}
        queries = _queries(self.canary)
        if queries:
            if trigger.get("name") in queries:
                trigger["metadata"] = metadata | {"query": queries[trigger["name"]]}
        elif metadata.get("query"):
            metadata["query"] = for_primary(str(metadata["query"]), target_name(self.canary))


def for_primary(query: str, target: str) -> str:
    """Return a query that speaks of a target with the primary in its place; one that speaks of the primary already stays.

    Letters, digits or `_` next to the name make it another word (a metric's name, say). A `-` does not: pods are matched by patterns like
    `web-.*`.
    """
    word = rf"(?<!\w){re.escape(target)}(?:(?:{CANARY_SUFFIX}|{PRIMARY_SUFFIX})(?!\w))?(?!\w)"
    primary = target + PRIMARY_SUFFIX
    return re.sub(word, lambda _: primary, query)


def _queries(canary: JSON) -> JSON:
    return reference(canary).get("primaryScalerQueries") or {}


def _annotations(obj: JSON | None) -> JSON:
    return ((obj or {}).get("metadata") or {}).get("annotations") or {}


def _annotate(change: JSON) -> JSON:
    return {"metadata": {"annotations": change}}
