"""Restoring a target by adoption: what is to be made again, and how far it has come (spec freeze-and-adopt 5 and 6, K1 to K11).

`status.restore` holds the intent: everything that is needed once the target is gone. All else is read off the objects, so that it does not
matter between which two writes a controller ended.

The order differs from the spec's in one point: the target is made again *before* the promoted ReplicaSet is let go (its step 5 before its
step 4), and paused. A paused Deployment makes no ReplicaSet, but adopts one that nobody controls, and never scales it to another number than
its own. So there is no moment in which the set belongs to nobody, or to a Deployment that would roll it away: whoever is faster than we are,
or changes the template meanwhile, finds the set with the Canary, or a Deployment that does nothing with it.

It stays paused until the next revision, for the same reason: the traffic goes to the pods of that set alone, and a Deployment that owns them
would replace them with whatever it is given, be this controller there or not. Before a run the set is parked again, then the target goes on.
"""

from __future__ import annotations

import copy
import enum
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.controller.core import conditions as cond
from harness.controller.core import lifecycle, restore
from harness.controller.core.canonical import same, template_hash, without_nulls
from harness.controller.core.moments import seconds
from harness.controller.core.ownership import controller_of, owner_reference
from harness.controller.core.readiness import wanted
from harness.controller.core.snapshots import observed
from harness.controller.core.targets.parked import SETS, parked_by, primary_set

if TYPE_CHECKING:
    from harness.controller.core.decision import JSON
    from harness.controller.core.scene import Scene

ADOPT: Final = "adopt"
ADOPTED: Final = "Adopted"
"""Reason of condition Restored: the target owns the promoted pods, and is paused until it gets another template."""
NOTHING: Final = "NothingAdopted"
ROLLED_AGAIN: Final = "RolledAgain"
ENDS: Final = frozenset({ADOPTED, NOTHING, ROLLED_AGAIN})
"""Reasons with which a restored target is left paused by us, if it is."""
LARGEST: Final = 200_000
"""Bytes of a manifest that a status may hold; an object of the API may have about a megabyte and a half."""
HASH_LABEL: Final = "pod-template-hash"
_PRIVATE: Final = "deployment.kubernetes.io/"
SIZE: Final = f"{_PRIVATE}desired-replicas"
"""On a ReplicaSet: which size its Deployment had. Where that is another number than the Deployment has now, its controller scales and does not
roll; and where there is nothing to scale either, it waits for ever (K7). A set that was scaled while it was parked must not bring that along."""
_KEPT: Final = ("labels", "annotations", "finalizers", "ownerReferences")


@dataclass(frozen=True, slots=True)
class Intent:
    """What `status.restore` says."""

    uid: str
    """UID of the target that is to go."""
    set_name: str
    """The parked ReplicaSet."""
    set_uid: str
    promoted: str
    """Hash of the template that the target is to have."""
    failed: str
    """Hash of the template that failed."""
    manifest: JSON
    """The target as it is to be made."""

    @classmethod
    def of(cls, status: JSON) -> Intent | None:
        """Read it from a raw status; None when no restoration is under way."""
        held = status.get("restore") or {}
        if not held.get("manifest"):
            return None
        parked = held.get("replicaSet") or {}
        return cls(
            str(held.get("uid") or ""),
            str(parked.get("name") or ""),
            str(parked.get("uid") or ""),
            str(held.get("promoted") or ""),
            str(held.get("failed") or ""),
            held["manifest"],
        )

    def stored(self) -> JSON:
        """Return it as `status.restore` holds it."""
        return {
            "uid": self.uid,
            "replicaSet": {"name": self.set_name, "uid": self.set_uid},
            "promoted": self.promoted,
            "failed": self.failed,
            "manifest": self.manifest,
        }


class Stage(enum.Enum):
    """How far a restoration has come; each is left by one write, or by what another controller does."""

    DELETE = enum.auto()
    """The target that failed is still there."""
    GOING = enum.auto()
    """It is being deleted; a finalizer of somebody else's may hold it."""
    CREATE = enum.auto()
    """There is no target."""
    OVERTAKEN = enum.auto()
    """Somebody made the target with another template, or changed it since."""
    RELEASE = enum.auto()
    """The target is there, paused; the ReplicaSet is still the Canary's."""
    OTHERS = enum.auto()
    """Somebody else made the target with the promoted template: it made pods of its own."""
    ADOPTING = enum.auto()
    """The ReplicaSet is nobody's: the target is about to adopt it."""
    VERIFY = enum.auto()
    """The target controls the ReplicaSet."""
    TAKEN = enum.auto()
    """Another workload adopted the ReplicaSet."""
    LOST = enum.auto()
    """The target is there, but the ReplicaSet is gone."""
    UNSEEN = enum.auto()
    """ReplicaSets cannot be watched: nothing can be said."""


BEGUN: Final = frozenset(Stage) - {Stage.DELETE}
"""Stages that are finished whatever happens to the Canary: from here on there is no target of its own."""


def manifest_of(target: JSON, parked: JSON) -> JSON:
    """Return what the target is made again from: its own metadata and spec, with the promoted template and its number of pods (A7).

    What the server and the Deployment's own controller keep there is left out. managedFields cannot be recreated.
    """
    meta = target["metadata"]
    kept: JSON = {"name": meta["name"], "namespace": meta["namespace"]}
    kept |= {key: copy.deepcopy(meta[key]) for key in _KEPT if meta.get(key)}
    if annotations := kept.pop("annotations", None):
        own = {key: value for key, value in annotations.items() if not key.startswith(_PRIVATE)}
        kept |= {"annotations": own} if own else {}
    spec = {
        **copy.deepcopy(target["spec"]),
        "template": template_of(parked),
        "replicas": wanted(parked),
    }
    spec.pop("paused", None)
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": kept, "spec": spec}
    result: JSON = without_nulls(whole)
    return result


def template_of(parked: JSON) -> JSON:
    """Return a ReplicaSet's pod template as the Deployment that made it has it (K4)."""
    result: JSON = copy.deepcopy(parked["spec"]["template"])
    (result["metadata"].get("labels") or {}).pop(HASH_LABEL, None)
    return result


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a target is not restored."""

    reason: str
    """Reason of condition Restored."""
    message: str


def obstacle(target: JSON, parked: JSON | None, promoted: str) -> Obstacle | None:
    """Return why a target cannot be made again so that it adopts the ReplicaSet; None when it can."""
    name = target["metadata"]["name"]
    if parked is None:
        return Obstacle(
            "NoTemplate", f"there is no ReplicaSet with the promoted template of {name}"
        )
    held = parked["metadata"]["name"]
    if template_hash(template_of(parked)) != promoted:
        text = f"the template of ReplicaSet {held} is not the promoted one, so the target would not adopt it"
        return Obstacle("NoTemplate", text)
    if target["spec"].get("paused"):
        return Obstacle(
            "Paused", f"Deployment {name} is paused, and only whoever paused it knows why"
        )
    size = len(json.dumps(manifest_of(target, parked)))
    if size > LARGEST:
        text = (
            f"the manifest of Deployment {name} has {size} bytes, and a status may hold {LARGEST}"
        )
        return Obstacle("TooLarge", text)
    return None


def intent_for(scene: Scene, parked: JSON) -> Intent:
    """Return the intent to make the target again as it is now, with the promoted template."""
    meta, held = scene.target["metadata"], Intent.of(scene.status)
    return Intent(
        str(meta["uid"]),
        str(parked["metadata"]["name"]),
        str(parked["metadata"]["uid"]),
        held.promoted if held else scene.tracking.promoted,
        held.failed if held else scene.snapshot.hash,
        manifest_of(scene.target, parked),
    )


def stale(intent: Intent, target: JSON, parked: JSON) -> bool:
    """Whether the target's metadata or spec was changed since the intent was written; its replicas are read when they are needed."""

    def fixed(manifest: JSON) -> JSON:
        return {**manifest, "spec": {**manifest["spec"], "replicas": 0}}

    return not same(fixed(intent.manifest), fixed(manifest_of(target, parked)))


def parked_set(scene: Scene) -> JSON | None:
    """Return the ReplicaSet that serves and is the Canary's; None when there is none."""
    found = primary_set(scene.canary, scene.world.target, scene.world.objects.get(SETS) or {})
    return found if found is not None and parked_by(scene.canary, found) else None


def set_of(scene: Scene, intent: Intent) -> JSON | None:
    """Return the ReplicaSet that is to be adopted; None when it is gone, or another one has its name."""
    found = (scene.world.objects.get(SETS) or {}).get(intent.set_name)
    return found if found and found["metadata"].get("uid") == intent.set_uid else None


def stage(scene: Scene, intent: Intent) -> Stage:
    """Return how far the restoration has come, by the objects alone."""
    target, parked = scene.world.target, set_of(scene, intent)
    if SETS not in scene.world.objects:
        return Stage.UNSEEN
    if target is None:
        return Stage.CREATE
    if target["metadata"].get("uid") == intent.uid:
        return Stage.GOING if target["metadata"].get("deletionTimestamp") else Stage.DELETE
    if template_hash(target["spec"]["template"]) != intent.promoted:
        return Stage.OVERTAKEN
    if parked is None:
        return Stage.LOST
    owner = (controller_of(parked) or {}).get("uid")
    if owner == target["metadata"]["uid"]:
        return Stage.VERIFY
    if parked_by(scene.canary, parked):
        return Stage.RELEASE if target["spec"].get("paused") else Stage.OTHERS
    return Stage.TAKEN if owner else Stage.ADOPTING


def at(scene: Scene) -> Stage | None:
    """Return how far a restoration has come; None when none is under way."""
    intent = Intent.of(scene.status)
    return stage(scene, intent) if intent else None


def begun(scene: Scene) -> bool:
    """Whether a restoration is past the point from which it has to be finished."""
    return at(scene) in BEGUN


def settled(target: JSON, parked: JSON) -> bool:
    """Whether the new target's controller has taken everything up: its last change, and the pods of the set it adopted."""
    counted = int((target.get("status") or {}).get("replicas") or 0)
    same_size = wanted(target) == wanted(parked)
    return observed(target) and same_size and counted >= pods(parked)


def pods(parked: JSON) -> int:
    """Return how many pods a ReplicaSet has."""
    return int((parked.get("status") or {}).get("replicas") or 0)


def ready(parked: JSON) -> int:
    """Return how many ready pods a ReplicaSet has."""
    return int((parked.get("status") or {}).get("readyReplicas") or 0)


def rolled_again(scene: Scene, intent: Intent) -> str:
    """Return the name of another ReplicaSet with pods that the new target made; empty when there is none (step 6)."""
    sets = scene.world.objects.get(SETS) or {}
    uid = scene.target["metadata"]["uid"]
    for name, each in sorted(sets.items()):
        owner = (controller_of(each) or {}).get("uid")
        if owner == uid and name != intent.set_name and wanted(each) > 0:
            return name
    return ""


def owners_without(parked: JSON, canary: JSON) -> list[JSON]:
    """Return the ReplicaSet's owner references without the Canary's.

    Not even a plain one stays: the garbage collector would take the pods away with the Canary, and they are the target's now. Nothing is lost
    meanwhile, as the target that adopts the set is there already.
    """
    uid = canary["metadata"]["uid"]
    return [
        each for each in parked["metadata"].get("ownerReferences") or [] if each.get("uid") != uid
    ]


def owners_parked(parked: JSON, canary: JSON) -> list[JSON]:
    """Return the ReplicaSet's owner references with the Canary in control, in one write: it is nobody's at no time (A1)."""
    uid = canary["metadata"]["uid"]
    rest = parked["metadata"].get("ownerReferences") or []
    others = [each for each in rest if not each.get("controller") and each.get("uid") != uid]
    return [*others, owner_reference(canary)]


def due(scene: Scene) -> bool:
    """Whether an intent is to be written down: the roll-back is done, and the target still holds what failed."""
    if Intent.of(scene.status) is not None or scene.settings.restore != ADOPT:
        return False
    held = scene.snapshot.hash == scene.tracking.applied != scene.tracking.promoted
    return restore.pending(scene.status) and held and scene.target_idle and not scene.new_revision


def needless(scene: Scene) -> bool:
    """Whether somebody put the promoted template back before anything was done."""
    if Intent.of(scene.status) is not None or scene.settings.restore != ADOPT:
        return False
    return restore.pending(scene.status) and scene.snapshot.hash == scene.tracking.promoted


def overruled(scene: Scene) -> bool:
    """Whether an intent is to be given up while the target is still there: it, or what is asked for, has changed since."""
    intent = Intent.of(scene.status)
    if intent is None or at(scene) is not Stage.DELETE:
        return False
    asked = scene.settings.restore == ADOPT and not lifecycle.deleting(scene.canary)
    if not asked or scene.snapshot.hash != intent.failed:
        return True
    return obstacle(scene.target, parked_set(scene), intent.promoted) is not None


def outdated(scene: Scene) -> bool:
    """Whether the intent has to be written anew before the target may be deleted."""
    intent, parked = Intent.of(scene.status), parked_set(scene)
    return intent is not None and parked is not None and stale(intent, scene.target, parked)


# -- after a restoration ---------------------------------------------------------------------------------------------------------


def owned(scene: Scene) -> bool:
    """Whether the restored target owns the pods that serve.

    Only after a restoration: a target that is yet to be taken over owns its own as well.
    """
    target = scene.world.target
    if target is None or not _restored(scene):
        return False
    found = primary_set(scene.canary, target, scene.world.objects.get(SETS) or {})
    owner = controller_of(found) if found is not None else None
    return bool(owner and owner.get("uid") == target["metadata"]["uid"])


def _restored(scene: Scene) -> bool:
    ended = (cond.find(scene.status, cond.RESTORED) or {}).get("reason") in ENDS
    return ended and Intent.of(scene.status) is None


def resting(scene: Scene) -> bool:
    """Whether the target is paused by us: it was restored, and has yet to go on."""
    target = scene.world.target
    return target is not None and _restored(scene) and bool(target["spec"].get("paused"))


def resumed(scene: Scene) -> bool:
    """Whether somebody let a restored target go on that still owns the promoted pods."""
    held = owned(scene) and not resting(scene)
    return held and scene.snapshot.hash == scene.tracking.promoted


def spent(scene: Scene) -> bool:
    """Whether a restored target went on with another template, and its pods are parked again (`ParkedTarget.keep`)."""
    gone = _restored(scene) and not (owned(scene) or resting(scene))
    return gone and scene.snapshot.hash != scene.tracking.promoted


def holds(scene: Scene) -> bool:
    """Whether the Canary must not go just so: its target is missing, or is to be resumed first."""
    return Intent.of(scene.status) is not None or resting(scene) or owned(scene)


def late(scene: Scene) -> float:
    """Return how many seconds are left until a restoration that hangs is reported; not positive when they have passed.

    Counted from the deletion of the target while that is under way, and otherwise from when the new one was made.
    """
    meta = (scene.world.target or {}).get("metadata") or {}
    since = seconds(meta.get("deletionTimestamp")) or seconds(meta.get("creationTimestamp"))
    return (since or scene.now) + scene.settings.deadline - scene.now
