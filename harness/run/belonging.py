"""What of a namespace that others use is recorded: the drill's own objects, and what these own.

Each type has a watch of its own, so that a pod may be seen before the ReplicaSet that owns it. What has an owner that is not known yet is
held back until it is, and then passed on in the order in which it was seen. Without I/O; the recorder asks for each thing that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from harness.run.family import carries, owners

if TYPE_CHECKING:
    from harness.model.timeline import JSON

Change = Literal["ADDED", "MODIFIED", "DELETED"]
Seen = tuple[Change, "JSON"]


@dataclass(slots=True)
class Belonging:
    """Sorts what is seen by whether it belongs to the drill."""

    run: str
    drill: str
    """The drill's label value."""
    _mine: set[str] = field(default_factory=set)
    """UIDs, those of objects that are gone too: what they owned goes after them."""
    _held: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)
    """UID of an owner that is not known -> what it owns by UID, each with what was seen of it."""

    def sort(self, change: Change, obj: JSON) -> list[Seen]:
        """Return what is to be recorded now: nothing, `obj`, or what waited for it as well.

        What has no namespace is everybody's, and recorded.
        """
        metadata = obj["metadata"]
        if not metadata.get("namespace"):
            return [(change, obj)]
        uid = str(metadata.get("uid"))
        of = _about(obj) or owners(metadata)
        if uid in self._mine or carries(metadata, self.run, self.drill) or self._mine & {*of}:
            return self._adopt(uid, [(change, obj)])
        for owner in of:
            waiting = self._held.setdefault(owner, {})
            if change == "DELETED":
                waiting.pop(uid, None)  # nobody will ask for it again
            else:
                # Most of it is other people's, so of each object the last state only.
                waiting[uid] = [(change if uid not in waiting else waiting[uid][0][0], obj)]
            if not waiting:
                del self._held[owner]
        return []

    def _adopt(self, uid: str, seen: list[Seen]) -> list[Seen]:
        self._mine.add(uid)
        told = list(seen)
        for child, waiting in self._held.pop(uid, {}).items():
            # It may wait for another owner as well.
            if child not in self._mine:
                told += self._adopt(child, waiting)
        return told


def _about(obj: JSON) -> list[str]:
    """Return the UID of what an event is about; empty for everything else."""
    about = obj.get("involvedObject") or obj.get("regarding")
    if obj.get("kind") != "Event" or not about:
        return []
    return [str(about.get("uid", ""))]
