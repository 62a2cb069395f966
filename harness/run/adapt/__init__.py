"""What the harness changes in a scenario's objects for the cluster where they go, and what it says about that.

Pure functions over raw objects, one file for each sort of change; who asks the cluster is `harness.run.existing`. A scenario is written
once and runs everywhere; on a cluster that others use, its pods have to stay where they may be, and must be in nobody's way.
Controllers that copy a pod template copy these changes along, so that a primary follows its target.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.run.adapt.group import in_group
from harness.run.adapt.nodes import on_nodes
from harness.run.adapt.pods import KNATIVE, kind_of, label, listed
from harness.run.adapt.priority import with_priority
from harness.run.adapt.security import unprivileged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.timeline import JSON


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What is different on one cluster; the default changes nothing."""

    nodes: tuple[str, ...] = ()
    """Values of `kubernetes.io/hostname` of the nodes that pods may use; none: any node."""
    priority_class: str = ""
    """Of pods that state no priority; empty: they get none."""
    images: tuple[str, ...] = ()
    """Images whose containers get a security context that Pod Security's `restricted` admits."""
    restricted: bool = False
    """Whether all containers get one, since others would not be admitted."""
    api_group: str = ""
    """Where Canaries are served for the bundled controller alone; empty: where Flagger reads them, too."""
    withheld: tuple[str, ...] = ()
    """API groups that a controller's Role says nothing about, since its user cannot give rights on them."""


def adapted(objects: Sequence[JSON], adaptation: Adaptation) -> tuple[list[JSON], list[str]]:
    """Return copies of rendered objects as this cluster gets them, and sentences about the changes that were made.

    What an object states itself is never changed.
    """
    copies = in_group([copy.deepcopy(obj) for obj in objects], adaptation.api_group)
    sentences: list[str] = []
    if adaptation.nodes:
        sentences += on_nodes(copies, adaptation.nodes)
    if adaptation.priority_class:
        sentences += with_priority(copies, adaptation.priority_class)
    if adaptation.images or adaptation.restricted:
        sentences += unprivileged(copies, None if adaptation.restricted else adaptation.images)
    knative = [label(obj) for obj in copies if kind_of(obj) == KNATIVE]
    if knative and adaptation.nodes:
        sentences.append(
            f"Knative {listed(knative)} was left as it is: Knative admits a node affinity only where a flag of its own allows it, so its "
            "pods may use any node."
        )
    return copies, sentences
