"""Restoring a target by adoption, step by step (spec freeze-and-adopt 5; the order is explained in `core/adoption.py`).

Each step is one write, or waits for another controller; which one is due is read off the objects (`Stage`).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.controller.core import adoption, lifecycle, upkeep
from harness.controller.core import conditions as cond
from harness.controller.core.actions.base import alerting, conditions, decision, status
from harness.controller.core.adoption import Intent, Stage
from harness.controller.core.decision import Decision, Write
from harness.controller.core.patches import difference
from harness.controller.core.readiness import wanted
from harness.controller.core.restore import FIELD
from harness.controller.core.targets.parked import parked_by

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene

BLOCKED: Final = "Blocked"
OVERTAKEN: Final = "Overtaken"
MADE_BY_OTHERS: Final = "MadeByOthers"
WITHDRAWN: Final = "Withdrawn"


# -- the intent ------------------------------------------------------------------------------------------------------------------


def intend(scene: Scene) -> Decision:
    """Write down what is to be made again, before anything is taken away (step 0); or say why it is not."""
    parked = adoption.parked_set(scene)
    why = adoption.obstacle(scene.target, parked, scene.tracking.promoted)
    if why is not None or parked is None:
        reason, text = (why.reason, why.message) if why else ("NoTemplate", "")
        said = f"{scene.target_name} keeps what failed: {text}"
        fields: JSON = {"conditions": _told(scene, "False", reason, said)}
        note = scene.note("Warning", f"Not restored: {text}")
        return decision(scene, (), alerting(note, "warn"), fields, touch=False)
    intent = adoption.intent_for(scene, parked)
    text = (
        f"{scene.target_name} is deleted and made again, so that it adopts ReplicaSet"
        f" {intent.set_name} with its pods"
    )
    note = scene.note("Normal", f"Restoring {scene.names.target}: {text}")
    fields = {"restore": intent.stored(), "conditions": _told(scene, "Unknown", "Pending", text)}
    return decision(scene, (), note, fields, touch=False)


def renew(scene: Scene) -> Decision:
    """Take over what was changed about the target since the intent was written; it is deleted only as it was written down."""
    parked = adoption.parked_set(scene)
    if parked is None:
        return withdraw(scene)
    held: JSON = scene.status.get("restore") or {}
    patch = difference(held, adoption.intent_for(scene, parked).stored())
    return Decision(status={"restore": patch} if patch else None)


def withdraw(scene: Scene) -> Decision:
    """Give the intent up: the target is as it was, and there is something else to be done with it."""
    text = f"{scene.target_name} was not restored: it, or what is asked for, has changed"
    fields = {"restore": None, "conditions": _told(scene, "False", WITHDRAWN, text)}
    return decision(scene, (), scene.note("Normal", f"Not restored: {text}"), fields, touch=False)


# -- delete, make again, let go --------------------------------------------------------------------------------------------------


def delete(scene: Scene) -> Decision:
    """Delete the target that failed, this very one in this very state, and what it owns (step 2)."""
    meta = scene.target["metadata"]
    write = Write(
        "delete",
        "deployments",
        meta["name"],
        {},
        str(meta["resourceVersion"]),
        uid=str(meta["uid"]),
    )
    return Decision(writes=(write,))


def wait(scene: Scene) -> Decision:
    """Wait for other controllers: for finalizers of others (step 3), or for the new target to adopt (step 6); never forced."""
    left = adoption.late(scene)
    if left > 0:
        return Decision(requeue_after=left)
    if adoption.at(scene) is Stage.GOING:
        held = ", ".join(scene.target["metadata"].get("finalizers") or []) or "nobody"
        text = f"{scene.target_name} is being deleted and does not go: its finalizers are {held}"
    elif adoption.at(scene) is Stage.TAKEN:
        text = f"ReplicaSet {_intent(scene).set_name} was adopted by another workload"
    elif adoption.at(scene) is Stage.UNSEEN:
        text = "ReplicaSets cannot be watched"
    else:
        text = f"{scene.target_name} was made again but has not taken up its pods"
    return _blocked(scene, text)


def create(scene: Scene) -> Decision:
    """Make the target again, paused and with as many pods as the parked ReplicaSet has (step 5).

    Without that ReplicaSet it has to make its pods itself.
    """
    if refused := scene.world.refused_write:
        found = _blocked(scene, f"Deployment {scene.names.target} cannot be made again: {refused}")
        if found.status is not None:
            return found
    intent, body = _intent(scene), copy.deepcopy(_intent(scene).manifest)
    if (parked := adoption.set_of(scene, intent)) is not None:
        body["spec"] |= {"replicas": wanted(parked), "paused": True}
    return Decision(writes=(Write("create", "deployments", scene.names.target, body),))


def release(scene: Scene) -> Decision:
    """Take the Canary's reference off the ReplicaSet, once the target asks for as many pods as it has (step 4)."""
    parked = _set(scene)
    if wanted(parked) != wanted(scene.target):
        return Decision(writes=(_patch(scene.target, {"replicas": wanted(parked)}),))
    body: JSON = {"ownerReferences": adoption.owners_without(parked, scene.canary)}
    if adoption.SIZE in (parked["metadata"].get("annotations") or {}):
        body["annotations"] = {adoption.SIZE: None}
    meta = parked["metadata"]
    write = Write("patch", "replicasets", meta["name"], {"metadata": body}, meta["resourceVersion"])
    return Decision(writes=(write,))


# -- the end ---------------------------------------------------------------------------------------------------------------------


def verify(scene: Scene) -> Decision:
    """Compare what came out with what was meant, and take it for the new state (steps 6 and 7)."""
    intent, parked = _intent(scene), _set(scene)
    if other := adoption.rolled_again(scene, intent):
        text = f"{scene.target_name} was made again, but made pods of its own in ReplicaSet {other}"
        return _end(scene, "False", adoption.ROLLED_AGAIN, text)
    if not adoption.settled(scene.target, parked):
        return wait(scene)
    count, of = adoption.ready(parked), wanted(parked)
    text = f"{scene.target_name} was made again and adopted {count} of {of} ready pods of ReplicaSet {intent.set_name}"
    if count == 0:
        return _end(scene, "False", adoption.NOTHING, text)
    text += "; it is paused until it gets another template"
    return _end(scene, "True", adoption.ADOPTED, text)


def lost(scene: Scene) -> Decision:
    """The ReplicaSet went away meanwhile: the target makes its pods from the promoted template itself."""
    text = f"{scene.target_name} was made again, but ReplicaSet {_intent(scene).set_name} is gone: its pods are new"
    found = _end(scene, "False", adoption.NOTHING, text)
    paused = scene.target["spec"].get("paused")
    writes = (_patch(scene.target, {"paused": None}),) if paused else ()
    return replace(found, writes=writes)


def others(scene: Scene) -> Decision:
    """Somebody else made the target from the promoted template: it goes to zero as any idle target, and the pods stay parked."""
    text = f"{scene.target_name} was made again by somebody else, with the promoted template"
    found = _end(scene, "True", MADE_BY_OTHERS, text)
    return replace(found, writes=upkeep.to_zero(scene))


def overtaken(scene: Scene) -> Decision:
    """The target was made, or changed, with another template: park the pods again if need be; then it is analysed like any other.

    Recorded is the promoted hash, so that even the revision that failed counts as new: somebody has asked for it again.
    """
    if not lifecycle.deleting(scene.canary) and (writes := _park(scene, _intent(scene))):
        return Decision(writes=writes)
    intent = _intent(scene)
    text = f"{scene.target_name} was made again by somebody else, with another template than the promoted one"
    fields = {
        "restore": None,
        FIELD: intent.failed,
        "lastAppliedSpec": intent.promoted,
        "lastPromotedSpec": intent.promoted,
        "lastTrackedRevision": str(scene.snapshot.fence.open()),
        "conditions": _told(scene, "False", OVERTAKEN, text),
    }
    return decision(scene, (), scene.note("Warning", f"Not restored: {text}"), fields, touch=False)


# -- afterwards ------------------------------------------------------------------------------------------------------------------


def went_on(scene: Scene) -> Decision:
    """Nothing is left of the restoration: the target has another template, and the promoted pods are the Canary's again."""
    return status(scene, {"conditions": cond.drop(conditions(scene), cond.RESTORED)}, touch=False)


def pause_again(scene: Scene) -> Decision:
    """Somebody let a restored target go on: its next template would replace the pods that serve, before anybody looked at it."""
    text = f"{scene.target_name} was resumed and is paused again: it owns the pods that serve, until it gets another template"
    write = _patch(scene.target, {"paused": True})
    return Decision(writes=(write,), notes=(scene.note("Warning", text),))


def resume(scene: Scene) -> Decision:
    """The Canary goes: the target keeps its pods and is no longer paused."""
    return Decision(writes=(_patch(scene.target, {"paused": None}),))


# -- parts -----------------------------------------------------------------------------------------------------------------------


def _park(scene: Scene, intent: Intent) -> tuple[Write, ...]:
    """Return the write that takes the ReplicaSet back from the target, or else lets a target go on that we paused."""
    parked = adoption.set_of(scene, intent)
    if parked is not None and not parked_by(scene.canary, parked):
        return (_owners(parked, adoption.owners_parked(parked, scene.canary)),)
    return (_resume(scene),) if scene.target["spec"].get("paused") else ()


def _resume(scene: Scene) -> Write:
    return _patch(scene.target, {"paused": None, "replicas": 0})


def _end(scene: Scene, state: cond.State, reason: str, text: str) -> Decision:
    """Take the target as it is for what is applied and promoted; the other UID starts nothing (step 7)."""
    intent, now = _intent(scene), scene.snapshot
    held = cond.reworded(_told(scene, state, reason, text), cond.PROMOTED, text)
    fields = {
        "restore": None,
        FIELD: intent.failed,
        "lastAppliedSpec": now.hash,
        "lastPromotedSpec": now.hash,
        "lastTrackedRevision": str(now.fence),
        "conditions": held,
    }
    good = state == "True"
    note = scene.note(
        "Normal" if good else "Warning", f"{'Restored' if good else 'Not restored'}: {text}"
    )
    return decision(scene, (), alerting(note, "info" if good else "warn"), fields, touch=False)


def _blocked(scene: Scene, text: str) -> Decision:
    """Say that a restoration hangs, and go on waiting."""
    fields = {"conditions": _told(scene, "False", BLOCKED, text)}
    note = scene.note("Warning", f"Restoration blocked: {text}")
    return decision(scene, (), alerting(note, "warn"), fields, touch=False)


def _told(scene: Scene, state: cond.State, reason: str, text: str) -> list[JSON]:
    told = cond.put(conditions(scene), cond.RESTORED, state, reason, text, now=scene.now)
    return cond.reworded(told, cond.RESTORED, text)


def _intent(scene: Scene) -> Intent:
    """Return the intent. Raises LookupError without one: callers ask only after they looked."""
    intent = Intent.of(scene.status)
    if intent is None:
        msg = "no restoration is under way"
        raise LookupError(msg)
    return intent


def _set(scene: Scene) -> JSON:
    """Return the ReplicaSet to adopt. Raises LookupError when it is gone: callers ask only after they looked."""
    intent = _intent(scene)
    found = adoption.set_of(scene, intent)
    if found is None:
        msg = f"ReplicaSet {intent.set_name!r} was asked about but not read"
        raise LookupError(msg)
    return found


def _patch(obj: JSON, spec: JSON) -> Write:
    meta = obj["metadata"]
    return Write("patch", "deployments", meta["name"], {"spec": spec}, str(meta["resourceVersion"]))


def _owners(parked: JSON, owners: list[JSON]) -> Write:
    meta = parked["metadata"]
    body: JSON = {"metadata": {"ownerReferences": owners}}
    return Write("patch", "replicasets", meta["name"], body, str(meta["resourceVersion"]))
