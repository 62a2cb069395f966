"""What a simulated node is made of."""

from __future__ import annotations

from typing import Any, Final

NODE_CPU: Final = "256"
NODE_MEMORY: Final = "1Ti"
NODE_PODS: Final = "2000"


def node(name: str) -> dict[str, Any]:
    """Return a node as a cluster begins with it, for kwok to look after."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "status": capacity(),
    }


def capacity() -> dict[str, Any]:
    """Return the part of a node's status that says how much it takes: more than any drill asks for."""
    resources = {"cpu": NODE_CPU, "memory": NODE_MEMORY, "pods": NODE_PODS}
    return {"capacity": resources, "allocatable": resources}
