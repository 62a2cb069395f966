"""What an autoscaler is to a Canary: an original that scales the target, and a copy that scales the primary.

Both are raw JSON. The copy's spec is the original's, with every field that we do not know (O2), and the few changes that `_spec`
of the kind makes. The original is written to only in its pause (`scaledobject.py`), and there one annotation only.

The copy is made when it is missing, in any phase, and brought up to date at a promotion, its labels and annotations included (O11, O14).
Another pass over the same objects writes nothing.
"""

from __future__ import annotations

import copy as copying
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from harness.controller.core.decision import JSON, Plural, Write
from harness.controller.core.names import PRIMARY_SUFFIX, target_name
from harness.controller.core.ownership import (
    TOOLKIT,
    controller_of,
    foreign,
    owner_reference,
    without_toolkit,
)
from harness.controller.core.patches import difference

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELD: Final = "spec.autoscalerRef"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def reference(canary: JSON) -> JSON:
    """Return `spec.autoscalerRef`; empty when there is none."""
    return canary["spec"].get("autoscalerRef") or {}


@dataclass(frozen=True)
class Scaler:
    """The autoscaler of one Canary, as read in one pass. Subclasses are the kinds."""

    canary: JSON
    source: JSON | None
    """The original, which scales the target."""
    copy: JSON | None
    """What has the copy's name."""

    kind: ClassVar[str]
    plural: ClassVar[Plural]
    api_version: ClassVar[str]
    least_field: ClassVar[str]
    most_field: ClassVar[str]
    default_bounds: ClassVar[tuple[int, int | None]]
    """What the API assumes for unset bounds; None for one that has to be set."""
    zero: ClassVar[bool]
    """Whether the least number of replicas may be 0 (O13)."""
    own_keys: ClassVar[frozenset[str]] = frozenset()
    """Labels and annotations that speak of one object only: never copied, and left alone on the copy."""

    @property
    def name(self) -> str:
        """Name of the original."""
        return str(reference(self.canary).get("name") or "")

    @property
    def copy_name(self) -> str:
        """Name of the copy."""
        return self.name + PRIMARY_SUFFIX

    @property
    def primary(self) -> str:
        """Name of the workload that the copy scales."""
        return target_name(self.canary) + PRIMARY_SUFFIX

    @property
    def problem(self) -> str:
        """Why the primary cannot have its autoscaler, in one sentence; empty when it can. Then nothing is written to the copy."""
        if self.source is None:
            return f"{self.kind} {self.name!r} ({FIELD}) does not exist"
        return self._foreign() or self._bounds_problem(self.source)

    @property
    def warning(self) -> str:
        """What can hardly be meant, in one sentence; nothing depends on it."""
        target = target_name(self.canary)
        scaled = _scaled(self.source)
        if scaled and scaled != target:
            return (
                f"{self.kind} {self.name!r} ({FIELD}) scales {scaled!r}, not the target {target!r}"
            )
        return ""

    @property
    def least(self) -> int:
        """Replicas that a run starts with when nothing else says: the original's minimum, at least 1 (spec state-machine 4)."""
        value = ((self.source or {}).get("spec") or {}).get(self.least_field)
        return max(int(value or 0), 1)

    @property
    def rests(self) -> bool:
        """Whether the copy may take the primary's last pod away."""
        low = (((self.copy or {}).get("spec")) or {}).get(self.least_field, self.default_bounds[0])
        return self.zero and int(low or 0) == 0

    def keep(self) -> tuple[Write, ...]:
        """Return the write that makes the copy; nothing when it is there."""
        if self.source is None or self.problem or self.copy is not None:
            return ()
        return (Write("create", self.plural, self.copy_name, self._copy(self.source)),)

    def promote(self) -> tuple[Write, ...]:
        """Return the write that brings the copy up to date, or makes it; nothing when it is."""
        if self.source is None or self.problem or self.copy is None:
            return self.keep()
        wanted, held = self._copy(self.source), self.copy
        patch: JSON = {}
        spec = difference(held.get("spec") or {}, wanted["spec"])
        if spec:
            patch["spec"] = spec
        meta = self._metadata(held["metadata"], wanted["metadata"])
        if meta:
            patch["metadata"] = meta
        return self._patch(held, patch)

    def pause(self) -> tuple[Write, ...]:
        """Return the write that lets the target rest at zero; nothing when it does, or when the kind leaves it there by itself."""
        return ()

    def resume(self) -> tuple[Write, ...]:
        """Return the write that undoes `pause`; nothing when there is nothing to undo."""
        return ()

    def _spec(self, source: JSON) -> JSON:
        """Return the copy's spec. The argument stays as it is."""
        spec: JSON = copying.deepcopy(source.get("spec") or {})
        spec["scaleTargetRef"] = {**(spec.get("scaleTargetRef") or {}), "name": self.primary}
        given = reference(self.canary).get("primaryScalerReplicas") or {}
        for field, ours in (("minReplicas", self.least_field), ("maxReplicas", self.most_field)):
            if given.get(field) is not None:
                spec[ours] = int(given[field])
        return spec

    def _copy(self, source: JSON) -> JSON:
        meta = source["metadata"]
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {
                "name": self.copy_name,
                "namespace": self.canary["metadata"]["namespace"],
                "labels": self._copied(meta.get("labels")),
                "annotations": self._copied(meta.get("annotations")),
                "ownerReferences": [owner_reference(self.canary)],
            },
            "spec": self._spec(source),
        }

    def _copied(self, keys: JSON | None) -> JSON:
        # What kubectl remembers describes the original; on the copy a later apply would act on it.
        left = self.own_keys | {_LAST_APPLIED}
        return {key: value for key, value in without_toolkit(keys).items() if key not in left}

    def _metadata(self, held: JSON, wanted: JSON) -> JSON:
        """Return the merge patch of the metadata; keys that are the copy's own stay."""
        patch: JSON = {}
        for field in ("labels", "annotations"):
            present: JSON = held.get(field) or {}
            own = {key: present[key] for key in present if self._own(key)}
            change = difference(present, wanted[field] | own)
            if change:
                patch[field] = change
        owners = held.get("ownerReferences") or []
        if not any(owner.get("controller") for owner in owners):
            patch["ownerReferences"] = [*_others(owners, self.canary), owner_reference(self.canary)]
        return patch

    def _own(self, key: str) -> bool:
        return key in self.own_keys or key == _LAST_APPLIED or TOOLKIT in key

    def _patch(self, obj: JSON, patch: JSON) -> tuple[Write, ...]:
        meta = obj["metadata"]
        write = Write("patch", self.plural, meta["name"], patch, str(meta["resourceVersion"]))
        return (write,) if patch else ()

    def _foreign(self) -> str:
        """One that nobody controls is ours if it scales the primary: what a Canary that was deleted leaves when its objects are kept."""
        if self.copy is None:
            return ""
        whose = foreign(self.copy, self.canary)
        if whose:
            return f"{self.kind} {self.copy_name!r} belongs to {whose}: left alone"
        scaled = _scaled(self.copy)
        if controller_of(self.copy) is None and scaled != self.primary:
            return (
                f"{self.kind} {self.copy_name!r} belongs to no Canary and scales {scaled!r}, not"
                f" {self.primary!r}: left alone; remove or rename it"
            )
        return ""

    def _bounds_problem(self, source: JSON) -> str:
        if not reference(self.canary).get("primaryScalerReplicas"):
            return ""
        spec = self._spec(source)
        least, most = self.default_bounds
        low, high = spec.get(self.least_field, least), spec.get(self.most_field, most)
        if low is None or high is None or int(low) <= int(high):
            return ""
        return (
            f"{FIELD}.primaryScalerReplicas: with what {self.kind} {self.name!r} sets, the primary would get at least"
            f" {low} and at most {high} replicas; the least must not be above the most"
        )


def _scaled(scaler: JSON | None) -> str:
    spec = (scaler or {}).get("spec") or {}
    return str((spec.get("scaleTargetRef") or {}).get("name") or "")


def _others(owners: Iterable[JSON], canary: JSON) -> list[JSON]:
    return [owner for owner in owners if owner.get("uid") != canary["metadata"]["uid"]]
