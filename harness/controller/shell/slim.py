"""What of an object is kept in memory: all that is decided on, or may have to be written again, and no more.

A cached object is shared by all passes and never changed. With a thousand Canaries, six objects each, every kilobyte counts six
megabytes; field names are shared between all objects.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.configs import OPT_OUT, copied
from harness.controller.core.managed import reduced
from harness.controller.core.needs import CONFIGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.decision import JSON

_UNREAD: Final[Mapping[str, tuple[str, ...]]] = {
    "deployments": ("conditions",),
    "services": ("conditions", "loadBalancer"),
    "replicasets": ("conditions",),
}
"""Parts of the status that no row looks at, by plural. What is left out of the status is not lost: it is never sent back."""


def slim(plural: str, obj: JSON) -> JSON:
    """Return a copy of an object as the cache keeps it."""
    meta = dict(obj["metadata"])
    if "managedFields" in meta:
        # Objects that are written as a whole go without it; the server then keeps its own.
        meta["managedFields"] = reduced(obj)
    if plural == "replicasets":
        # Nobody's wish is read off them, and there are many.
        meta.pop("managedFields", None)
    if plural in CONFIGS and "annotations" in meta:
        # What applied one keeps a second copy of its content here.
        meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k == OPT_OUT}
    kept = {**obj, "metadata": meta}
    if plural == "secrets" and not copied(obj):
        # Of no use here, and often large: releases of a package manager, tokens.
        kept.pop("data", None)
    status = obj.get("status")
    unread = _UNREAD.get(plural)
    if status and unread:
        kept["status"] = {key: value for key, value in status.items() if key not in unread}
    result: JSON = _shared(kept)
    return result


def _shared(value: Any) -> Any:
    match value:
        case dict():
            return {sys.intern(key): _shared(item) for key, item in value.items()}
        case list():
            return [_shared(item) for item in value]
        case str() if value.isalpha():
            # Words of the API. Names, versions and times differ anyway; keeping those would only leak.
            return sys.intern(value)
    return value
