"""A cluster of a run, shared by the drills that run on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.run.adapt import Adaptation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.base import Cluster
    from harness.run.journal import Journal
    from harness.run.leftovers import Key, Listing
    from harness.run.signals import Stop
    from harness.subjects.detect import Controller


@dataclass(slots=True)
class Place:
    """Everything about the cluster that its drills have in common."""

    cluster: Cluster
    run: str
    journal: Journal
    before: Listing
    """What was there before the run made anything."""
    private: Path
    """For tokens and raw logs: mode 0700, never part of a report."""
    stop: Stop
    say: Callable[[str], None]
    """Takes a line of progress for the person who waits."""
    binaries: str = "auto"
    """Where the control plane's programs come from, for steps that upgrade it."""
    upgrading: bool = False
    """Whether its control plane is being replaced right now."""
    keep: bool = False
    anonymise: bool = False
    adaptation: Adaptation = field(default_factory=Adaptation)
    """What is changed in manifests for this cluster."""
    node_names: tuple[tuple[str, ...], ...] = ()
    """The names of each node of a cluster that is not ours, those that drills do not use among them."""
    observed: tuple[Controller, ...] = ()
    """Controllers that are there and act on the drills' Canaries: what the subject `installed` stands for."""
    namespace: str = ""
    """One that is there already and stays, in which the drills run one after the other; empty: each makes one of its own."""
    namespaces: set[str] = field(default_factory=set)
    """Of all drills of the run so far."""
    shared: set[Key] = field(default_factory=set)
    """Objects that stay until the last drill of the run is over."""
