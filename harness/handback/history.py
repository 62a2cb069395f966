"""Templates that a Deployment had before, as its ReplicaSets keep them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.controller.core.canonical import template_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.timeline import JSON

POD_TEMPLATE_HASH: Final = "pod-template-hash"
"""The label that the Deployment's controller adds to a template before it stores it in a ReplicaSet."""


def earlier(target: JSON, kept: Iterable[JSON], wanted: str) -> JSON | None:
    """Return the target with the template whose hash v2 is `wanted`; None when none of its ReplicaSets (`kept`) has it."""
    for replica_set in kept:
        template = _template(replica_set)
        if template_hash(template) == wanted:
            return {**target, "spec": {**target["spec"], "template": template}}
    return None


def _template(replica_set: JSON) -> JSON:
    template: JSON = copy.deepcopy(replica_set["spec"]["template"])
    ((template.get("metadata") or {}).get("labels") or {}).pop(POD_TEMPLATE_HASH, None)
    return template
