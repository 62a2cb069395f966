"""What belongs to a drill in a namespace that others use too: what it made, and what that owns, and so on.

A controller makes its objects in the name of the rollout object, Kubernetes makes ReplicaSets and pods in the name of workloads; each says so
in its ownerReferences. Pure functions over metadata, as `harness.run.leftovers` lists it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from harness.run.identity import DRILL_LABEL, RUN_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.model.timeline import JSON
    from harness.run.leftovers import Key


def carries(metadata: JSON, run: str, drill: str) -> bool:
    """Whether an object has the labels of that very drill of that very run; two runs may have a drill of one name."""
    labels = metadata.get("labels") or {}
    return bool(labels.get(RUN_LABEL) == run and labels.get(DRILL_LABEL) == drill)


def owners(metadata: JSON) -> list[str]:
    """Return the UIDs in an object's ownerReferences."""
    return [str(one.get("uid", "")) for one in metadata.get("ownerReferences") or ()]


def family(
    objects: Mapping[Key, JSON], roots: Collection[str], run: str, drill: str
) -> dict[Key, str]:
    """Return what belongs to a drill, each with why.

    Args:
        objects: The metadata of what is there, with its kind.
        roots: UIDs of what the drill made, whether it is there any more or not.
        run: The run's id.
        drill: The drill's label value.
    """
    known = set(roots)
    why: dict[Key, str] = {}
    children: dict[str, list[Key]] = {}
    for key, metadata in objects.items():
        for owner in owners(metadata):
            children.setdefault(owner, []).append(key)
    for key, metadata in objects.items():
        if str(metadata.get("uid")) in known:
            why[key] = "made by the drill"
        elif carries(metadata, run, drill):
            why[key] = "carries the drill's labels"
    waiting = deque([*known, *(str(objects[key].get("uid")) for key in why)])
    while waiting:
        for key in children.get(waiting.popleft(), ()):
            if key not in why:
                why[key] = f"owned by {_owner(objects[key])}"
                waiting.append(str(objects[key].get("uid")))
    return why | _endpoints(objects, why)


def _owner(metadata: Mapping[str, Any]) -> str:
    names = (f"{one.get('kind')} {one.get('name')}" for one in metadata["ownerReferences"])
    return ", ".join(names)


def _endpoints(objects: Mapping[Key, JSON], why: Mapping[Key, str]) -> dict[Key, str]:
    """Endpoints have no owner: they have the name of their Service, and go a moment after it."""
    return {
        key: f"of Service {key[3]}"
        for key in objects
        if key[:2] == ("", "endpoints") and key not in why and ("", "services", *key[2:]) in why
    }
