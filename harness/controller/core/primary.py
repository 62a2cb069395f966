"""The primary Deployment: a raw copy of the target with the documented rewrites and nothing else (spec objects 3, O1).

Rewritten are: the name, the value of the selector label (in the selector, with all its other keys kept: O6; on the pods; and in
affinity and spread terms), the annotation that names the revision, `paused`, `replicas`. Every other field of the target's spec
arrives as it is, whether we know it or not.

The annotation `flagger-id` holds the hash of the template that was copied, so that a promotion repeated after a crash changes
nothing (P9), and the primary says which revision it runs (D2).

ConfigMaps and Secrets are not tracked yet: references to them are copied unchanged, so primary and target share them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from harness.controller.core import replicas
from harness.controller.core.affinity import rewrite_pod_spec, rewrite_selector
from harness.controller.core.canonical import PREFIX, same
from harness.controller.core.decision import JSON, Write
from harness.controller.core.ownership import owner_reference, without_toolkit
from harness.controller.core.templates import REVISION

if TYPE_CHECKING:
    from harness.controller.core.names import Names

_DEPLOYMENT_CONTROLLER: Final = "deployment.kubernetes.io/"


def create(canary: JSON, names: Names, target: JSON, revision: str) -> Write:
    """Return the write that creates the primary."""
    spec = _spec(names, target, revision)
    spec["replicas"] = replicas.at_bootstrap(target)
    rewrite_selector(spec["selector"], names)
    annotations = without_toolkit(target["metadata"].get("annotations"))
    body: JSON = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": names.primary,
            "namespace": names.namespace,
            "labels": {names.label: names.primary_value},
            "annotations": {
                key: value
                for key, value in annotations.items()
                if not key.startswith(_DEPLOYMENT_CONTROLLER)
            },
            "ownerReferences": [owner_reference(canary)],
        },
        "spec": spec,
    }
    return Write("create", "deployments", names.primary, body)


def promote(names: Names, target: JSON, primary: JSON, revision: str) -> tuple[Write, ...]:
    """Return the write that brings the target's template to the primary; nothing when it is there already (P10).

    The spec is replaced as a whole, so that a field removed from the target goes from the primary too. Selector and `paused` stay
    the primary's own.
    """
    spec = _spec(names, target, revision)
    spec["replicas"] = replicas.at_promotion(target, primary)
    spec["selector"] = primary["spec"]["selector"]
    if "paused" in primary["spec"]:
        spec["paused"] = primary["spec"]["paused"]
    labels = {names.label: names.primary_value}
    held = primary["metadata"].get("annotations") or {}
    # The Deployment controller's notes on its own work are not ours to remove.
    annotations = {k: v for k, v in held.items() if k.startswith(_DEPLOYMENT_CONTROLLER)}
    if same(spec, primary["spec"]) and labels == (primary["metadata"].get("labels") or {}):
        return ()
    body = copy.deepcopy(primary)
    body["metadata"] |= {"labels": labels, "annotations": annotations}
    # What is cached of it is not complete, and sent back it would rewrite who owns what. Without it the server keeps its own.
    body["metadata"].pop("managedFields", None)
    body["spec"] = spec
    version = primary["metadata"]["resourceVersion"]
    return (Write("replace", "deployments", names.primary, body, version),)


def revision_of(primary: JSON) -> str:
    """Return the hash of the template that the primary was copied from; empty when another controller made it."""
    annotations = (primary["spec"]["template"].get("metadata") or {}).get("annotations") or {}
    value = str(annotations.get(REVISION) or "")
    return value if value.startswith(PREFIX) else ""


def holds(names: Names, target: JSON, primary: JSON) -> bool:
    """Whether the primary's template is what the target's template makes, the revision annotation aside."""
    wanted = template(names, target, "")
    present = copy.deepcopy(primary["spec"]["template"])
    annotations = (present.get("metadata") or {}).get("annotations") or {}
    annotations[REVISION] = ""
    present.setdefault("metadata", {})["annotations"] = annotations
    return same(wanted, present)


def template(names: Names, target: JSON, revision: str) -> JSON:
    """Return the primary's pod template for a target's."""
    result: JSON = copy.deepcopy(target["spec"]["template"])
    meta: JSON = result.setdefault("metadata", {})
    selected = (target["spec"]["selector"].get("matchLabels") or {}).keys()
    labels: JSON = meta.get("labels") or {}
    # A label that the selector needs must stay, whoever invented it.
    kept = without_toolkit(labels) | {key: labels[key] for key in selected if key in labels}
    meta["labels"] = kept | {names.label: names.primary_value}
    meta["annotations"] = without_toolkit(meta.get("annotations")) | {REVISION: revision}
    rewrite_pod_spec(result["spec"], names)
    return result


def _spec(names: Names, target: JSON, revision: str) -> JSON:
    spec: JSON = copy.deepcopy(target["spec"])
    spec.pop("paused", None)
    spec["template"] = template(names, target, revision)
    return spec
