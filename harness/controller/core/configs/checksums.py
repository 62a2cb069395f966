"""Which ConfigMaps and Secrets of a template are tracked, what they hold, and whether that is another content than was applied.

`status.trackedConfigs` holds a checksum for each. Content is all that reaches a container: data, and with D8 also binaryData, and
whether the object is immutable. For an object that has only data the checksum is the one that Flagger computes, so its statuses
are understood.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import canonical
from harness.controller.core.configs.places import Kind, Reference, references
from harness.controller.core.names import MAX_NAME, PRIMARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON, Objects, Plural

PLURALS: Final[Mapping[Kind, Plural]] = {"configmap": "configmaps", "secret": "secrets"}
OPT_OUT: Final = "flagger.app/config-tracking"
"""Annotation of a ConfigMap or Secret; a value that starts with `disable` says that it is not to be tracked."""

_OUT: Final = "disable"
_TRACKED_TYPES: Final = frozenset(
    {
        "",  # not served: the API's default is Opaque
        "Opaque",
        "kubernetes.io/basic-auth",
        "kubernetes.io/ssh-auth",
        "kubernetes.io/tls",
    }
)
_DIGITS: Final = 16
_SHORT: Final = 8


@dataclass(frozen=True, slots=True)
class Configs:
    """The ConfigMaps and Secrets of a pod template, as read in one pass. Empty when nothing is tracked."""

    tracked: Mapping[str, str] = field(default_factory=dict)
    """Checksums (16 hex digits) by `configmap/NAME` or `secret/NAME`, as `status.trackedConfigs` holds them."""
    missing: tuple[Reference, ...] = ()
    """Those without which pods do not start, and that do not exist."""
    references: tuple[Reference, ...] = ()
    """All that could be tracked: of kinds that are read at all, whether they exist or not."""
    kinds: frozenset[Kind] = frozenset()
    """The kinds that are read; of the others nothing is known."""


def look(template: JSON, objects: Objects) -> Configs:
    """Return the state of what a pod template refers to.

    `objects` holds ConfigMaps and Secrets by plural and name. A plural that is not there at all means that this kind is not tracked (it
    is switched off, or may not be read): then it is neither missing nor copied, and primary and target share it.

    Left out are optional objects that do not exist (C05), those that opt out, and Secrets of types that belong to the cluster rather
    than to the application.
    """
    kinds = frozenset(kind for kind, plural in PLURALS.items() if plural in objects)
    known = tuple(found for found in references(template) if found.kind in kinds)
    tracked: dict[str, str] = {}
    missing: list[Reference] = []
    for found in known:
        obj = objects[PLURALS[found.kind]].get(found.name)
        if obj is not None:
            if _counts(obj):
                tracked[found.key] = checksum(obj)
        elif not found.optional:
            missing.append(found)
    return Configs(tracked, tuple(missing), known, kinds)


def checksum(obj: JSON) -> str:
    """Return 16 hex digits that stand for the content of a ConfigMap or Secret.

    SHA-256 over canonical JSON: of `data` alone while there is nothing else (spec objects 6), else of all that counts (D8), under
    its names, which no data can imitate: its values are strings.
    """
    data, binary = obj.get("data"), obj.get("binaryData")
    frozen = obj.get("immutable") is True
    more: JSON = ({"binaryData": binary} if binary else {}) | (
        {"immutable": True} if frozen else {}
    )
    return _hex({"data": data, **more} if more else data, _DIGITS)


def of_copies(configs: Configs, objects: Objects) -> dict[str, str]:
    """Return the checksums of what the copies hold, by the names of the originals: what the primary was last given."""
    found: dict[str, str] = {}
    for reference in configs.references:
        held = objects[PLURALS[reference.kind]].get(reference.name + PRIMARY_SUFFIX)
        if reference.key in configs.tracked and held is not None:
            found[reference.key] = checksum(held)
    return found


def changed(stored: Mapping[str, str] | None, now: Configs) -> bool:
    """Whether the content is another one than `stored` (`status.trackedConfigs`) remembers (B10, spec objects 6).

    | stored | now | verdict |
    |---|---|---|
    | none or empty | nothing tracked | unchanged |
    | none or empty | some | changed: what the pods were started with is not known, and the primary reads the originals |
    | some | other objects, or another checksum | changed |
    | some | the same | unchanged |
    | any | a mandatory object is missing | unchanged: no verdict before it is there, since its pods could not start |

    Entries of a kind that is not read now are not compared: a permission that is taken away is no change.
    """
    if now.missing:
        return False
    known = {
        key: value for key, value in (stored or {}).items() if key.partition("/")[0] in now.kinds
    }
    return known != dict(now.tracked)


def digest(tracked: Mapping[str, str]) -> str:
    """Return 8 hex digits that stand for all checksums together, in whatever order; empty for none."""
    return _hex(dict(tracked), _SHORT) if tracked else ""


def problem(configs: Configs) -> str:
    """Return why a primary cannot be made with these configs, in one sentence; empty when it can."""
    if configs.missing:
        names = ", ".join(map(str, configs.missing))
        verb = "does" if len(configs.missing) == 1 else "do"
        return (
            f"{names} {verb} not exist, and the pod template does not call it optional: create it"
        )
    longest = MAX_NAME - len(PRIMARY_SUFFIX)
    for found in configs.references:
        if found.key in configs.tracked and len(found.name) > longest:
            return (
                f"{found} has a name of {len(found.name)} characters; at most {longest} are possible,"
                f" since {PRIMARY_SUFFIX!r} is appended for the primary's copy and {MAX_NAME} is the limit"
            )
    return ""


def copied(obj: JSON) -> bool:
    """Whether an object may have a copy at all, as far as its type says."""
    return str(obj.get("type") or "") in _TRACKED_TYPES


def _counts(obj: JSON) -> bool:
    out = str((obj["metadata"].get("annotations") or {}).get(OPT_OUT) or "")
    return str(obj.get("type") or "") in _TRACKED_TYPES and not out.startswith(_OUT)


def _hex(value: object, digits: int) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]
