"""When a warm cluster's nodes are those that a drill needs, and when a new one's are ready."""

from __future__ import annotations

from typing import Any

import pytest

from harness.clusters.embedded.nodes import node, otherwise, takes_pods
from harness.model.nodes import Nodes, taint, taint_text

BATCH = "dedicated=batch:NoSchedule"
NAMES = ("node-1", "node-2")
APART = Nodes(2, labels={"node-1": {"disk": "ssd"}}, taints={"node-2": (BATCH,)})
COPIED = {"beta.kubernetes.io/os": "linux"}


def cluster(wanted: Nodes = APART) -> list[dict[str, Any]]:
    """The nodes of a cluster made for that wish, as the control plane has them after a while."""
    return [
        node(name, {**wanted.labels.get(name, {}), **COPIED}, wanted.taints.get(name, ()))
        for name in NAMES
    ]


def test_a_cluster_that_was_made_for_the_same_wish_is_as_wanted() -> None:
    assert otherwise(cluster(), NAMES, APART) == ""
    assert otherwise(cluster(Nodes(2)), NAMES, Nodes(2)) == ""


@pytest.mark.parametrize(
    ("found", "wanted", "why"),
    [
        (cluster(), Nodes(2), "node-1 has other labels than the drill needs (disk)"),
        (cluster(Nodes(2)), APART, "node-1 has other labels than the drill needs (disk)"),
        (
            cluster(Nodes(2, taints={"node-2": (BATCH,)})),
            Nodes(2),
            f"node-2 has the taint {BATCH}, and the drill needs no taint",
        ),
        (
            cluster(Nodes(2)),
            Nodes(2, taints={"node-1": ("a:NoSchedule", "b=c:NoExecute")}),
            "node-1 has no taint, and the drill needs the taints a:NoSchedule, b=c:NoExecute",
        ),
        ([*cluster(), node("node-3")], APART, "its nodes are not those that it was made with"),
        (cluster()[:1], APART, "its nodes are not those that it was made with"),
    ],
)
def test_another_one_is_not_and_the_reason_is_said(
    found: list[dict[str, Any]], wanted: Nodes, why: str
) -> None:
    """Also when a person has changed a node by hand, or a drill that was kept has let one join."""
    assert otherwise(found, NAMES, wanted) == why


@pytest.mark.parametrize(
    ("taints", "ready", "takes"),
    [
        ((BATCH,), "True", True),
        ((), "True", False),
        ((BATCH, "node.kubernetes.io/not-ready:NoSchedule"), "True", False),
        ((BATCH,), "False", False),
    ],
)
def test_a_new_node_is_ready_with_its_taints_and_no_others(
    taints: tuple[str, ...], ready: str, *, takes: bool
) -> None:
    made = node("node-2", taints=taints)
    made["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    assert takes_pods(made, APART) is takes


@pytest.mark.parametrize("text", [BATCH, "gpu:NoExecute", "example.com/a=b.c:PreferNoSchedule"])
def test_taints_are_written_as_kubectl_does(text: str) -> None:
    assert taint_text(taint(text)) == text
