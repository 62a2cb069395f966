"""Pods that are in nobody's way: they push no other pod away, and no autoscaler buys a node for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.run.adapt.pods import label, listed, pod_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.timeline import JSON

PRIORITY_NAME: Final = "rollout-drill"
PRIORITY_VALUE: Final = -1000
"""Below -10, under which the cluster autoscaler, unless told otherwise, neither adds a node for a pod nor keeps one."""
NO_PRIORITY: Final = (
    "Drill pods have the cluster's default priority, since no PriorityClass can be made for them here: "
    "where nodes are full they compete with other pods, and an autoscaler may add a node for them."
)


def priority_class() -> dict[str, Any]:
    """Return the PriorityClass of drill pods; one and the same for all runs."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PRIORITY_NAME},
        "value": PRIORITY_VALUE,
        "preemptionPolicy": "Never",
        "globalDefault": False,
        "description": "Pods of drills: they never preempt others, and are the first to go.",
    }


def is_ours(there: JSON) -> bool:
    """Return whether a PriorityClass of that name does what drill pods need."""
    return (
        there.get("value") == PRIORITY_VALUE
        and there.get("preemptionPolicy") == "Never"
        and not there.get("globalDefault")
    )


def with_priority(objects: Sequence[JSON], name: str) -> list[str]:
    """Give the pods of `objects`, in place, the PriorityClass `name`, unless they state a priority; return sentences about it."""
    changed: list[str] = []
    kept: list[str] = []
    for obj in objects:
        spec = pod_spec(obj)
        if spec is None:
            continue
        if spec.get("priorityClassName") or spec.get("priority") is not None:
            kept.append(label(obj))
            continue
        spec["priorityClassName"] = name
        changed.append(label(obj))
    sentences = []
    if changed:
        sentences.append(
            f"The pods of {listed(changed)} have the PriorityClass {name} ({PRIORITY_VALUE}, never preempting): they push no other pod away "
            "and give way themselves where a node is full."
        )
    if kept:
        sentences.append(f"{listed(kept)} states a priority of its own, which was kept.")
    return sentences
