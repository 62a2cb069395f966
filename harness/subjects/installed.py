"""The subject `installed`: a controller that is in the cluster already. It is observed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.kube.errors import KubeError
from harness.kube.resource import Resource
from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.subjects.flagger_capabilities import capabilities, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.kube.client import KubeClient
    from harness.subjects.base import Access, SubjectEvent

UNKNOWN: Final = "unknown"
_FLAGGER: Final = "flagger"
_DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)


class Installed:
    """Whatever acts on Canaries in the cluster. No drill starts, ends or replaces it, and it gets no objects of ours."""

    service_account = None

    def __init__(self) -> None:
        self.facts = SubjectFacts("installed", UNKNOWN, capabilities(""), RolloutKind())

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """There is nothing to get."""

    async def look(self, client: KubeClient) -> None:
        """Read its version from a Deployment called flagger, in whatever namespace; `unknown` when there is none to be seen."""
        try:
            deployments, _ = await client.list(
                _DEPLOYMENTS, field_selector=f"metadata.name={_FLAGGER}"
            )
        except KubeError:
            return  # who may not list Deployments everywhere can run drills all the same
        versions = {version for one in deployments if (version := version_of(one))}
        if len(versions) == 1:
            (version,) = versions
            self.facts = SubjectFacts("installed", version, capabilities(version), RolloutKind())

    def cluster_objects(self) -> list[JSON]:
        """Return nothing: its CRDs are there with it."""
        return []

    def namespace_objects(self, namespace: str) -> list[JSON]:  # noqa: ARG002 - the protocol's
        """Return nothing: it has rights of its own."""
        return []

    async def warm_up(self) -> None:
        """There is nothing to do."""

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:  # noqa: ARG002
        """Note that it is there; it runs already, or does not, and what it does will tell."""
        notify("started", f"{self.facts.name} {self.facts.version}")

    async def stop(self) -> None:
        """It goes on."""

    async def kill(self) -> None:
        """It goes on."""


def version_of(deployment: JSON) -> str:
    """Return the version of Flagger that a Deployment runs, by the tag of its container's image; empty when it does not say."""
    template: Any = deployment.get("spec", {}).get("template", {})
    for container in template.get("spec", {}).get("containers") or []:
        image, _, tag = str(container.get("image", "")).partition("@")[0].rpartition(":")
        if image.rsplit("/", 1)[-1] == _FLAGGER and numbers(tag):
            return tag.removeprefix("v")
    return ""
