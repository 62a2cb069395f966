"""What checks see of Services, worked out when it is asked for: only few of the observations in between concern it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.checks.objects import REPLICASET
from harness.checks.paths import dig, labels_of
from harness.checks.section import Section
from harness.checks.surroundings import service_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.checks.objects import Objects

Labels = dict[str, str]
_REVISION: Final = "pod-template-hash"


class ServiceViews:
    """The section `services`."""

    def __init__(self, objects: Objects, suffix: str, revision_of: Callable[[str], str]) -> None:
        """`revision_of` gives the hash of the revision that a workload is at, as far as it is known."""
        self._objects = objects
        self._revision_of = revision_of
        self._suffix = suffix
        # Worked out late and in any order, they are still told in the order in which they were seen.
        self._section = Section(order=lambda name: objects.place("Service", name))
        self._stale: set[str] = set()
        self._roles: dict[str, tuple[str, str]] = {}
        """Name of a Service -> its role, and the rollout that it serves."""
        self._rollouts: dict[str, tuple[str, str, str]] = {}
        """Name of a rollout object -> target, primary, apex."""
        self._serves: dict[str, str] = {}
        """Name of a workload -> its rollout object."""
        self._labels: dict[str, Labels] = {}
        """Name of a workload -> the labels of its pod template."""

    @property
    def section(self) -> Section:
        """The views."""
        for name in self._stale:
            service = self._objects.get("Service", name)
            if service is None:
                self._section.drop(name)
            else:
                role, rollout = self._roles.get(name, ("other", ""))
                self._section.put(name, service_view(service, role, list(self._templates(rollout))))
        self._stale.clear()
        return self._section

    def _templates(self, rollout: str) -> Iterator[tuple[str, Labels]]:
        """Yield roles with the labels of the pods that have them: those of one rollout, or of all."""
        chosen = [self._rollouts[rollout]] if rollout else list(self._rollouts.values())
        for target, primary, _ in chosen:
            serving = self._labels.get(primary)
            if serving is not None:
                yield "primary", serving
            # After a restoration the target owns the pods that serve: they are told as what they are to clients.
            own = self._labels.get(target)
            lent = self._objects.kept.named(primary) and _same_pods(serving, own)
            if own is not None and not lent:
                yield "target", own
        for name in self._objects.kept_by(rollout):
            yield "primary", labels_of(dig(self._objects.of(REPLICASET)[name], "spec.template", {}))

    def see(self, name: str) -> None:
        """A Service is in a new state, or gone."""
        self._stale.add(name)

    def rollout(self, name: str, target: str, primary: str, apex: str) -> None:
        """A rollout object says which workloads and which Service are its own."""
        names = target, primary, apex
        before = self._rollouts.get(name)
        if before == names:
            return
        if before is not None:
            for service in self._services(before[2]):
                self._roles.pop(service, None)
                self._stale.add(service)
        self._rollouts[name] = names
        self._serves[target] = self._serves[primary] = name
        for service, role in self._services(apex).items():
            self._roles[service] = role, name
        for workload in (target, primary):
            self._read(workload)
        self._touch(name)

    def workload(self, name: str) -> None:
        """A workload is in a new state, or gone."""
        if name in self._serves and self._read(name):
            self._touch(self._serves[name])
        keeper = self._objects.rollout_of(name)
        if keeper in self._rollouts:
            self._touch(keeper)

    def _services(self, apex: str) -> dict[str, str]:
        return {apex: "apex", f"{apex}{self._suffix}": "primary", f"{apex}-canary": "target"}

    def _read(self, workload: str) -> bool:
        found = self._objects.workload(workload)
        before = self._labels.get(workload)
        if found is None:
            self._labels.pop(workload, None)
            return before is not None
        labels = labels_of(dig(found[1], "spec.template", {}))
        if found[0] == "Deployment" and (current := self._revision_of(workload)):
            # Its pods have one label more than its template.
            labels = {**labels, _REVISION: current}
        self._labels[workload] = labels
        return labels != before

    def _touch(self, rollout: str) -> None:
        """Look again at the Services of a rollout, and at those that are nobody's: they may select anything."""
        self._stale.update(self._services(self._rollouts[rollout][2]))
        others = (name for name in self._objects.of("Service") if name not in self._roles)
        self._stale.update(others)


def _same_pods(one: Labels | None, other: Labels | None) -> bool:
    return bool(one and other) and (one or {}).get(_REVISION) == (other or {}).get(_REVISION)
