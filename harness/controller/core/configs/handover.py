"""Checksums that another controller, or another version, wrote: taken over once instead of compared (decision D8, D9).

They were computed in a way of their own (Flagger leaves out binaryData), so a difference proves nothing. As with templates (D11)
a change needs evidence: the API server's note of when somebody last wrote the content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core import managed
from harness.controller.core.configs.checksums import PLURALS
from harness.controller.core.evidence import created, not_before

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.controller.core.configs.checksums import Configs
    from harness.controller.core.decision import Objects


def moved_since(
    stored: Mapping[str, str] | None, now: Configs, objects: Objects, since: float | None
) -> tuple[str, ...]:
    """Return `kind/name` of what is known to have changed at or after `since` (seconds since the epoch), while nobody watched.

    An equal checksum absolves, since for an object with nothing but data all versions compute the same. Any other must have been created,
    or its content written, since then. Without evidence it is not among them.
    """
    held = stored or {}
    found: list[str] = []
    for reference in now.references:
        key = reference.key
        if key not in now.tracked or held.get(key) == now.tracked[key]:
            continue
        obj = objects[PLURALS[reference.kind]][reference.name]
        if not_before(created(obj), since) or not_before(managed.content_written(obj), since):
            found.append(key)
    return tuple(found)
