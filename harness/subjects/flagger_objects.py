"""Flagger's CRDs and roles, out of its own module, made to fit one namespace."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.subjects.base import SubjectError
from harness.subjects.documents import documents

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.model.timeline import JSON

ACCOUNT: Final = "rollout-drill-flagger"
"""Name of its service account, role and binding in a drill's namespace."""
CRDS: Final = ("canaries.flagger.app", "metrictemplates.flagger.app", "alertproviders.flagger.app")
"""What Flagger looks for when it starts, and ends without."""
_RBAC: Final = "rbac.authorization.k8s.io"


def crds(file: Path) -> list[JSON]:
    """Return the CRDs of Flagger out of a YAML file. Raises SubjectError when one is missing."""
    found = {
        str(obj["metadata"]["name"]): obj
        for obj in documents(file)
        if obj.get("kind") == "CustomResourceDefinition"
    }
    missing = [name for name in CRDS if name not in found]
    if missing:
        msg = f"{file.name} of this Flagger has no CustomResourceDefinition {', '.join(missing)}"
        raise SubjectError(msg)
    return [found[name] for name in CRDS]


def roles(file: Path) -> list[JSON]:
    """Return the rules of the ClusterRoles in a YAML file that can be kept in one namespace. Raises SubjectError when there are none.

    Left out are those for URLs that are no resources: /version, which every service account may read.
    """
    rules = [
        rule
        for obj in documents(file)
        if obj.get("kind") == "ClusterRole"
        for rule in obj.get("rules") or []
    ]
    kept = [copy.deepcopy(rule) for rule in rules if "nonResourceURLs" not in rule]
    if not kept:
        msg = f"{file.name} of this Flagger has no ClusterRole with rules"
        raise SubjectError(msg)
    return kept


def namespace_objects(namespace: str, rules: Sequence[JSON]) -> list[JSON]:
    """Return service account, role and binding for one namespace, and nothing beyond it."""
    metadata = {"name": ACCOUNT, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(metadata)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": dict(metadata),
            "rules": copy.deepcopy(list(rules)),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]
