"""Nodes that join, leave and change in mid-drill, and how many of them are counted before it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.clusters.embedded.nodes import node
from harness.kube.testing import FakeCluster, run_virtual
from harness.model.nodes import Nodes, read_nodes
from harness.model.scenario import NodeStep
from harness.run.objects import RefusedError
from harness.run.preconditions import enough
from harness.run.verbs import VERBS
from harness.run.verbs.node import READY_WITHIN

NS = "drill-x"
BATCH = "dedicated=batch:NoSchedule"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class Seen:
    """What the recorder would have seen of the nodes; the kubelet of one that joins answers, or never does."""

    def __init__(self, cluster: FakeCluster, *, answers: bool) -> None:
        self.cluster, self.answers = cluster, answers
        self.state = self

    def world(self) -> dict[str, Any]:
        names = [obj["metadata"]["name"] for obj in self.cluster.objects("Node")]
        return {"nodes": [{"name": name, "ready": self.answers} for name in names]}

    async def wait_for(self, holds: Any, seconds: float) -> bool:
        await asyncio.sleep(0 if holds() else seconds)
        return bool(holds())


class Stage:
    def __init__(self, *, answers: bool = True) -> None:
        self.cluster = FakeCluster()
        for number in (1, 2):
            self.cluster.add(node(f"node-{number}"))
        client = self.cluster.client()
        self.context = SimpleNamespace(client=client, live=Seen(self.cluster, answers=answers))

    def act(self, *actions: NodeStep) -> list[str | None]:
        async def run() -> list[str | None]:
            return [await VERBS["node"](cast("Any", self.context), one) for one in actions]

        return run_virtual(run())

    def node(self, name: str) -> dict[str, Any]:
        found = self.cluster.get("Node", name)
        assert found is not None
        return found

    def pod(self, name: str, on: str) -> None:
        meta = {"name": name, "namespace": NS}
        self.cluster.add({"kind": "Pod", "metadata": meta, "spec": {"nodeName": on}})

    def pods(self) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.cluster.objects("Pod", NS)]


def test_who_joins_is_made_like_the_others_and_has_its_taints_from_the_beginning() -> None:
    stage = Stage()
    step = NodeStep("node-3", "joined", {"disk": "ssd"}, (BATCH,))
    assert stage.act(step) == ["node-3 joined"]
    made, other = stage.node("node-3"), stage.node("node-1")
    assert made["metadata"]["annotations"] == other["metadata"]["annotations"]
    (asked,) = stage.cluster.asked("create")
    assert asked.body["status"] == node("node-1")["status"]
    labels = other["metadata"]["labels"]
    own = {"kubernetes.io/hostname": "node-3", "disk": "ssd"}
    assert made["metadata"]["labels"] == labels | own
    batch = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    assert made["spec"]["taints"] == [batch]
    # Not a moment without them, in which pods could slip onto it.
    assert stage.cluster.asked("patch") == []


def test_a_name_that_is_taken_and_a_node_that_never_answers_are_refused() -> None:
    with pytest.raises(RefusedError, match="there is a node 'node-2' already"):
        Stage().act(NodeStep("node-2", "joined"))
    with pytest.raises(RefusedError, match=f"was not ready within {READY_WITHIN:g} s"):
        Stage(answers=False).act(NodeStep("node-3", "joined"))


def test_who_leaves_takes_its_pods_along_and_nobody_else_s() -> None:
    stage = Stage()
    for name, on in (("a", "node-1"), ("b", "node-2"), ("c", "node-2")):
        stage.pod(name, on)
    assert stage.act(NodeStep("node-2", "gone")) == ["node-2 gone, with 2 pods"]
    assert stage.cluster.get("Node", "node-2") is None
    assert stage.pods() == ["a"]
    order = [asked.path.rpartition("/")[2] for asked in stage.cluster.asked("delete")]
    # First the node: its DaemonSets would put new pods there otherwise.
    assert order == ["node-2", "b", "c"]
    with pytest.raises(RefusedError, match="there is no node 'node-2'"):
        stage.act(NodeStep("node-2", "gone"))
    with pytest.raises(RefusedError, match="there is no node 'node-2'"):
        stage.act(NodeStep("node-2", "cordoned"))


def test_a_node_changes_and_keeps_what_is_kubernetes_own() -> None:
    stage = Stage()
    stage.cluster.add({**node("node-3", {"disk": "hdd"}), "spec": {"taints": [NOT_READY]}})
    cordoned = NodeStep("node-3", "cordoned", {"disk": None, "zone": "a"}, ("gpu:NoExecute",))
    assert stage.act(cordoned) == ["node-3 cordoned"]
    found = stage.node("node-3")
    assert found["spec"]["unschedulable"] is True
    assert found["spec"]["taints"] == [NOT_READY, {"key": "gpu", "effect": "NoExecute"}]
    assert "disk" not in found["metadata"]["labels"]
    assert found["metadata"]["labels"]["zone"] == "a"
    stage.act(NodeStep("node-3", "uncordoned", taints=()))
    assert stage.node("node-3")["spec"] == {"unschedulable": False, "taints": [NOT_READY]}


def seen(name: str, *, schedulable: bool = True, ready: bool = True) -> dict[str, Any]:
    return {"name": name, "ready": ready, "schedulable": schedulable}


def test_nodes_that_the_scenario_taints_itself_count_and_others_do_not() -> None:
    nodes = [seen("node-1"), seen("node-2", ready=False), seen("node-3", schedulable=False)]
    wanted = Nodes(2, taints={"node-3": (BATCH,)})
    assert enough(nodes, wanted, otherwise=9) == (
        True,
        f"2 eligible nodes (node-3 has the taint {BATCH}), exactly 2 needed",
    )
    assert enough(nodes, Nodes(2), otherwise=9) == (False, "1 eligible nodes, exactly 2 needed")
    preferred = Nodes(2, taints={"node-3": ("dedicated=batch:PreferNoSchedule",)})
    assert not enough(nodes, preferred, otherwise=9)[0]
    assert enough([], Nodes(min=2), otherwise=9) == (True, "9 eligible nodes, at least 2 needed")


@pytest.mark.parametrize(
    "nodes",
    [
        Nodes(),
        Nodes(3, labels={"node-1": {"disk": "ssd"}}, taints={"node-3": (BATCH, "gpu:NoExecute")}),
    ],
)
def test_what_is_asked_of_nodes_survives_its_json(nodes: Nodes) -> None:
    assert read_nodes(nodes.to_json()) == nodes
    assert read_nodes({"count": "(redacted)", "labels": [1], "taints": {"node-1": 3}}) == Nodes()
