"""Reading values out of raw objects by a dotted path, and other small readings that every kind has in common."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.timeline import JSON

_PART: Final = re.compile(r"""\[\s*(?:"([^"]*)"|'([^']*)'|(\d+))\s*\]|([^.\[\]]+)""")


class PathMissingError(LookupError):
    """A path that an object does not have; the message says where it ends."""


@functools.cache
def split(path: str) -> tuple[str | int, ...]:
    """Split a path: `spec.containers[0].image`, `metadata.annotations["a.b/c"]`; an empty path is the object itself."""
    parts: list[str | int] = []
    for double, single, index, plain in _PART.findall(path):
        parts.append(int(index) if index else double or single or plain)
    return tuple(parts)


def read(obj: object, path: str) -> Any:
    """Return the value at a path. Raises PathMissingError, naming the first part that is not there."""
    value = obj
    walked = ""
    for part in split(path):
        here = walked or "the object"
        if isinstance(value, list) and str(part).isdigit():
            if int(part) >= len(value):
                msg = f"{here} has only {len(value)} entries"
                raise PathMissingError(msg)
            value = value[int(part)]
        elif isinstance(value, dict) and str(part) in value:
            value = value[str(part)]
        else:
            msg = f"{here} has no {part}"
            raise PathMissingError(msg)
        walked = f"{walked}.{part}" if walked else str(part)
    return value


def dig(obj: object, path: str, default: Any = None) -> Any:
    """Return the value at a path, or `default` where it is missing or null.

    The same walk as `read`, without finding out where it ends: this is called some dozen times for every observation.
    """
    value: Any = obj
    for part in split(path):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return default
    return default if value is None else value


def whole(value: object) -> int:
    """Return a number as an int; anything else is 0, as an absent counter in a status is."""
    return int(value) if isinstance(value, int | float) else 0


def name_of(obj: JSON) -> str:
    """Return an object's name."""
    return str(dig(obj, "metadata.name", ""))


KNATIVE_SERVICE: Final = "KnativeService"
KNATIVE_INGRESS: Final = "KnativeIngress"
"""How these are called here, since Kubernetes has kinds of the same names."""
KNATIVE_REVISION: Final = "Revision"
_RENAMED: Final = {
    ("serving.knative.dev", "Service"): KNATIVE_SERVICE,
    ("networking.internal.knative.dev", "Ingress"): KNATIVE_INGRESS,
}


def kind_of(obj: JSON) -> str:
    """Return an object's kind; that of a Knative Service is `KnativeService`, since the core has a Service too."""
    kind = str(obj.get("kind", ""))
    group = str(obj.get("apiVersion", "")).partition("/")[0]
    return _RENAMED.get((group, kind), kind)


def labels_of(obj: JSON) -> dict[str, str]:
    """Return an object's labels."""
    labels = dig(obj, "metadata.labels", {})
    return labels if isinstance(labels, dict) else {}


def owner_of(obj: JSON) -> tuple[str, str] | None:
    """Return kind and name of the owner that controls an object, or of its only owner."""
    owners = [o for o in dig(obj, "metadata.ownerReferences", []) if isinstance(o, dict)]
    controllers = [o for o in owners if o.get("controller")] or owners[:1]
    for owner in controllers:
        return str(owner.get("kind", "")), str(owner.get("name", ""))
    return None


def conditions(obj: JSON) -> Iterator[JSON]:
    """Yield the entries of `status.conditions`."""
    for entry in dig(obj, "status.conditions", []):
        if isinstance(entry, dict):
            yield entry


def condition(obj: JSON, kind: str) -> JSON:
    """Return the condition of a type, or an empty object."""
    return next((entry for entry in conditions(obj) if entry.get("type") == kind), {})


def images_of(spec: object) -> list[str]:
    """Return the images of a pod spec's containers, in order."""
    containers = dig(spec, "containers", [])
    return [str(c.get("image", "")) for c in containers if isinstance(c, dict)]
