"""Why something that was deleted is still there, in sentences for whoever has to mend it. Pure functions over raw objects.

A namespace that does not go has one of few reasons: an object in it waits for a finalizer that nobody removes, a pod's node does not
answer, or the API server cannot find out what is in it, since an API that is served elsewhere is down.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.model.timeline import JSON

OWNERS: Final[Mapping[str, str]] = {
    "finalizer.flagger.app": "Flagger's, which removes it while it runs",
    "foregroundDeletion": "the garbage collector's, until what the object owns is gone",
    "orphan": "the garbage collector's, until what the object owned is let go",
    "kubernetes.io/pvc-protection": "the controller manager's, until no pod uses the claim",
    "kubernetes.io/pv-protection": "the controller manager's, until no claim has the volume",
    "batch.kubernetes.io/job-tracking": "the Job controller's, until the pod is counted",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's, until the load balancer is removed",
    "customresourcecleanup.apiextensions.k8s.io": "the API server's, until all objects of the type are gone",
    "resources-finalizer.argocd.argoproj.io": "Argo CD's",
    "finalizers.fluxcd.io": "Flux's",
}
"""Whose well-known finalizers are, and when they go."""
_CONDITIONS: Final[Mapping[str, str]] = {
    "NamespaceDeletionDiscoveryFailure": "the API server cannot find out what is in it, since an API that is served elsewhere does not answer",
    "NamespaceDeletionGroupVersionParsingFailure": "the API server cannot find out what is in it",
    "NamespaceDeletionContentFailure": "something in it could not be deleted",
    "NamespaceContentRemaining": "something is in it still",
    "NamespaceFinalizersRemaining": "finalizers are waited for",
}
"""What a namespace says itself about its end, the reason first that is behind the others."""
_SHOWN: Final = 8
"""Objects that are explained one by one."""


def explained(
    namespace: JSON | None,
    remaining: Sequence[JSON],
    nodes: Sequence[JSON] | None = None,
    *,
    broken: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return why a namespace, or what is left in it, does not go; empty when there is nothing to say.

    Args:
        namespace: The object; None where it is gone, may not be read, or is not to be removed.
        remaining: What is there still: each with kind and metadata, pods with spec and status.
        nodes: Those of the cluster; None where they may not be listed.
        broken: What does not answer among aggregated APIs (`group/version: why`).
    """
    told: list[str] = []
    if remaining:
        counts = Counter(str(obj["kind"]) for obj in remaining)
        named = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
        told.append(f"What remains: {named}.")
    stuck = [text for obj in remaining for text in (*finalizers(obj), *_pod(obj, nodes))]
    told += stuck[:_SHOWN]
    if len(stuck) > _SHOWN:
        told.append(f"{len(stuck) - _SHOWN} more are like that.")
    if namespace is not None:
        told += finalizers(namespace)
        told += conditions(namespace)
    told += [f"An API that is served elsewhere does not answer: {text}." for text in broken]
    return tuple(told)


def finalizers(obj: JSON) -> list[str]:
    """Return a sentence for each finalizer that an object which is being deleted waits for: which, whose, and since when."""
    metadata = obj["metadata"]
    since = metadata.get("deletionTimestamp")
    if not since:
        return []
    return [
        f"{_name(obj)} waits for finalizer {name}{_whose(metadata, name)}; deleted at {since}."
        for name in metadata.get("finalizers") or ()
    ]


def _whose(metadata: Mapping[str, Any], finalizer: str) -> str:
    manager, at = set_by(metadata, finalizer)
    known = OWNERS.get(finalizer, "")
    parts = [f"set by {manager}{f' at {at}' if at else ''}"] if manager else []
    parts += [known] if known else []
    if not parts and "/" in finalizer:
        parts = [f"of {finalizer.partition('/')[0]} by its name"]
    return f" ({'; '.join(parts)})" if parts else ""


def set_by(metadata: Mapping[str, Any], finalizer: str) -> tuple[str, str]:
    """Return the field manager that set a finalizer, and when it last wrote; both empty where the object does not say."""
    for entry in metadata.get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        if f'v:"{finalizer}"' in (fields.get("f:finalizers") or {}):
            return str(entry.get("manager", "")), str(entry.get("time", ""))
    return "", ""


def conditions(namespace: JSON) -> list[str]:
    """Return what a namespace that is being deleted says about itself, a sentence for each condition that holds."""
    rows = {
        str(row.get("type")): row
        for row in (namespace.get("status") or {}).get("conditions") or ()
        if row.get("status") == "True"
    }
    return [
        f"{_name(namespace)} says {kind}: {meaning}: {_message(rows[kind])}."
        for kind, meaning in _CONDITIONS.items()
        if kind in rows
    ]


def _message(row: Mapping[str, Any]) -> str:
    return str(row.get("message", "")).strip().rstrip(".") or "no message"


def _pod(obj: JSON, nodes: Sequence[JSON] | None) -> Iterator[str]:
    since = obj["metadata"].get("deletionTimestamp")
    if obj.get("kind") != "Pod" or not since:
        return
    node = str((obj.get("spec") or {}).get("nodeName") or "")
    grace = obj["metadata"].get("deletionGracePeriodSeconds")
    head = f"{_name(obj)} is terminating since {since} with a grace of {grace} s"
    if not node:
        yield f"{head}, without a node."
    elif nodes is None:
        yield f"{head}, on node {node}; nodes may not be listed here, so whether it answers is not known."
    else:
        yield f"{head}, on node {node}{_state(node, nodes)}."


def _state(name: str, nodes: Iterable[JSON]) -> str:
    node = next((one for one in nodes if one["metadata"]["name"] == name), None)
    if node is None:
        return ", which does not exist any more (the pod garbage collector takes such pods)"
    rows = (node.get("status") or {}).get("conditions") or ()
    ready = next((row for row in rows if row.get("type") == "Ready"), None)
    if ready is None or ready.get("status") == "True":
        return ""
    return (
        f", which is not ready since {ready.get('lastTransitionTime', 'an unknown time')} ({ready.get('reason', '?')}): "
        "it goes when the node answers again, or when the Node object is deleted"
    )


def _name(obj: JSON) -> str:
    metadata = obj["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']} {place}{metadata['name']}"
