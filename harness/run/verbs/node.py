"""`node`: a simulated node joins, leaves, or changes. The cluster is the drill's own (`Plan.alone`), so no other drill meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.clusters.embedded.nodes import node
from harness.kube.errors import AlreadyExists, NotFound
from harness.kube.resource import NODE, POD
from harness.model.nodes import OF_KUBERNETES, taint
from harness.run.identity import FIELD_MANAGER
from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from harness.model.actions import NodeStep
    from harness.model.timeline import JSON
    from harness.run.verbs.context import Context

READY_WITHIN: Final = 30.0
"""Seconds until a node that joined is ready; it takes about one."""


async def act(context: Context, action: NodeStep) -> str:
    """Change the node; return what was done. Raises RefusedError, also when a node that joins does not become ready."""
    name = action.name
    if action.becomes == "gone":
        return await _gone(context, name)
    if action.becomes == "joined":
        await _join(context, action)
        await _ready(context, name)
        return f"{name} joined"
    try:
        found = await context.client.get(NODE, name)
    except NotFound:
        msg = f"there is no node {name!r}"
        raise RefusedError(msg) from None
    patch = change(found, action)
    if patch:
        await context.client.patch(NODE, name, None, patch, field_manager=FIELD_MANAGER)
    return f"{name} {action.becomes or 'changed'}"


def change(found: JSON, action: NodeStep) -> JSON:
    """Return the merge patch that makes a node what the step says; empty when it is."""
    patch: dict[str, Any] = {}
    if action.labels:
        patch["metadata"] = {"labels": dict(action.labels)}
    spec: dict[str, Any] = {}
    if action.becomes in {"cordoned", "uncordoned"}:
        spec["unschedulable"] = action.becomes == "cordoned"
    if action.taints is not None:
        kept = [
            one for one in found["spec"].get("taints") or () if one["key"].startswith(OF_KUBERNETES)
        ]
        spec["taints"] = [*kept, *(taint(text) for text in action.taints)]
    if spec:
        patch["spec"] = spec
    return patch


async def _join(context: Context, action: NodeStep) -> None:
    # In no journal: were it removed with the drill's other objects, its last pods would have nobody to end them. It goes with the cluster.
    labels = {key: value for key, value in action.labels.items() if value is not None}
    made = node(action.name, labels, action.taints or ())
    try:
        await context.client.create(NODE, made, field_manager=FIELD_MANAGER)
    except AlreadyExists:
        msg = f"there is a node {action.name!r} already, so that none of this name can join"
        raise RefusedError(msg) from None


async def _ready(context: Context, name: str) -> None:
    def ready() -> bool:
        nodes = context.live.state.world().get("nodes", [])
        return any(one["name"] == name and one["ready"] for one in nodes)

    if not await context.live.wait_for(ready, READY_WITHIN):
        msg = f"node {name!r} joined, and was not ready within {READY_WITHIN:g} s"
        raise RefusedError(msg)


async def _gone(context: Context, name: str) -> str:
    try:
        await context.client.delete(NODE, name)
    except NotFound:
        msg = f"there is no node {name!r}"
        raise RefusedError(msg) from None
    pods, _ = await context.client.list(POD, None, field_selector=f"spec.nodeName={name}")
    # Nobody is there to end them: without grace, as the pod garbage collector does it.
    for pod in pods:
        meta = pod["metadata"]
        path = POD.path(meta["namespace"], meta["name"])
        try:
            await context.client.raw("DELETE", path, None, {"gracePeriodSeconds": 0})
        except NotFound:
            continue
    return f"{name} gone, with {len(pods)} {'pod' if len(pods) == 1 else 'pods'}"
