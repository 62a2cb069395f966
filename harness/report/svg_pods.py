"""What the picture shows of pods: which pod was where, when, and what it looked like. No drawing in here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.model.report import PhaseRow, PodPlace

ROLES: Final = ("primary", "target", "other")
_TERMINATING: Final = ", terminating"


class Look(NamedTuple):
    """What a pod looks like at a moment."""

    pending: bool
    ready: bool
    terminating: bool

    @property
    def text(self) -> str:
        """The look in words."""
        told = "no node" if self.pending else "ready" if self.ready else "not ready"
        return f"{told}{_TERMINATING}" if self.terminating else told


class Piece(NamedTuple):
    """A pod's look from one moment to another, in seconds after time zero."""

    since: float
    until: float
    look: Look


@dataclass(slots=True)
class Stay:
    """A pod on a node, or without one, for as long as that did not change."""

    pod: PodPlace
    """As it was first seen there."""
    pieces: list[Piece] = field(default_factory=list)

    @property
    def since(self) -> float:
        """When it was seen there first."""
        return self.pieces[0].since

    @property
    def until(self) -> float:
        """When it was seen there last."""
        return self.pieces[-1].until

    def add(self, since: float, until: float, look: Look) -> None:
        """Go on until a moment."""
        if self.pieces and self.pieces[-1].look == look:
            self.pieces[-1] = self.pieces[-1]._replace(until=until)
        else:
            self.pieces.append(Piece(since, until, look))


def look(pod: PodPlace) -> Look:
    """Return what a pod looks like."""
    return Look(not pod.node, pod.ready, pod.terminating)


def role(pod: PodPlace) -> str:
    """Return a pod's role as one of ROLES."""
    return pod.role if pod.role in ROLES else "other"


def stays(rows: Sequence[PhaseRow]) -> list[Stay]:
    """Return every stay of every pod, in the order in which they began.

    A row holds until the next one. A pod that went and came back under its name has a stay for each time.
    """
    found: list[Stay] = []
    current: dict[str, Stay] = {}
    ends = [*(row.t for row in rows[1:]), rows[-1].t] if rows else []
    for row, end in zip(rows, ends, strict=True):
        present = {}
        for pod in row.pods:
            stay = current.get(pod.name)
            if stay is None or stay.pod.node != pod.node:
                stay = Stay(pod)
                found.append(stay)
            stay.add(row.t, end, look(pod))
            present[pod.name] = stay
        current = present
    return found


def most_telling(everything: Sequence[Stay], most: int) -> tuple[list[Stay], int]:
    """Return the stays of at most so many pods, and how many pods are left out.

    Pods that ever had no node come first, then those of the primary and the target, then the others; of equals, the earlier.
    """
    ranks: dict[str, int] = {}
    for stay in everything:
        rank = ROLES.index(role(stay.pod)) if stay.pod.node else -1
        ranks[stay.pod.name] = min(rank, ranks.get(stay.pod.name, rank))
    kept = set(sorted(ranks, key=ranks.__getitem__)[:most])
    return [stay for stay in everything if stay.pod.name in kept], len(ranks) - len(kept)


def lanes(shown: Iterable[Stay], nodes: Sequence[str], most_empty: int) -> dict[str, list[Stay]]:
    """Return the stays by node: the cluster's nodes in their order, others by name, pods without a node (empty key) last.

    A node without any pod has a lane too as long as the cluster has at most `most_empty` nodes.
    """
    found: dict[str, list[Stay]] = {node: [] for node in nodes}
    by_node: dict[str, list[Stay]] = {}
    for stay in shown:
        by_node.setdefault(stay.pod.node, []).append(stay)
    homeless = by_node.pop("", [])
    for node in sorted(by_node, key=_counted):
        found[node] = by_node[node]
    if len(nodes) > most_empty:
        found = {node: there for node, there in found.items() if there}
    return {**found, "": homeless} if homeless else found


def _counted(name: str) -> list[tuple[int, str]]:
    """Return what sorts `node-9` before `node-10`."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]
