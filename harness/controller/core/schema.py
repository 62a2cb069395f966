"""Does the installed Canary CRD have what a Canary asks for? Which fields and enum values there must be, and how that is found out.

The API server drops a field that the CRD does not have, without a word, and refuses a value that an enum does not list. For a freeze or a
restoration that must not go unnoticed: a freeze that cannot be written down would end in another way than the one that was asked for. So a
Canary that asks for something the CRD has no place for is refused, and says what is missing.

**What a Canary asks for** stands in its spec; where the CRD drops the very field, only in the manifest that `kubectl apply` remembers in an
annotation. Tools that apply on the server's side leave no such manifest, and managedFields do not name what was dropped: for those there is
only the warning at the start. A field that the manifest has and the spec has not may also have been removed by an edit since: asked is
therefore whether the CRD would keep it. A Canary that was refused for it stays refused until its spec has the field: a better CRD alone
does not bring back what was dropped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core import conditions as cond
from harness.controller.core.frozen import PHASE
from harness.controller.core.pruned import FENCE_FIELD
from harness.controller.core.restore import FIELD, VALUES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.controller.core.decision import JSON

UNSUPPORTED: Final = "Unsupported"
"""Reason of condition Accepted."""
FILE: Final = "fixtures/crds/canaries.yaml"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_PROBE: Final = "probe/1"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"


@dataclass(frozen=True, slots=True)
class Place:
    """A field of the Canary, or one value of a field that lists its values."""

    path: tuple[str, ...]
    value: Any = field(default=_PROBE, hash=False)
    """What a probe writes there."""
    listed: bool = False
    """Whether it is this value that must be possible."""

    @property
    def in_status(self) -> bool:
        """Whether it belongs to the status, which is written by itself."""
        return self.path[0] == "status"

    def __str__(self) -> str:
        dotted = ".".join(self.path)
        return f"value {self.value!r} of {dotted}" if self.listed else dotted

    def patch(self) -> JSON:
        """Return the merge patch that writes it."""
        body: Any = self.value
        for key in reversed(self.path):
            body = {key: body}
        return dict(body)

    def kept(self, canary: JSON) -> bool:
        """Whether a Canary holds what was written; a map is written into one that is there."""
        held: Any = canary
        for key in self.path:
            held = held.get(key) if isinstance(held, dict) else None
        if isinstance(held, dict) and isinstance(self.value, dict):
            return self.value.items() <= held.items()
        return bool(held == self.value)


FREEZE: Final = Place(("spec", "analysis", "freezeOnFailure"), value=True)
FROZEN: Final = Place(("status", "phase"), PHASE, listed=True)
FENCE: Final = Place(("status", FENCE_FIELD))
_FAILED: Final = Place(("status", FIELD))
_ADOPTION: Final = tuple(Place(("status", key), {"probe": _PROBE}) for key in ("parked", "restore"))
_RESTORE: Final = {
    value: Place(("spec", "analysis", "restore"), value, listed=True) for value in VALUES
}
USED: Final = (FREEZE, FROZEN, *_RESTORE.values(), _FAILED, *_ADOPTION, FENCE)
"""Everything beyond Flagger's own schema that this controller reads or writes."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that a Canary asks for and a CRD may have no place for."""

    needs: tuple[Place, ...]
    """What must be possible for it."""
    hidden: Place | None = None
    """The field of the spec that asks for it, when only the remembered manifest has it."""

    @property
    def places(self) -> tuple[Place, ...]:
        """What there must be a place for."""
        return (self.hidden, *self.needs) if self.hidden else self.needs


def wishes(canary: JSON) -> tuple[Wish, ...]:
    """Return what a Canary asks for, in its spec or in the manifest that `kubectl apply` remembers."""
    seen: JSON = canary["spec"].get("analysis") or {}
    meant = _remembered(canary)
    found: list[Wish] = []
    if seen.get("freezeOnFailure"):
        found.append(Wish((FROZEN,)))
    elif meant.get("freezeOnFailure") is True and "freezeOnFailure" not in seen:
        found.append(Wish((FROZEN,), FREEZE))
    value = seen.get("restore") or meant.get("restore")
    if value in _RESTORE:
        # The answer to a write to the target is compared with the fence, so the fence must have its place, too (D10).
        needs = (_FAILED, FENCE, *(_ADOPTION if value == "adopt" else ()))
        found.append(Wish(needs, None if seen.get("restore") else _RESTORE[value]))
    return tuple(found)


def dropped(canary: JSON, missing: Iterable[Place]) -> tuple[str, ...]:
    """Return what of a Canary's wishes has no place, in words, given what is missing."""
    gone, found = set(missing), []
    for wish in wishes(canary):
        if wish.hidden is None or wish.hidden in gone:
            found += [place for place in wish.places if place in gone]
        elif _told(canary):
            found.append(wish.hidden)
        # Otherwise the CRD would keep the field, and somebody has edited it away since it was applied.
    return tuple(str(place) for place in found)


def refusal(drops: tuple[str, ...]) -> str:
    """Return the sentence for a Canary whose wishes have no place."""
    return (
        f"{', '.join(drops)}: the installed CRD of Canaries has no place for that, or had none when this Canary was applied. Apply"
        f" the CRD that comes with this controller ({FILE}), then this Canary once more; nothing needs a restart"
    )


def _told(canary: JSON) -> bool:
    """Whether the Canary is refused for such a wish already."""
    entry = cond.find(canary.get("status") or {}, cond.ACCEPTED) or {}
    return entry.get("reason") == UNSUPPORTED and FILE in str(entry.get("message"))


def absent(schema: JSON) -> tuple[Place, ...]:
    """Return what of `USED` a published OpenAPI schema of the Canary has no place for."""
    return tuple(place for place in USED if not _has(schema, place))


def _has(schema: JSON, place: Place) -> bool:
    here = schema
    for key in place.path:
        if here.get(_OPEN):
            return True
        inner = (here.get("properties") or {}).get(key)
        if not isinstance(inner, dict):
            return False
        here = inner
    values = here.get("enum")
    return not (place.listed and values) or place.value in values


def _remembered(canary: JSON) -> JSON:
    text = str((canary["metadata"].get("annotations") or {}).get(_LAST_APPLIED) or "")
    if "freezeOnFailure" not in text and "restore" not in text:
        return {}  # most Canaries, without reading them
    try:
        analysis = json.loads(text)["spec"]["analysis"]
    except (ValueError, KeyError, TypeError):
        return {}
    return analysis if isinstance(analysis, dict) else {}
