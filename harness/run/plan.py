"""What a run is going to do: which drills, on which cluster, with which subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.run.identity import DrillName

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
    cluster: str
    """As the user chose it, e.g. `embedded` or `context:dev`."""
    reproduce: str
    """The command that runs this drill again."""

    @property
    def name(self) -> DrillName:
        """The drill's id."""
        cluster = self.cluster.replace(":", "-")
        return DrillName(self.resolved.name, self.resolved.variant, self.subject, cluster)


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
