"""A controller's Role without rules that the user cannot give, about types that few drills use.

Kubernetes lets nobody give more rights than he has. Whoever may work in one namespace only often has none on types of other projects.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness.model.timeline import JSON


def without_groups(objects: Sequence[JSON], withheld: Collection[str]) -> list[JSON]:
    """Return copies of a subject's objects, whose Roles say nothing about these API groups."""
    copies = [copy.deepcopy(obj) for obj in objects]
    for obj in copies:
        if obj.get("kind") != "Role" or not withheld:
            continue
        rules = []
        for rule in obj.get("rules") or ():
            groups = [group for group in rule.get("apiGroups") or () if group not in withheld]
            if groups:
                rules.append({**rule, "apiGroups": groups})
        obj["rules"] = rules
    return copies
