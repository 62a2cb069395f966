"""What a verb may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.run.objects import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from harness.kube.client import KubeClient
    from harness.kube.resource import Resource
    from harness.model.timeline import JSON, RolloutKind
    from harness.run.live import Live
    from harness.run.objects import Maker
    from harness.subjects.base import Subject


@dataclass(frozen=True, slots=True)
class Context:
    """One drill, as its verbs see it."""

    client: KubeClient
    maker: Maker
    live: Live
    namespace: str
    manifests: Mapping[str, Sequence[JSON]]
    """File name -> its objects, rendered."""
    subject: Subject
    start_subject: Callable[[], Awaitable[None]]
    say: Callable[[str], None]
    """Takes a line of progress about this drill."""

    @property
    def rollout_kind(self) -> RolloutKind:
        """Which object carries the promotion."""
        return self.subject.facts.rollout

    def _rollout(self) -> JSON:
        kind = self.rollout_kind.kind
        for objects in self.manifests.values():
            for obj in objects:
                if obj.get("kind") == kind:
                    return obj
        msg = f"the manifests hold no {kind}, so there is neither a rollout nor its workload to act on"
        raise RefusedError(msg)

    async def resolve(self, target: str) -> tuple[Resource, str]:
        """Return resource type and name of a step's target: `workload`, `rollout` or `Kind/name`.

        Raises RefusedError when the manifests or the cluster have no such thing.
        """
        if target == "rollout":
            obj = self._rollout()
            resource = await self.maker.resources.find(obj["apiVersion"], obj["kind"])
            return resource, str(obj["metadata"]["name"])
        if target == "workload":
            reference = self._rollout()["spec"]["targetRef"]
            api_version = str(reference.get("apiVersion", "apps/v1"))
            resource = await self.maker.resources.find(api_version, str(reference["kind"]))
            return resource, str(reference["name"])
        kind, _, name = target.partition("/")
        return await self.maker.resources.find_kind(kind), name
