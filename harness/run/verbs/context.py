"""What a verb may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.model.actions import EVERY
from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON, RolloutKind
    from harness.run.live import Live
    from harness.run.objects import Maker
    from harness.run.outside import Outside
    from harness.run.subjects import Subjects
    from harness.run.traffic import TrafficProbe
    from harness.subjects.base import Subject


@dataclass(frozen=True, slots=True)
class Target:
    """An object that a step acts on."""

    resource: Resource
    name: str


@dataclass(frozen=True, slots=True)
class Context:
    """One drill, as its verbs see it."""

    client: KubeClient
    maker: Maker
    live: Live
    namespace: str
    manifests: Mapping[str, Sequence[JSON]]
    """File name -> its objects, rendered."""
    subjects: Subjects
    start_subject: Callable[[], Awaitable[None]]
    upgrade_subject: Callable[[str], Awaitable[str]]
    """Puts the next subject, of that name, in the place of the current one; returns what came of it."""
    upgrade_kubernetes: Callable[[str], Awaitable[str]]
    """The same for the control plane, by its version."""
    say: Callable[[str], None]
    """Takes a line of progress about this drill."""
    outside: Outside
    """The stand-ins for what is outside the cluster."""
    traffic: TrafficProbe | None = None
    """Requests to the pods, where the scenario has them."""

    @property
    def subject(self) -> Subject:
        """The current subject."""
        return self.subjects.current

    @property
    def rollout_kind(self) -> RolloutKind:
        """Which object carries the promotion."""
        return self.subject.facts.rollout

    def rollouts(self) -> list[JSON]:
        """Return the rollout objects of the manifests, in their order."""
        kind = self.rollout_kind.kind
        return [obj for several in self.manifests.values() for obj in several if _is(obj, kind)]

    async def targets(self, target: str, where: Mapping[str, str]) -> list[Target]:
        """Return what a step's target means: `workload`, `rollout`, `Kind/name`, or every one of `workloads` and `rollouts`.

        `where` chooses by the labels in the manifests, a workload by those of its rollout object. Raises RefusedError when the
        manifests or the cluster have no such thing.
        """
        if "/" in target:
            kind, _, name = target.partition("/")
            return [Target(await self.maker.resources.find_kind(kind), name)]
        chosen = self._chosen(where)
        if target not in EVERY:
            chosen = chosen[:1]
        of_workload = target.startswith("workload")
        return [
            await (self._workload(rollout) if of_workload else self._rollout(rollout))
            for rollout in chosen
        ]

    def _chosen(self, where: Mapping[str, str]) -> list[JSON]:
        every = self.rollouts()
        if not every:
            msg = f"the manifests hold no {self.rollout_kind.kind}, so there is neither a rollout nor its workload to act on"
            raise RefusedError(msg)
        chosen = [rollout for rollout in every if where.items() <= _labels(rollout).items()]
        if not chosen:
            wanted = ", ".join(f"{key}={value}" for key, value in where.items())
            msg = f"none of the {len(every)} {self.rollout_kind.kind} objects of the manifests has the labels {wanted}"
            raise RefusedError(msg)
        return chosen

    async def _rollout(self, rollout: JSON) -> Target:
        resource = await self.maker.resources.find(rollout["apiVersion"], rollout["kind"])
        return Target(resource, str(rollout["metadata"]["name"]))

    async def _workload(self, rollout: JSON) -> Target:
        reference = rollout["spec"]["targetRef"]
        api_version = str(reference.get("apiVersion", "apps/v1"))
        resource = await self.maker.resources.find(api_version, str(reference["kind"]))
        return Target(resource, str(reference["name"]))


def _is(obj: Mapping[str, Any], kind: str) -> bool:
    return obj.get("kind") == kind


def _labels(obj: Mapping[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
