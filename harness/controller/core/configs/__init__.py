"""ConfigMaps and Secrets that a pod template refers to: tracked, and copied for the primary (spec objects 6; B10, D8, D9).

The primary must not read what a user may change at any moment: it reads copies, `X-primary`, that are renewed at a promotion. And
because the target reads the originals, a change of one is a new revision like any change of the template.

| file | concern |
|---|---|
| `places.py` | where a pod template refers to them, for reading and for rewriting alike |
| `checksums.py` | which of them count, what they hold, and whether that has changed |
| `handover.py` | checksums that another controller wrote |
| `copies.py` | the copies |
"""

from __future__ import annotations

from harness.controller.core.configs.checksums import (
    OPT_OUT,
    Configs,
    changed,
    checksum,
    copied,
    digest,
    look,
    of_copies,
    problem,
)
from harness.controller.core.configs.copies import Copies, copies
from harness.controller.core.configs.handover import moved_since
from harness.controller.core.configs.places import (
    Reference,
    references,
    rewrite,
    seeming_copies,
    undo,
)

__all__ = [
    "OPT_OUT",
    "Configs",
    "Copies",
    "Reference",
    "changed",
    "checksum",
    "copied",
    "copies",
    "digest",
    "look",
    "moved_since",
    "of_copies",
    "problem",
    "references",
    "rewrite",
    "seeming_copies",
    "undo",
]
