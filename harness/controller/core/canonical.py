"""Hash v2 of raw objects (spec change-detection B1, with decision D7: unknown fields count).

The canonical text is JSON with keys sorted at every level, no spaces and Go's string escapes, so that values
computed by a typed Go client and by us agree for every field both know.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON

PREFIX: Final = "v2:"
SCALE_TO_ZERO: Final = "flagger.app/scale-to-zero"
"""The nodeSelector key that puts a DaemonSet to zero; never part of the hash."""

_GO_ESCAPES: Final = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)


def canonical(value: object) -> str:
    """Return the canonical JSON text of `value`; nulls inside objects are left out."""
    text = json.dumps(
        without_nulls(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    # These five characters can stand only inside strings, so replacing them in the whole text is safe.
    return text.translate(_GO_ESCAPES)


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


def template_hash(template: JSON) -> str:
    """Return the hash v2 of a pod template as a Deployment or DaemonSet holds it."""
    return digest(canonical(_normal_template(template)))


def service_hash(spec: JSON) -> str:
    """Return the hash v2 of the spec of a core Service."""
    spec = copy.deepcopy(spec)
    for port in spec.get("ports") or []:
        port.setdefault("targetPort", 0)
    return digest(canonical(spec))


def string_hash(text: str) -> str:
    """Return the hash v2 of a bare string (a Knative revision's name), hashed without JSON quotes."""
    return digest(text)


def _normal_template(template: JSON) -> JSON:
    """Level what a template has or lacks only because of who wrote it."""
    template = without_nulls(template)
    spec = template.get("spec") or {}
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or []:
            container.setdefault("resources", {})
    selector = spec.get("nodeSelector")
    if isinstance(selector, dict):
        selector.pop(SCALE_TO_ZERO, None)
        if not selector:
            del spec["nodeSelector"]
    result: JSON = template
    return result
