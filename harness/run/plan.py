"""What a run is going to do: which drills, on which cluster, with which subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.clusters.addons import among
from harness.model.actions import HandbackStep, NodeStep, UpgradeStep
from harness.model.names import IN_CLUSTER, is_bundled
from harness.run.identity import DrillName
from harness.subjects.names import parse

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.scenario import Resolved


@dataclass(frozen=True, slots=True)
class Plan:
    """One drill that is to be run."""

    resolved: Resolved
    folder: Path
    """Where the scenario's manifests are."""
    subject: str
    """The one that it begins with."""
    cluster: str
    """As the user chose it, e.g. `embedded` or `context:dev`."""
    reproduce: str
    """The command that runs this drill again."""
    controller_image: str = ""
    """Of a bundled controller that runs as a pod; empty: one is made and loaded, where the cluster's nodes can be loaded."""

    @property
    def name(self) -> DrillName:
        """The drill's id."""
        cluster = self.cluster.replace(":", "-")
        subject = str(
            parse(self.subject)
        )  # of a given binary its file's name only: ids end up in reports
        return DrillName(self.resolved.name, self.resolved.variant, subject, cluster)

    @property
    def subjects(self) -> tuple[str, ...]:
        """All subjects in the order of their turns: the first one, and one for each step that upgrades to another."""
        return self.subject, *(a.subject for a in self._upgrades if a.subject is not None)

    @property
    def in_cluster(self) -> bool:
        """Whether one of its subjects runs as a pod that the drill makes."""
        return IN_CLUSTER in self.subjects

    @property
    def kubernetes(self) -> tuple[str, ...]:
        """The versions of Kubernetes that its steps upgrade to, in their order."""
        return tuple(a.kubernetes for a in self._upgrades if a.kubernetes is not None)

    @property
    def handbacks(self) -> tuple[str, ...]:
        """The versions of Flagger that its steps hand back to, e.g. `1.44.0`."""
        actions = (step.action for step in self.resolved.steps)
        names = (action.to for action in actions if isinstance(action, HandbackStep))
        return tuple(parse(name).version for name in names)

    @property
    def alone(self) -> bool:
        """Whether it needs a cluster of its own: it changes what drills on one cluster have in common.

        Nodes of a cluster that is not ours are never changed: there the drill is `unsupported`, and needs nothing.
        """
        changes = any(isinstance(step.action, NodeStep) for step in self.resolved.steps)
        return (changes and self.embedded) or bool(self._upgrades)

    @property
    def addons(self) -> tuple[str, ...]:
        """The add-ons among the features that it requires."""
        return among(self.resolved.requires)

    @property
    def embedded(self) -> bool:
        """Whether it runs on a cluster of ours, where add-ons are installed; elsewhere they are there or not."""
        return self.cluster.partition(":")[0] == "embedded"

    @property
    def slow(self) -> bool:
        """Whether it takes minutes, or needs programs that nobody asked for by choosing it among others."""
        own = self.resolved.subjects if self.resolved.subject else self.resolved.subjects[1:]
        others = any(name is None or not is_bundled(name) for name in own)
        versions = bool(self.kubernetes or self.resolved.kubernetes)
        return self.resolved.slow or others or versions

    @property
    def _upgrades(self) -> list[UpgradeStep]:
        actions = (step.action for step in self.resolved.steps)
        return [action for action in actions if isinstance(action, UpgradeStep)]


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is carried out; the same for all of its drills."""

    out: Path
    cluster: str = "embedded"
    keep: bool = False
    """Leave namespace and cluster alone afterwards, for a person to look at."""
    seed: int = 1
    binaries: str = "auto"
    jobs: int = 4
    """Drills at the same time on one cluster."""
    anonymise: bool = False
    """Replace names, nodes and registries in every output."""
    nodes: tuple[str, ...] = ()
    """Names of the nodes of an existing cluster that the drill's pods may use; none: all that take pods."""
    node_selector: str = ""
    """Labels that such nodes have, as `key=value,…`."""
    namespace: str = ""
    """A namespace of an existing cluster, which is there already and stays; empty: each drill makes one of its own."""
    image: str = ""
    """What workloads run on an existing cluster, instead of the public image."""
