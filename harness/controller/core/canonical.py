"""Hash v2 of raw objects (spec change-detection B1, with decision D7: unknown fields count).

The canonical text is JSON with keys sorted at every level, no spaces and Go's string escapes, so that values
computed by a typed Go client and by us agree for every field both know.

Numbers and quantities stand as the server wrote them: `1.0` is not `1`, and `0.1` CPU is not `100m`. An API
server writes each value in one way only, so nothing has to be guessed here.
"""

from __future__ import annotations

import hashlib
import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

PREFIX: Final = "v2:"
SCALE_TO_ZERO: Final = "flagger.app/scale-to-zero"
"""The nodeSelector key that puts a DaemonSet to zero; never part of its hash."""

_GO_ESCAPES: Final = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)
# Half of a surrogate pair: JSON can spell it, UTF-8 cannot. Go reads it as the replacement character.
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


def canonical(value: object) -> str:
    """Return the canonical JSON text of `value`; nulls inside objects are left out.

    Raises TypeError for what JSON cannot hold.
    """
    match value:
        case str():
            return encode_basestring(_HALF_PAIR.sub("\ufffd", value)).translate(_GO_ESCAPES)
        case dict():
            # By code point, which is the order of the UTF-8 bytes.
            members = (
                f"{canonical(key)}:{canonical(value[key])}"
                for key in sorted(value)
                if value[key] is not None
            )
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(canonical, value)) + "]"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            # Numbers read by our client remember how they were written.
            return str(getattr(value, "written", None) or repr(value))
    msg = f"{type(value).__name__} is no JSON value"
    raise TypeError(msg)


def without_nulls(value: Any) -> Any:
    """Return a copy of `value` without null members of objects; objects emptied that way stay."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def same(one: object, other: object) -> bool:
    """Whether two raw values are equal, null counting as absent."""
    return bool(without_nulls(one) == without_nulls(other))


def digest(text: str) -> str:
    """Return `v2:` and the first 8 bytes of the SHA-256 of `text`, as 16 hex digits."""
    return PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]


def template_hash(template: JSON, *, daemonset: bool = False) -> str:
    """Return the hash v2 of a pod template as a Deployment (or a DaemonSet) holds it."""
    return digest(canonical(_normal_template(template, daemonset=daemonset)))


def service_hash(spec: JSON) -> str:
    """Return the hash v2 of the whole spec of a core Service."""
    normal = dict(spec)
    if normal.get("ports") is not None:
        normal["ports"] = [_with_default(port, "targetPort", 0) for port in normal["ports"]]
    return digest(canonical(normal))


def string_hash(text: str) -> str:
    """Return the hash v2 of a bare string (a Knative revision's name), hashed without JSON quotes."""
    return digest(_HALF_PAIR.sub("\ufffd", text))


def _normal_template(template: JSON, *, daemonset: bool) -> JSON:
    """Level what a template has or lacks only because of who wrote it. The argument stays as it is."""
    spec = dict(template.get("spec") or {})
    for group in ("containers", "initContainers"):
        if spec.get(group) is not None:
            spec[group] = [_with_default(entry, "resources", {}) for entry in spec[group]]
    selector = spec.get("nodeSelector")
    if isinstance(selector, dict):
        ignored = SCALE_TO_ZERO if daemonset else None
        spec["nodeSelector"] = {
            key: value for key, value in selector.items() if key != ignored and value is not None
        } or None
    return {**template, "spec": spec} if template.get("spec") is not None else template


def _with_default(entry: JSON, key: str, default: object) -> JSON:
    return entry if entry.get(key) is not None else {**entry, key: default}
