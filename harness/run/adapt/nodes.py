"""Pods stay on the nodes that the drill counts.

On a cluster of somebody else's, nodes come and go. A node that was cordoned when the drill began and is not any more, or one that an
autoscaler buys for a pod that finds no place, would let the control variant of a placement drill pass. So every pod is bound to the
nodes by their names; the nodes themselves get no label, for they are not ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.run.adapt.pods import label, listed, pod_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.timeline import JSON

HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NAMED: Final = 5


def on_nodes(objects: Sequence[JSON], hostnames: Sequence[str]) -> list[str]:
    """Bind the pods of `objects`, in place, to the nodes with these values of `kubernetes.io/hostname`; return sentences about it.

    What a pod asks of its node already holds as well: the names are added to each of its terms. One that names its node is left alone.
    """
    bound: list[str] = []
    placed: list[str] = []
    for obj in objects:
        spec = pod_spec(obj)
        if spec is None:
            continue
        if spec.get("nodeName"):
            placed.append(label(obj))
            continue
        _bind(spec, hostnames)
        bound.append(label(obj))
    sentences = []
    if bound:
        sentences.append(
            f"The pods of {listed(bound)} may only use {_number(len(hostnames))} that the drill counts "
            f"({listed(sorted(hostnames), _NAMED)}): a required node affinity to {HOSTNAME} was added, so that neither a cordoned node nor "
            "one that an autoscaler adds can change the result."
        )
    if placed:
        sentences.append(f"{listed(placed)} names its node itself and was left as it is.")
    return sentences


def _number(count: int) -> str:
    return "the one node" if count == 1 else f"the {count} nodes"


def _bind(spec: dict[str, Any], hostnames: Sequence[str]) -> None:
    affinity = spec["affinity"] = spec.get("affinity") or {}
    node = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    required = node[_REQUIRED] = node.get(_REQUIRED) or {}
    wanted = {"key": HOSTNAME, "operator": "In", "values": sorted(hostnames)}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        required["nodeSelectorTerms"] = [{"matchExpressions": [wanted]}]
        return
    for term in terms:
        # A term without any requirement matches no node; with the names in it, it would.
        if isinstance(term, dict) and (term.get("matchExpressions") or term.get("matchFields")):
            term["matchExpressions"] = [*(term.get("matchExpressions") or ()), dict(wanted)]
