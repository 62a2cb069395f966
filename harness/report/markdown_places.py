"""Where pods are, as columns of the table of phases: one for each node where a workload has a pod per node, else one for all.

Under a DaemonSet the question is which node has whose pod; of a Knative Service, which revision has which share and how many pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from harness.report.text import esc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model.report import DrillReport, PhaseRow, PodPlace
    from harness.report.limits import Limits

_MOST_NODES: Final = 6
"""More columns than this nobody reads; then there is one for all pods."""
_NOWHERE: Final = "no node"


class Places(NamedTuple):
    """The last columns of the table."""

    headers: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    """For each row one cell per header."""


def places(report: DrillReport, shown: Sequence[PhaseRow], limits: Limits) -> Places:
    """Return the columns for these rows."""
    if any(row.revisions for row in shown):
        return Places(("revisions",), tuple((_revisions(row),) for row in shown))
    if _by_node(report):
        nodes = _nodes(report)
        return Places(
            tuple(esc(node) for node in nodes),
            tuple(tuple(_at(row, node, limits) for node in nodes) for row in shown),
        )
    return Places(("pods",), tuple((_pods(row.pods, limits),) for row in shown))


def written(report: DrillReport) -> str:
    """Return how the last columns are to be read, in a clause."""
    if any(row.revisions for row in report.rows):
        return (
            "a revision's share of the traffic is one number where the Service's spec (asked), its status (served) and its ingress "
            "(routed) agree"
        )
    if _by_node(report):
        return "each node has a column, in which pods are written as `app hash (state)`"
    return "pods are written as `app hash@node (state)`"


def _by_node(report: DrillReport) -> bool:
    return report.by_node and 1 < len(_nodes(report)) <= _MOST_NODES


def _nodes(report: DrillReport) -> list[str]:
    """Return the nodes of the cluster, and those that came later; at last a column for pods without one, if there is such a pod."""
    used = {pod.node for row in report.rows for pod in row.pods}
    known = list(report.environment.nodes)
    known += sorted(used - {"", *known})
    return [*known, _NOWHERE] if "" in used else known


def _at(row: PhaseRow, node: str, limits: Limits) -> str:
    here = [pod for pod in row.pods if (pod.node or _NOWHERE) == node]
    told = [esc(f"{pod.app} {pod.hash} ({pod.state})") for pod in here[: limits.pods]]
    return "<br>".join(told) or "-"


def _pods(pods: Sequence[PodPlace], limits: Limits) -> str:
    told = [esc(pod.text) for pod in pods[: limits.pods]]
    if len(pods) > limits.pods:
        told.append(f"… and {len(pods) - limits.pods} more")
    return "<br>".join(told) or "none"


def _revisions(row: PhaseRow) -> str:
    return "<br>".join(esc(one.text) for one in row.revisions) or "none"
