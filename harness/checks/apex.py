"""What stands behind the Service that clients use: the pods that its selector selects at this moment, read off their labels.

Worked out when it is asked for: most observations in between do not concern it, and most expressions do not ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.checks.objects import POD, uid
from harness.checks.paths import condition, dig, labels_of, name_of
from harness.checks.pods import pod_hash
from harness.checks.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.checks.objects import Objects
    from harness.model.timeline import JSON

ONE: Final = "one"
"""Key of the only view."""
_SERVICE: Final = "Service"


class Apex:
    """The section `apex`: the Service of the main rollout, and who is ready behind it."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._name = ""
        self._stale = True
        self._section = Section()

    @property
    def section(self) -> Section:
        """The view."""
        if self._stale:
            self._section.put(ONE, self._view())
            self._stale = False
        return self._section

    def named(self, name: str) -> None:
        """Clients use the Service of that name."""
        self._stale |= name != self._name
        self._name = name

    def see(self, kind: str, name: str) -> None:
        """An object is in a new state, or gone."""
        self._stale |= kind == POD or (kind == _SERVICE and name == self._name)

    def _view(self) -> dict[str, Any]:
        service = self._objects.get(_SERVICE, self._name)
        pods = [] if service is None else list(self._behind(service))
        return {
            "exists": service is not None,
            "name": self._name,
            "ready": len(pods),
            "pods": sorted(name_of(pod) for pod in pods),
            "uids": sorted(uid(pod) for pod in pods),
            "hashes": sorted({pod_hash(pod) for pod in pods}),
        }

    def _behind(self, service: JSON) -> Iterator[JSON]:
        """Yield the pods that get traffic: ready, staying, and selected. A Service without a selector selects nothing."""
        selector = dig(service, "spec.selector", {})
        for pod in self._objects.of(POD).values() if selector else ():
            have = labels_of(pod)
            if (
                all(have.get(key) == value for key, value in selector.items())
                and condition(pod, "Ready").get("status") == "True"
                and dig(pod, "metadata.deletionTimestamp") is None
            ):
                yield pod
