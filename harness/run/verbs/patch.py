"""`patch`: change objects the way a user's new revision does, or their status the way no user should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.kube.errors import ApiError
from harness.run.identity import FIELD_MANAGER
from harness.run.objects import RefusedError
from harness.run.together import together

if TYPE_CHECKING:
    from harness.kube.resource import Resource
    from harness.model.scenario import PatchStep, TemplatePatch
    from harness.run.verbs.context import Context, Target


async def act(context: Context, action: PatchStep) -> str:
    """Send one merge patch per object; the subject sees one change of each. Return what there is to say.

    Raises ApiError, and RefusedError where the server accepts what it must refuse.
    """
    targets = await context.targets(action.target, action.where)

    async def one(target: Target) -> None:
        resource, name, subresource = target.resource, target.name, None
        if action.template is not None:
            patch = await _template_patch(context, resource, name, action.template)
        elif action.status is not None:
            patch, subresource = {"status": dict(action.status)}, "status"
        else:
            patch = dict(action.merge or {})
        await context.client.patch(
            resource,
            name,
            context.namespace,
            patch,
            field_manager=FIELD_MANAGER,
            subresource=subresource,
        )

    if not action.refused:
        await together(one, targets)
        return ""
    for target in targets:
        try:
            await one(target)
        except ApiError as error:
            if action.refused not in str(error):
                raise
        else:
            msg = f"the change of {target.resource.kind}/{target.name} was accepted, and should have been refused: {action.refused}"
            raise RefusedError(msg)
    return f"refused, as it should be: {action.refused}"


async def _template_patch(
    context: Context, resource: Resource, name: str, change: TemplatePatch
) -> dict[str, Any]:
    template: dict[str, Any] = {}
    metadata = {
        key: dict(given)
        for key, given in (("annotations", change.annotations), ("labels", change.labels))
        if given
    }
    if metadata:
        template["metadata"] = metadata
    if change.image:
        obj = await context.client.get(resource, name, context.namespace)
        try:
            containers = obj["spec"]["template"]["spec"]["containers"]
        except KeyError:
            msg = f"{resource.kind} {name} has no pod template whose image could be changed"
            raise RefusedError(msg) from None
        # A merge patch replaces lists whole, so the other containers and every unknown field go along as they were read.
        first = {**containers[0], "image": change.image}
        template["spec"] = {"containers": [first, *containers[1:]]}
    return {"spec": {"template": template}}
