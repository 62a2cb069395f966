"""`applyAs`: what another field manager does, such as one that keeps a cluster like a repository (three-way, by server-side apply).

What it applied before and leaves out now it gives up, and the API server removes such a field unless somebody else has it too.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from harness.kube.errors import NotFound
from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from harness.model.actions import ApplyAsStep
    from harness.model.timeline import JSON
    from harness.run.verbs.context import Context


async def act(context: Context, action: ApplyAsStep) -> str:
    """Apply, then prune; return what was done. Raises RefusedError, and Conflict without `force` where others have a field."""
    objects = [obj for name in action.manifests for obj in context.manifests[name]]
    if action.target:
        found = await _target(context, action)
        objects.append(merged(found, action.merge or {}))
    for obj in objects:
        await context.maker.apply_all(
            [obj], context.namespace, manager=action.manager, force=action.force
        )
    for name in action.prune:
        await _prune(context, name)
    done = [f"{obj['kind']}/{obj['metadata']['name']} applied" for obj in objects]
    done += [f"{name} pruned" for name in action.prune]
    return f"{action.manager}: {', '.join(done)}"


async def _target(context: Context, action: ApplyAsStep) -> JSON:
    """Return an object as the manifests have it, the last one of that name: what a repository would hold."""
    (wanted,) = await context.targets(action.target, {})
    for several in reversed(list(context.manifests.values())):
        for obj in reversed(several):
            if (obj["kind"], obj["metadata"]["name"]) == (wanted.resource.kind, wanted.name):
                return obj
    msg = f"the manifests hold no {wanted.resource.kind}/{wanted.name}, so that {action.manager} has nothing to apply"
    raise RefusedError(msg)


async def _prune(context: Context, name: str) -> None:
    (target,) = await context.targets(name, {})
    try:
        await context.client.delete(target.resource, target.name, context.namespace)
    except NotFound:
        return  # it is gone, which is all that was wanted


def merged(obj: Any, change: Any) -> Any:
    """Return an object after a JSON merge patch (RFC 7386), as a copy; null removes."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    result = copy.deepcopy(obj) if isinstance(obj, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
