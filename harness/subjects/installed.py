"""The subject `installed`: a controller that is in the cluster already. It is observed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.kube.errors import KubeError
from harness.model.timeline import JSON, RolloutKind, SubjectFacts
from harness.subjects.bundled_objects import CAPABILITIES
from harness.subjects.detect_reader import look_around
from harness.subjects.flagger_capabilities import capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.kube.client import KubeClient
    from harness.subjects.base import Access, SubjectEvent
    from harness.subjects.detect import Controller

UNKNOWN: Final = "unknown"


class Installed:
    """Whatever acts on Canaries in the cluster. No drill starts, ends or replaces it, and it gets no objects of ours."""

    service_account = None

    def __init__(self) -> None:
        self.facts = facts_of(())
        self.controllers: tuple[Controller, ...] = ()
        """Those that act on the drill's Canaries, as far as they were seen."""

    async def obtain(self, progress: Callable[[str], None]) -> None:
        """There is nothing to get."""

    def meet(self, controllers: Sequence[Controller]) -> None:
        """Take note of those that were found already; then `look` does not look again."""
        self.controllers = tuple(controllers)
        self.facts = facts_of(self.controllers)

    async def look(self, client: KubeClient) -> None:
        """Find out which one it is; of what may not be read nothing is known, and drills run all the same."""
        if self.controllers:
            return
        try:
            seen = await look_around(client)
        except KubeError:
            return
        self.meet(seen.controllers)

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


def facts_of(controllers: Sequence[Controller]) -> SubjectFacts:
    """Return version and capabilities of what is installed: `unknown`, and those of every Flagger, unless all that are there agree."""
    versions = {one.version for one in controllers if one.kind == "flagger"}
    if controllers and {one.kind for one in controllers} == {"bundled"}:
        version = next((one.version for one in controllers), "") or UNKNOWN
        return SubjectFacts("installed", version, CAPABILITIES, RolloutKind())
    version = versions.pop() if len(versions) == 1 else ""
    return SubjectFacts("installed", version or UNKNOWN, capabilities(version), RolloutKind())
