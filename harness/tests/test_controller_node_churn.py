"""Nodes that join and leave while a DaemonSet is analysed: the revision is judged by its own pods, not by the cluster's size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core import conditions as cond
from harness.controller.core import spread
from harness.tests.controller_sim import Node, Sim, canary, daemonset, image, target_ref

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
DEADLINE = 20.0
ANALYSIS: JSON = {"interval": "2s", "threshold": 2, "iterations": 3}


def under_analysis(start: float = 0.5, *, nodes: int = 3) -> Sim:
    """A DaemonSet in its analysis, ready on all nodes; pods need `start` seconds."""
    sim = Sim(lambda _name, _template, _index: start)
    sim.nodes = {f"node-{number}": Node() for number in range(1, nodes + 1)}
    sim.add("daemonsets", daemonset())
    spec = {"targetRef": target_ref("DaemonSet"), "analysis": ANALYSIS}
    sim.add("canaries", canary(**spec, progressDeadlineSeconds=int(DEADLINE)))
    sim.run(until="Initialized")
    sim.settle()
    sim.edit("daemonsets", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(start + 0.5)
    assert ready(sim)["status"] == "True"
    return sim


def ready(sim: Sim) -> JSON:
    return cond.find(sim.canary["status"], cond.CANARY_READY) or {}


def kinds(sim: Sim) -> set[str]:
    return {entry["type"] for entry in sim.canary["status"].get("conditions") or ()}


def seconds_until_succeeded(sim: Sim) -> float:
    begin = sim.t
    sim.run(until="Succeeded")
    return sim.t - begin


def undisturbed() -> float:
    return seconds_until_succeeded(under_analysis())


def test_it_is_said_on_how_many_nodes_the_target_is_ready() -> None:
    assert ready(under_analysis())["message"].endswith(" is ready on 3 nodes")
    assert ready(under_analysis(nodes=1))["message"].endswith(" is ready on 1 node")


def test_a_node_that_joins_costs_its_pods_start_and_an_interval_and_holds_nothing() -> None:
    sim = under_analysis(start=1.0)
    sim.nodes["node-4"] = Node()
    sim.run(0.5)
    assert (ready(sim)["status"], ready(sim)["reason"]) == ("False", cond.RESCALED)
    took = seconds_until_succeeded(sim)
    assert took < undisturbed() + 5
    assert not {cond.UNSTEADY, cond.HELD} & kinds(sim)
    assert sim.ready_pods("web-primary") == 4


def test_a_node_that_leaves_costs_nothing() -> None:
    sim = under_analysis()
    del sim.nodes["node-2"]
    sim.run(0.5)
    assert ready(sim)["message"].endswith(" is ready on 2 nodes")
    assert seconds_until_succeeded(sim) < undisturbed() + 1
    assert sim.ready_pods("web-primary") == 2


def test_joins_one_after_the_other_beyond_the_deadline_fail_nobody() -> None:
    """Each new pod has a deadline of its own, also while others are waited for."""
    sim = under_analysis(start=12.0)
    for number in range(4, 9):
        sim.nodes[f"node-{number}"] = Node()
        sim.run(8.0)
    assert sim.canary["status"]["phase"] == "Progressing"
    sim.run(until="Promoting")
    assert cond.UNSTEADY not in kinds(sim)


def test_a_node_whose_pod_never_starts_ends_the_run_after_its_deadline() -> None:
    """The control of the others: nobody waits for ever."""
    sim = under_analysis()
    sim.delay = lambda name, _template, _index: None if name == "web" else 0.5
    sim.nodes["node-4"] = Node()
    begin = sim.t
    sim.run(until="Failed")
    assert DEADLINE <= sim.t - begin < DEADLINE + 2


def lose_a_pod(sim: Sim) -> None:
    sim.pods["web"][0].ready_at = None


def join_and_lose(sim: Sim) -> None:
    sim.nodes["node-4"] = Node()
    lose_a_pod(sim)


@pytest.mark.parametrize("happens", [lose_a_pod, join_and_lose])
def test_a_pod_that_is_lost_counts_as_ever_whoever_joins(happens: Callable[[Sim], None]) -> None:
    sim = under_analysis()
    happens(sim)
    sim.run(0.4)
    assert (ready(sim)["status"], ready(sim)["reason"]) == ("False", "NotReady")
    assert cond.UNSTEADY in kinds(sim)


def status(message: str, *, state: str = "True", reason: str = "Ready") -> JSON:
    entry = {"type": cond.CANARY_READY, "status": state, "reason": reason, "message": message}
    return {"conditions": [entry]}


def spread_over(desired: int, available: int, kind: str = "DaemonSet") -> JSON:
    counts = {"desiredNumberScheduled": desired, "numberAvailable": available}
    return {
        "kind": kind,
        "metadata": {"generation": 1},
        "status": {"observedGeneration": 1, **counts},
    }


@pytest.mark.parametrize(
    ("message", "desired", "available", "percent", "joined"),
    [
        ("DaemonSet web is ready on 3 nodes", 4, 3, 100, True),
        ("DaemonSet web is ready on 1 node and under analysis", 2, 1, 100, True),
        ("DaemonSet web is ready on 3 nodes", 4, 2, 100, False),
        ("DaemonSet web is ready on 3 nodes", 4, 2, 50, True),
        ("DaemonSet web is ready on 3 nodes", 3, 2, 100, False),
        ("DaemonSet web is ready", 4, 3, 100, False),
    ],
)
def test_a_join_is_told_from_a_loss_by_what_was_ready_before(
    message: str, desired: int, available: int, percent: int, *, joined: bool
) -> None:
    assert spread.joined(spread_over(desired, available), status(message), percent) is joined


def test_other_kinds_have_no_nodes() -> None:
    deployment = spread_over(4, 3, "Deployment")
    assert spread.words(deployment) == ""
    assert not spread.joined(deployment, status("Deployment web is ready on 3 nodes"), 100)
    assert not spread.moved(deployment, status("Deployment web is ready"))
