"""The primary of a target that has pods: a raw copy with the documented rewrites and nothing else (spec objects 3, O1).

Rewritten are: the name, the value of the selector label (in the selector, with all its other keys kept: O6; on the pods; and in
affinity and spread terms: O3, O4), the names of ConfigMaps and Secrets that have a copy of their own (`Pair.rewrite`), and the annotation
that names the revision. What else is special to a kind is that kind's. Every other field of the target's spec arrives as it is,
whether we know it or not.

The annotation `flagger-id` holds the revision that was copied, so that a promotion repeated after a crash changes nothing (P9), and the
primary says which revision it runs (D2).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Literal

from harness.controller.core.affinity import rewrite_pod_spec, rewrite_selector
from harness.controller.core.canonical import PREFIX, same
from harness.controller.core.decision import JSON, Write
from harness.controller.core.ownership import included, owner_reference, without_toolkit
from harness.controller.core.templates import REVISION

if TYPE_CHECKING:
    from harness.controller.core.targets.base import Pair

Resource = Literal["deployments", "daemonsets"]


def primary_of(pair: Pair) -> JSON:
    """Return the primary. Raises LookupError when there is none: callers ask only after they looked."""
    if pair.primary is None:
        msg = f"{pair.names.primary!r} was asked about but not read"
        raise LookupError(msg)
    return pair.primary


def template(pair: Pair, source: JSON, revision: str) -> JSON:
    """Return the primary's pod template for `source`, the target's, which stays as it is."""
    names = pair.names
    result: JSON = copy.deepcopy(source)
    meta: JSON = result.get("metadata") or {}
    result["metadata"] = meta
    selected = (pair.target["spec"]["selector"].get("matchLabels") or {}).keys()
    labels: JSON = meta.get("labels") or {}
    # A label that the selector needs must stay, whoever invented it.
    kept = without_toolkit(labels) | {key: labels[key] for key in selected if key in labels}
    meta["labels"] = kept | {names.label: names.primary_value}
    meta["annotations"] = without_toolkit(meta.get("annotations")) | {REVISION: revision}
    rewrite_pod_spec(result["spec"], names)
    pair.rewrite(result["spec"])
    return result


def create(pair: Pair, resource: Resource, spec: JSON, private: str) -> Write:
    """Return the write that creates the primary from a spec made for it.

    `private`: annotations that begin so are notes of the kind's own controller on the target, and not copied.
    """
    names = pair.names
    spec = {**spec, "selector": copy.deepcopy(spec["selector"])}
    rewrite_selector(spec["selector"], names)
    annotations = without_toolkit(pair.target["metadata"].get("annotations"))
    body: JSON = {
        "apiVersion": "apps/v1",
        "kind": "Deployment" if resource == "deployments" else "DaemonSet",
        "metadata": {
            "name": names.primary,
            "namespace": names.namespace,
            "labels": _labels(pair),
            "annotations": {k: v for k, v in annotations.items() if not k.startswith(private)},
            "ownerReferences": [owner_reference(pair.canary)],
        },
        "spec": spec,
    }
    return Write("create", resource, names.primary, body)


def replace(pair: Pair, resource: Resource, spec: JSON, private: str) -> tuple[Write, ...]:
    """Return the write that gives the primary a new spec; nothing when it has it (P10).

    The spec is replaced as a whole, so that a field removed from the target goes from the primary too. The selector stays the
    primary's own, and so do annotations that begin with `private`: notes of the kind's controller on its own work.
    """
    primary, names = primary_of(pair), pair.names
    spec = {**spec, "selector": copy.deepcopy(primary["spec"]["selector"])}
    labels, meta = _labels(pair), primary["metadata"]
    held = meta.get("annotations") or {}
    given = {
        key: value
        for key, value in included(pair.target["metadata"].get("annotations"), pair.policy).items()
        if not key.startswith(private)
    }
    told = all(held.get(key) == value for key, value in given.items())
    level = same(_levelled(spec), _levelled(primary["spec"]))
    if level and told and labels == (meta.get("labels") or {}):
        return ()
    body = copy.deepcopy(primary)
    own = {key: value for key, value in held.items() if key.startswith(private)}
    body["metadata"] |= {"labels": labels, "annotations": given | own}
    # What is cached of it is not complete, and sent back it would rewrite who owns what. Without it the server keeps its own.
    body["metadata"].pop("managedFields", None)
    body["spec"] = spec
    return (Write("replace", resource, names.primary, body, meta["resourceVersion"]),)


def revision_of(primary: JSON | None) -> str:
    """Return the revision that the primary was copied from; empty without a primary, or when another controller made it."""
    if primary is None:
        return ""
    annotations = (primary["spec"]["template"].get("metadata") or {}).get("annotations") or {}
    value = str(annotations.get(REVISION) or "")
    return value if value.startswith(PREFIX) else ""


def holds(pair: Pair, source: JSON) -> bool:
    """Whether the primary's template is what `source`, the target's, makes, the revision annotation aside."""
    if pair.primary is None:
        return False
    wanted = template(pair, source, "")
    present = copy.deepcopy(pair.primary["spec"]["template"])
    annotations = (present.get("metadata") or {}).get("annotations") or {}
    present["metadata"] = {**(present.get("metadata") or {}), "annotations": annotations}
    annotations[REVISION] = ""
    return same(_levelled({"template": wanted}), _levelled({"template": present}))


def _labels(pair: Pair) -> JSON:
    names = pair.names
    return included(pair.target["metadata"].get("labels"), pair.policy) | {
        names.label: names.primary_value
    }


def _levelled(spec: JSON) -> JSON:
    """Return a spec whose empty nodeSelector is left out, which says the same (C21)."""
    pod = spec["template"].get("spec") or {}
    if "nodeSelector" not in pod or any(
        v is not None for v in (pod["nodeSelector"] or {}).values()
    ):
        return spec
    rest = {key: value for key, value in pod.items() if key != "nodeSelector"}
    return {**spec, "template": {**spec["template"], "spec": rest}}
