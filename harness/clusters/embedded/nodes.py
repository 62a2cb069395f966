"""What a simulated node is made of, and whether nodes are as a drill needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.model.nodes import OF_KUBERNETES, Nodes, taint, taint_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NODE_CPU: Final = "256"
NODE_MEMORY: Final = "1Ti"
NODE_PODS: Final = "2000"
"""Far more than a kubelet takes: a simulated pod costs next to nothing, and hundreds of rollouts have to fit on a few nodes."""
_COPIED: Final = "beta.kubernetes.io/"
"""Labels below this the control plane copies from others by itself."""
ALIKE: Final = Nodes()


def node(
    name: str, labels: Mapping[str, str] | None = None, taints: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a node as kwok looks after it; taints are there from the beginning, as a kubelet registers with them.

    `labels` are those besides the ones of every node; `taints` are written as in a scenario.
    """
    spec = {"spec": {"taints": [taint(text) for text in taints]}} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _labels(name) | dict(labels or {}),
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        **spec,
        "status": capacity(),
    }


def capacity() -> dict[str, Any]:
    """Return the part of a node's status that says how much it takes: more than any drill asks for."""
    resources = {"cpu": NODE_CPU, "memory": NODE_MEMORY, "pods": NODE_PODS}
    return {"capacity": resources, "allocatable": resources}


def takes_pods(one: Mapping[str, Any], wanted: Nodes = ALIKE) -> bool:
    """Whether a node is ready, and nothing but the taints that are wanted keeps pods away."""
    conditions = one.get("status", {}).get("conditions") or []
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    taints = sorted(taint_text(t) for t in one.get("spec", {}).get("taints") or ())
    return ready and taints == sorted(wanted.taints.get(str(one["metadata"]["name"]), ()))


def otherwise(
    found: Sequence[Mapping[str, Any]], names: Sequence[str], wanted: Nodes = ALIKE
) -> str:
    """Return how the nodes of a cluster that was made before, with nodes of these names, are not as wanted; empty: they are.

    Somebody may have labelled or tainted them, or a drill may have let one join or leave.
    """
    there = {str(one["metadata"]["name"]): one for one in found}
    if set(there) != set(names):
        return "its nodes are not those that it was made with"
    for name, one in there.items():
        have = {
            taint_text(t)
            for t in one.get("spec", {}).get("taints") or ()
            if not str(t.get("key", "")).startswith(OF_KUBERNETES)
        }
        if have != set(wanted.taints.get(name, ())):
            return f"{name} has {_listed('taint', have)}, and the drill needs {_listed('taint', wanted.taints.get(name, ()))}"
        labels = {
            key: value
            for key, value in (one["metadata"].get("labels") or {}).items()
            if not key.startswith(_COPIED)
        }
        asked = _labels(name) | dict(wanted.labels.get(name, {}))
        if labels != asked:
            differing = sorted(k for k in labels | asked if labels.get(k) != asked.get(k))
            return f"{name} has other labels than the drill needs ({', '.join(differing)})"
    return ""


def _labels(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "type": "kwok",
    }


def _listed(what: str, several: Sequence[str] | set[str]) -> str:
    if not several:
        return f"no {what}"
    return f"the {what}{'' if len(several) == 1 else 's'} {', '.join(sorted(several))}"
