"""A failed revision is taken out of the target again (`analysis.restore: revert`; spec freeze-and-adopt 6).

First the roll-back, whose status announces it (`announced`, for `adopt` as well); then the write to the target; then, by what the target holds, the
end. A process that is killed in between finds the same again. lastTransitionTime stays: a restoration is no step of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.controller.core import conditions as cond
from harness.controller.core import restore
from harness.controller.core.actions.base import conditions, decision, status
from harness.controller.core.decision import Decision, Refresh

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON, Note
    from harness.controller.core.scene import Scene


def announced(scene: Scene, entry: JSON, failed: str) -> tuple[JSON, Note | None]:
    """Return the fields of a run's bad end with what becomes of the target, and an event where it keeps what failed.

    `failed`: hash of what the target holds now. Without `analysis.restore` nothing is added. Called in the write that ends the run, so
    that what is announced cannot be forgotten.
    """
    if not scene.settings.restore:
        return entry, None
    target = scene.target_name
    state: cond.State = "False"
    if failed == scene.tracking.promoted:
        reason = restore.CONFIGS_ONLY
        text = f"{target} holds the promoted template; what failed are its ConfigMaps and Secrets, and those are not written back"
    elif restore.failed_again(scene.status, failed):
        reason = restore.APPLIED_AGAIN
        text = (
            f"{target} keeps the failed revision, at zero: it was taken out before, and somebody applied it again. Its source still"
            " holds the failed version"
        )
    else:
        state, reason = "Unknown", restore.PENDING
        text = f"The failed revision is being taken out of {target}"
    held = _put(scene, list(entry["conditions"]), state, reason, text)
    note = scene.note("Warning", f"Not restored: {text}") if state == "False" else None
    return entry | {"conditions": held}, note


def call_off(scene: Scene) -> Decision:
    """The Canary does not ask for it any more."""
    return status(scene, {"conditions": cond.drop(conditions(scene), cond.RESTORED)}, touch=False)


def revert(scene: Scene) -> Decision:
    """Write the promoted template back, or say that it cannot be had. What the answer holds is looked at: a webhook may have changed it."""
    promoted = restore.template(scene)
    if promoted is None:
        return _without_template(scene)
    write = restore.write(scene, promoted)
    fields = {
        restore.FIELD: scene.tracking.applied,
        "conditions": _told(scene, "Unknown", restore.NOT_KEPT, _changed(scene)),
    }
    wanted = scene.tracking.promoted
    return Decision(
        writes=(write,), refresh=Refresh(write.resource, write.name, wanted, otherwise=fields)
    )


def restored(scene: Scene) -> Decision:
    """The target holds the promoted template again; no analysis starts from that."""
    text = f"{scene.target_name} holds the promoted template again"
    if scene.primary_elsewhere:
        text += "; ConfigMaps and Secrets stay as they are"
    fields = _taken_out(scene, "True", restore.REVERTED, text)
    return decision(scene, (), scene.note("Normal", f"Restored: {text}"), fields, touch=False)


def put_back(scene: Scene) -> Decision:
    """Somebody put the promoted template back after all."""
    text = f"Somebody put the promoted template back into {scene.target_name}"
    return status(scene, _taken_out(scene, "True", restore.PUT_BACK, text), touch=False)


def not_kept(scene: Scene) -> Decision:
    """The template was changed on its way into the target; what it holds now stays, and is not analysed."""
    text = f"{_changed(scene)}. It is not written again, and what is there is not analysed"
    fields = _taken_out(scene, "False", restore.NOT_KEPT, text)
    return decision(scene, (), scene.note("Warning", f"Not restored: {text}"), fields, touch=False)


def _changed(scene: Scene) -> str:
    return (
        f"The promoted template was written into {scene.target_name}, which holds another one now: something changes it on the way"
        " (an admission webhook)"
    )


def _without_template(scene: Scene) -> Decision:
    source = "no ReplicaSet of it holds the promoted template any more, and "
    if scene.workload.plural != "deployments":
        source = ""
    text = (
        f"{scene.target_name} keeps the failed revision, at zero: {source}the template of"
        f" {scene.primary_name} does not give the promoted one either. Apply the promoted version to put it back"
    )
    held = _told(scene, "False", restore.NO_TEMPLATE, text)
    note = scene.note("Warning", f"Not restored: {text}")
    return decision(scene, (), note, {"conditions": held}, touch=False)


def _taken_out(scene: Scene, state: cond.State, reason: str, text: str) -> JSON:
    """Return the fields that remember what the target holds now, and what it held."""
    return {
        "lastAppliedSpec": scene.snapshot.hash,
        "lastTrackedRevision": str(scene.snapshot.fence),
        restore.FIELD: restore.taken_out(scene),
        **scene.config_fields,
        "conditions": _told(scene, state, reason, text),
    }


def _told(scene: Scene, state: cond.State, reason: str, text: str) -> list[JSON]:
    return _put(scene, conditions(scene), state, reason, text)


def _put(scene: Scene, held: list[JSON], state: cond.State, reason: str, text: str) -> list[JSON]:
    return cond.put(held, cond.RESTORED, state, reason, text, now=scene.now, renew=True)
