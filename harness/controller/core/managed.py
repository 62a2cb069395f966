"""managedFields: where the API server notes who wrote which field, and when.

Its times are the server's own clock, in whole seconds; an entry's time moves when its writer changes any field of it, not
when another writer takes a field away. Entries are long, so the cache keeps them reduced to the few fields asked about here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.canonical import SCALE_TO_ZERO
from harness.controller.core.moments import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.controller.core.decision import JSON

Field = tuple[str, str]

REPLICAS: Final[Field] = ("f:spec", "f:replicas")
TEMPLATE: Final[Field] = ("f:spec", "f:template")
MOVED: Final[Field] = ("f:status", "f:lastTransitionTime")
"""What every regular status write of any controller sets, and nobody else."""
_ASKED: Final = (REPLICAS, TEMPLATE, MOVED)
_CONTENT: Final = ("f:data", "f:binaryData", "f:immutable")
"""What a ConfigMap or Secret holds. The keys inside are not kept."""
_KEPT: Final = ("manager", "operation", "subresource", "time")


def managers(obj: JSON, field: Field) -> frozenset[str] | None:
    """Return who holds a field; None when the object does not say."""
    if not obj["metadata"].get("managedFields"):
        return None
    return frozenset(str(entry.get("manager")) for entry in _holding(obj, field))


def written(obj: JSON, field: Field) -> float | None:
    """Return when a holder of a field last wrote (seconds since the epoch); None when the object does not say.

    That holder may have written something else: the time is an upper bound for the field's last change.
    """
    times = [seconds(entry.get("time")) for entry in _holding(obj, field)]
    return max((time for time in times if time is not None), default=None)


def last_written(obj: JSON, field: Field, manager: str) -> tuple[float | None, float | None]:
    """Return when this manager, and when any other, last wrote as a holder of a field; None for who holds nothing of it."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for entry in _holding(obj, field):
        if (time := seconds(entry.get("time"))) is not None:
            times[entry.get("manager") == manager].append(time)
    return max(times[True], default=None), max(times[False], default=None)


def content_written(obj: JSON) -> float | None:
    """Return when a writer of a ConfigMap's or Secret's content last wrote; None when the object does not say."""
    entries: list[JSON] = obj["metadata"].get("managedFields") or []
    times = [seconds(entry.get("time")) for entry in entries if _content(entry)]
    return max((time for time in times if time is not None), default=None)


def reduced(obj: JSON) -> list[JSON]:
    """Return the managedFields of an object with nothing but the fields that are asked about here.

    An object that has entries keeps at least one, empty if need be: that nobody holds a field is an answer too.
    """
    entries: list[JSON] = obj["metadata"].get("managedFields") or []
    kept = []
    for entry in entries:
        fields: JSON = {part: {} for part in _content(entry)}
        for outer, inner in _ASKED:
            if _holds(entry, (outer, inner)):
                fields.setdefault(outer, {})[inner] = {}
        if fields:
            kept.append({key: entry[key] for key in _KEPT if key in entry} | {"fieldsV1": fields})
    return kept or [{} for _ in entries[:1]]


def _holding(obj: JSON, field: Field) -> Iterator[JSON]:
    return (entry for entry in obj["metadata"].get("managedFields") or [] if _holds(entry, field))


def _content(entry: JSON) -> list[str]:
    fields: JSON = entry.get("fieldsV1") or {}
    return [part for part in _CONTENT if part in fields]


def _holds(entry: JSON, field: Field) -> bool:
    outer, inner = field
    held: JSON = (entry.get("fieldsV1") or {}).get(outer) or {}
    if inner not in held:
        return False
    return field != TEMPLATE or not _only_scales(held[inner])


def _only_scales(template: Any) -> bool:
    """Whether an entry holds nothing of a template but the key that puts a DaemonSet to zero, which controllers write."""
    selector = (template.get("f:spec") or {}).get("f:nodeSelector") or {}
    inner = set(selector) - {"."}
    others = set(template.get("f:spec") or {}) - {".", "f:nodeSelector"}
    rest = set(template) - {".", "f:spec"}
    return inner == {f"f:{SCALE_TO_ZERO}"} and not others and not rest
