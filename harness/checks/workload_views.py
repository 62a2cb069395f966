"""What checks see of pods and workloads, kept up to date object by object.

A workload's view depends on its pods and ReplicaSets, a pod's on whom it belongs to and what that is to its rollout. Whoever calls
says what has changed; what depends on it is worked out again here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.checks import workloads
from harness.checks.objects import POD, REPLICASET
from harness.checks.paths import dig, name_of, owner_of
from harness.checks.pods import pod_view
from harness.checks.section import Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.checks.objects import Objects
    from harness.checks.section import View
    from harness.model.timeline import JSON

_RANK: Final = {kind: rank for rank, kind in enumerate(workloads.KINDS)}


class WorkloadViews:
    """The sections `pods` and `workloads`."""

    def __init__(self, objects: Objects, changed: Callable[[str, View | None], None]) -> None:
        """`changed` is called with the name of a workload whose view is another one now, and that view."""
        self.pods = Section()
        self.workloads = Section(order=self._place)
        self.roles: dict[str, str] = {}
        """Name of a workload -> `primary` or `target`; change it with `role`."""
        self.stuck: dict[str, View] = {}
        """Views of the pods that the scheduler finds no node for."""
        self._objects = objects
        self._changed = changed
        self._views: dict[str, View] = {}
        self._kinds: dict[str, str] = {}
        self._pods_of: dict[str, set[str]] = {}
        self._sets_of: dict[str, dict[str, None]] = {}
        self._owner_of_set: dict[str, str] = {}
        self._refused: dict[tuple[str, str], str] = {}
        self._keepers: dict[str, str] = {}
        """Name of a pod -> the ReplicaSet whose it is, if that is a primary itself."""

    def _place(self, name: str) -> tuple[int, int]:
        kind = self._kinds[name]
        return _RANK[kind], self._objects.place(kind, name)

    def get(self, name: str) -> View | None:
        """Return everything that is known of a workload."""
        return self._views.get(name)

    def role(self, name: str, role: str) -> None:
        """A workload is `primary` or `target` of a rollout from now on, or, with an empty text, nothing of that."""
        if self.roles.get(name, "") == role:
            return
        if role:
            self.roles[name] = role
        else:
            del self.roles[name]
        for pod in sorted(self._pods_of.get(name, set()).union(self._below(name))):
            self._refresh_pod(pod)
        self.refresh(name)

    def _below(self, name: str) -> list[str]:
        """Return the pods of a ReplicaSet, which a workload above it may have for its own."""
        return self._objects.pods_below(REPLICASET, name)

    def see(self, kind: str, obj: JSON, *, moved: bool) -> None:
        """A workload, a ReplicaSet or a pod is in a new state; `moved`: it belongs to somebody else than before."""
        name = name_of(obj)
        if kind == POD:
            self._refresh_pod(name)
            return
        if kind == "ReplicaSet":
            self._see_set(name, obj)
        if moved:
            for pod in self._objects.pods_below(kind, name):
                self._refresh_pod(pod)
        self.refresh(name)

    def gone(self, kind: str, name: str) -> None:
        """One of them was deleted."""
        if kind == POD:
            self._pod_gone(name)
            return
        if kind == "ReplicaSet":
            self._leave(name)
        self.refresh(name)

    def refuse(self, kind: str, name: str, message: str) -> None:
        """A workload may not create pods."""
        self._refused[kind, name] = message
        self.refresh(name)

    def refresh(self, name: str) -> None:
        """Work a workload's view out again."""
        found = self._objects.workload(name)
        if found is None:
            if self._views.pop(name, None) is not None:
                self.workloads.drop(name)
                self._changed(name, None)
            return
        kind, obj = found
        own = self._pods_of.get(name, set())
        if kind == REPLICASET:
            own = own.union(self._below(name))
        pods = sorted(own, key=lambda pod: self._objects.place(POD, pod))
        sets = self._objects.of("ReplicaSet")
        top = workloads.is_top(obj, self._objects.rollout_kind)
        role = "primary" if kind == REPLICASET and self._objects.serves(name) else "other"
        view = workloads.workload_view(
            obj,
            self.roles.get(name, role),
            [row for pod in pods if (row := self.pods.get(pod)) is not None],
            [sets[one] for one in self._sets_of.get(name, ()) if one in sets],
            self._refused.get((kind, name), ""),
        )
        if self._views.get(name) == view and top == (self.workloads.get(name) is not None):
            return
        if self._kinds.get(name, kind) != kind:
            self.workloads.drop(name)  # another kind has another place among them
        self._views[name] = view
        self._kinds[name] = kind
        if top:
            self.workloads.put(name, workloads.listed(view))
        else:
            self.workloads.drop(name)  # a Deployment's, which is told with that
        self._changed(name, view)

    def _refresh_pod(self, name: str) -> None:
        pod = self._objects.get(POD, name)
        if pod is None:
            return
        before = self.pods.get(name)
        app = self._objects.app(pod)
        keeper = self._objects.keeper(pod)
        view = pod_view(pod, app, "primary" if keeper else self.roles.get(app, "other"))
        changed = self.pods.put(name, view)
        self._keepers[name] = keeper
        if keeper and keeper != app:
            self.refresh(keeper)
        if not changed:
            return
        if view["unschedulable"]:
            self.stuck[name] = view
        else:
            self.stuck.pop(name, None)
        if before is not None and before["app"] != app:
            self._pods_of[before["app"]].discard(name)
            self.refresh(before["app"])
        self._pods_of.setdefault(app, set()).add(name)
        self.refresh(app)

    def _pod_gone(self, name: str) -> None:
        before = self.pods.get(name)
        if before is None:
            return
        self.pods.drop(name)
        self.stuck.pop(name, None)
        self._pods_of[before["app"]].discard(name)
        self.refresh(before["app"])
        keeper = self._keepers.pop(name, "")
        if keeper and keeper != before["app"]:
            self.refresh(keeper)

    def _see_set(self, name: str, obj: JSON) -> None:
        owner = owner_of(obj)
        above = "" if owner is None or owner[0] == self._objects.rollout_kind else owner[1]
        if self._owner_of_set.get(name, "") != above:
            self._leave(name)
        if above:
            self._owner_of_set[name] = above
            self._sets_of.setdefault(above, {})[name] = None
            self.refresh(above)

    def _leave(self, name: str) -> None:
        """A ReplicaSet does not belong to its workload any more."""
        above = self._owner_of_set.pop(name, "")
        if above:
            self._sets_of[above].pop(name, None)
            self.refresh(above)


def revision(obj: JSON) -> str:
    """Return the number of the revision that a Deployment is at, or an empty text."""
    return str(dig(obj, "metadata.annotations", {}).get(workloads.REVISION, ""))
