"""Who plays the Deployment controller of the simulated cluster (spec freeze-and-adopt 4, K1 to K11).

What counts is which ReplicaSet it takes for its own, which for its current one, and how many pods each of them wants. How fast it goes
about it is simpler than in life: the new pods all come at once, and old ones go as new ones get ready, as with a surge of 100 %.
"""

from __future__ import annotations

import copy
import functools
import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from harness.controller.core.evidence import HISTORY
from harness.controller.core.ownership import controller_of
from harness.controller.core.snapshots import REVISION
from harness.tests.controller_sim_replicasets import ReplicaSets, template_text

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
HASH: Final = "pod-template-hash"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
_OWN: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
    }
)
"""Annotations of a Deployment that its ReplicaSets do not get."""
_HISTORY_LIMIT: Final = 10


class Deployments(ReplicaSets):
    """A namespace whose Deployments have ReplicaSets."""

    def __init__(self, delay: Callable[[str, JSON, int], float | None]) -> None:
        super().__init__(delay)
        self._numbered_sets: dict[str, int] = {}
        self._texts: dict[tuple[str, int], str] = {}
        """Templates of ReplicaSets as text, by UID and generation."""

    def _roll(self, name: str) -> None:
        """Let a Deployment's controller act until it has nothing left to do at this moment."""
        for _ in range(5):
            if not self._sync(name):
                return

    def _sync(self, name: str) -> bool:
        """One look of a Deployment's controller; whether it wants another one at once."""
        held = self.objects["deployments", name]
        meta = {**held["metadata"], "annotations": {**held["metadata"].get("annotations", {})}}
        obj: JSON = {**held, "metadata": meta, "status": {**(held.get("status") or {})}}
        again = False
        owned = self._claim(obj)
        current = self._equal(obj, owned)
        if "deletionTimestamp" not in obj["metadata"]:
            paused = bool(obj["spec"].get("paused"))
            scales = any(self._wants(s) and self._outsized(s, obj) for s in owned)
            if current is None and not (paused or scales):
                current = self._make_set(obj)
                again = current is None
            if current is not None:
                self._number(obj, current, owned)
            if paused or scales:
                self._scale(obj, current, owned)
                again = not paused
            elif current is not None:
                self._replace_old(obj, current, [s for s in owned if s != current])
                self._forget_old(obj, [s for s in owned if s != current])
        self._tell(obj, current)
        return again

    def _sets_of_interest(self, name: str) -> list[str]:
        """Versions of the ReplicaSets that it controls or may adopt."""
        found = []
        for held in self.replica_sets:
            owner = controller_of(held) or {}
            if owner.get("name", name) == name:
                found.append(held["metadata"]["resourceVersion"])
        return found

    # -- which are its own -------------------------------------------------------------------------------------------

    def _claim(self, obj: JSON) -> list[str]:
        """Return the names of its ReplicaSets, the oldest first, after adopting and releasing (K1, K2, K3, K6)."""
        uid, goes = obj["metadata"]["uid"], "deletionTimestamp" in obj["metadata"]
        found = []
        for name, held in self.of("replicasets").items():
            owner = controller_of(held)
            matches = selects(obj["spec"]["selector"], held["metadata"].get("labels") or {})
            if owner is not None and owner.get("uid") != uid:
                continue
            if owner is not None and not matches and not goes:
                owners = [o for o in held["metadata"]["ownerReferences"] if o.get("uid") != uid]
                self._change_set(name, {"ownerReferences": owners})
                continue
            if owner is None:
                if goes or not matches or "deletionTimestamp" in held["metadata"]:
                    continue
                owners = held["metadata"].get("ownerReferences") or []
                self._change_set(name, {"ownerReferences": [*owners, _controller(obj)]})
            found.append((held["metadata"]["creationTimestamp"], name))
        return [name for _, name in sorted(found)]

    def _equal(self, obj: JSON, owned: list[str]) -> str | None:
        """The oldest with its template is the current one (K4)."""
        wanted = bare(template_text(obj))
        return next((name for name in owned if self._bare(name) == wanted), None)

    def _bare(self, name: str) -> str:
        held = self.objects["replicasets", name]
        key = (held["metadata"]["uid"], held["metadata"]["generation"])
        if key not in self._texts:
            self._texts[key] = bare(template_text(held))
        return self._texts[key]

    def _make_set(self, obj: JSON) -> str | None:
        """Make the ReplicaSet of its template; None when the name is taken, for which another one is tried next time (K10, K11)."""
        meta, spec = obj["metadata"], obj["spec"]
        collisions = obj["status"].get("collisionCount", 0)
        digest = f"{zlib.crc32(f'{template_text(obj)}{collisions or str()}'.encode()):08x}"
        name = f"{meta['name']}-{digest}"
        if self.get("replicasets", name) is not None:
            obj["status"]["collisionCount"] = collisions + 1
            return None
        template = copy.deepcopy(spec["template"])
        labels = {**(template.setdefault("metadata", {}).get("labels") or {}), HASH: digest}
        template["metadata"]["labels"] = labels
        selector = copy.deepcopy(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: digest}
        # Numbered by themselves: when a Deployment gets its next one, other objects may be there or not yet.
        self._numbered_sets[name] = self._numbered_sets.get(name, 0) + 1
        found: JSON = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "uid": f"uid-{name}-{self._numbered_sets[name]}",
                "generation": 1,
                "creationTimestamp": self._second(),
                "labels": labels,
                "annotations": self._bounds(obj),
                "ownerReferences": [_controller(obj)],
                "managedFields": [],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            found["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        self._store("replicasets", found)
        return name

    def _number(self, obj: JSON, current: str, owned: list[str]) -> None:
        """Give the current one the next number, unless it has it, and what else it takes over (K8, K9)."""
        held = self.objects["replicasets", current]
        notes = dict(held["metadata"].get("annotations") or {})
        following = max((self._revision_of(s) for s in owned if s != current), default=0) + 1
        before = notes.get(REVISION, "")
        if int(before or 0) < following:
            notes[REVISION] = str(following)
            if before:
                notes[HISTORY] = ",".join(filter(None, (notes.get(HISTORY), before)))
        own = obj["metadata"]["annotations"]
        notes |= {key: value for key, value in own.items() if key not in _OWN}
        self._change_set(
            current,
            {"annotations": notes},
            {"minReadySeconds": obj["spec"].get("minReadySeconds") or None},
        )
        own[REVISION] = notes[REVISION]

    def _revision_of(self, name: str) -> int:
        notes = self.objects["replicasets", name]["metadata"].get("annotations") or {}
        return int(notes.get(REVISION) or 0)

    # -- how many pods -----------------------------------------------------------------------------------------------

    def _wants(self, name: str) -> int:
        return int(self.objects["replicasets", name]["spec"].get("replicas", 1))

    def _outsized(self, name: str, obj: JSON) -> bool:
        """Whether the Deployment had another size when this one got its own: then it is scaled first, and rolls later (K7)."""
        noted = (self.objects["replicasets", name]["metadata"].get("annotations") or {}).get(
            DESIRED
        )
        return noted is not None and int(noted) != _size(obj)

    def _bounds(self, obj: JSON) -> JSON:
        rolling = (obj["spec"].get("strategy") or {}).get("rollingUpdate") or {}
        surge, size = rolling.get("maxSurge", "25%"), _size(obj)
        more = surge if isinstance(surge, int) else -(-size * int(surge.rstrip("%")) // 100)
        return {DESIRED: str(size), MOST: str(size + more)}

    def _resize(self, obj: JSON, name: str, count: int) -> None:
        if self._wants(name) == count:
            return
        notes = self.objects["replicasets", name]["metadata"].get("annotations") or {}
        self._change_set(name, {"annotations": {**notes, **self._bounds(obj)}}, {"replicas": count})
        self._keep(name)

    def _scale(self, obj: JSON, current: str | None, owned: list[str]) -> None:
        """Follow another spec.replicas without rolling: the only active one, or the latest, gets it all."""
        active = [name for name in owned if self._wants(name)]
        if len(active) <= 1:
            latest = active or ([current] if current else owned[-1:])
            for name in latest:
                # One that has that size already keeps its outdated note, and no rollout follows until the size changes again.
                self._resize(obj, name, _size(obj))
            return
        for name in active:
            notes = self.objects["replicasets", name]["metadata"].get("annotations") or {}
            self._change_set(name, {"annotations": {**notes, **self._bounds(obj)}})
            if name == current or not _size(obj):
                self._resize(obj, name, _size(obj))

    def _replace_old(self, obj: JSON, current: str, old: list[str]) -> None:
        """Let the current one have all its pods, and the others no more than are needed meanwhile (K5)."""
        desired = _size(obj)
        if (obj["spec"].get("strategy") or {}).get("type") == "Recreate":
            for name in old:
                self._resize(obj, name, 0)
        self._resize(obj, current, desired)
        self._keep(current)
        sets = self.objects
        ready = sum(map(self._is_ready, self._pods_of(sets["replicasets", current])))
        left = [(pod, name) for name in old for pod in self._pods_of(sets["replicasets", name])]
        # Those that do not serve go first.
        left.sort(key=lambda item: not self._is_ready(item[0]))
        stay = [name for _, name in left[: max(desired - ready, 0)]]
        for name in old:
            self._resize(obj, name, stay.count(name))

    def _forget_old(self, obj: JSON, old: list[str]) -> None:
        """Delete the oldest of those that have no pods, beyond the limit."""
        limit = obj["spec"].get("revisionHistoryLimit", _HISTORY_LIMIT)
        if len(old) > limit:
            idle = [name for name in old if not self._wants(name)]
            for name in sorted(idle, key=self._revision_of)[: len(old) - limit]:
                self.remove("replicasets", name)

    def _tell(self, obj: JSON, current: str | None) -> None:
        """Write the status, with what the Deployment's own annotations say."""
        uid = obj["metadata"]["uid"]
        counted = [0, 0, 0]
        for name, held in self.of("replicasets").items():
            if (controller_of(held) or {}).get("uid") == uid:
                self._keep(name)
                status = self.objects["replicasets", name]["status"]
                counted[0] += status["replicas"]
                counted[1] += status["readyReplicas"]
                counted[2] += status["replicas"] if name == current else 0
        status = {
            "observedGeneration": obj["metadata"]["generation"],
            "replicas": counted[0],
            "updatedReplicas": counted[2],
            "readyReplicas": counted[1],
            "availableReplicas": counted[1],
        }
        if obj["status"].get("collisionCount"):
            status["collisionCount"] = obj["status"]["collisionCount"]
        obj["status"] = status
        self._store("deployments", obj)

    def _change_set(self, name: str, meta: JSON, spec: JSON | None = None) -> None:
        """Change fields of a ReplicaSet; None takes one of its spec away."""
        held = self.objects["replicasets", name]
        new = {key: v for key, v in {**held["spec"], **(spec or {})}.items() if v is not None}
        if new == held["spec"] and meta.items() <= held["metadata"].items():
            return
        generation = held["metadata"]["generation"] + (new != held["spec"])
        metadata = {**held["metadata"], **meta, "generation": generation}
        self._store("replicasets", {**held, "metadata": metadata, "spec": new})


def _size(obj: JSON) -> int:
    return int(obj["spec"].get("replicas", 1))


def _controller(obj: JSON) -> JSON:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


@functools.lru_cache(maxsize=1000)
def bare(text: str) -> str:
    """A template's text without the label that tells ReplicaSets apart, and without what is empty, which says nothing."""
    template = json.loads(text)
    ((template.get("metadata") or {}).get("labels") or {}).pop(HASH, None)
    return json.dumps(_without_empty(template), sort_keys=True)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        filled = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item not in (None, {}, [])}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def selects(selector: JSON, labels: JSON) -> bool:
    """Whether a label selector of a workload finds these labels."""
    wanted: JSON = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(
        _holds(term, labels) for term in selector.get("matchExpressions") or []
    )


def _holds(term: JSON, labels: JSON) -> bool:
    there, operator = term["key"] in labels, term["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return bool(there == (operator == "Exists"))
    listed = there and labels[term["key"]] in (term.get("values") or [])
    return bool(listed == (operator == "In"))
