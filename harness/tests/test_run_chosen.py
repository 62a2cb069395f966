"""What a user chooses on a cluster of his own, and replicas that follow from its nodes."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cli.main import main
from harness.clusters.base import ChoiceError
from harness.model.nodes import Nodes, read_nodes
from harness.model.outcome import ExitCode
from harness.run.chosen import Chosen, choose, follows_nodes
from harness.run.selection import select

SPREAD = "node-spread-blue-green"
OWN = "context:dev"


def chosen(cluster: str = OWN, *, image_given: bool = True, **given: Any) -> Chosen:
    every = {"nodes": None, "node_selector": None, "namespace": None, "image": None, **given}
    return choose(cluster, image_given=image_given, **every)


def test_choices_are_read_and_can_be_repeated() -> None:
    found = chosen(nodes="b, a,,b", node_selector="disk=ssd", namespace="mine", image="x:1")
    assert found == Chosen(("b", "a"), "disk=ssd", "mine", "x:1")
    assert found.arguments == [
        *("--nodes", "b,a", "--node-selector", "disk=ssd"),
        *("--namespace", "mine", "--image", "x:1"),
    ]
    assert Chosen().arguments == []


@pytest.mark.parametrize("cluster", ["embedded", "embedded:x", "kind", "kind:x", "k3s"])
@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("--nodes", {"nodes": "a"}),
        ("--node-selector", {"node_selector": "a=b"}),
        ("--namespace", {"namespace": "x"}),
        ("--image", {"image": "x"}),
    ],
)
def test_they_mean_nothing_on_a_cluster_of_ours(
    cluster: str, option: str, given: dict[str, Any]
) -> None:
    with pytest.raises(ChoiceError) as refused:
        chosen(cluster, **given)
    assert str(refused.value) == (
        f"{option} is for a cluster of your own (--cluster context:NAME); {cluster} is made by the harness."
    )


def test_an_image_of_the_environment_is_for_clusters_of_ones_own_only() -> None:
    assert chosen("embedded", image="x", image_given=False) == Chosen()
    assert chosen(OWN, image="x", image_given=False).image == "x"


def test_a_selector_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ChoiceError, match="--node-selector 'ssd': expected key=value"):
        chosen(node_selector="ssd")


@pytest.mark.parametrize(
    "arguments", ["--nodes a", "--node-selector a=b", "--namespace x", "--image x"]
)
def test_the_command_refuses_them(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", SPREAD, *arguments.split()])
    assert ended.value.code == ExitCode.USAGE
    assert "is for a cluster of your own" in capsys.readouterr().err


def test_replicas_follow_the_nodes_that_a_cluster_has() -> None:
    ((_, drill),) = select([f"{SPREAD}[with-key]"], [], eligible=5)
    assert drill.values["replicas"] == 5
    assert (drill.nodes.count, drill.nodes.min) == (5, None)
    assert "5 replicas" in drill.setup


def test_a_number_that_the_user_states_stays() -> None:
    ((_, drill),) = select([f"{SPREAD}[with-key]"], [], sets={"replicas": "3"}, eligible=5)
    assert drill.values["replicas"] == 3
    assert drill.nodes.count == 3
    ((_, same),) = select([f"{SPREAD}[with-key]"], [])
    assert same.values["replicas"] == 2


def test_a_scenario_that_does_not_ask_for_it_is_as_it_was() -> None:
    assert select(["canary-weights"], [], eligible=5)[0][1] == select(["canary-weights"], [])[0][1]


def test_who_asks_the_cluster() -> None:
    spread, other = (select([name], [])[0][1] for name in (SPREAD, "canary-weights"))
    assert follows_nodes([other, spread], OWN)
    assert not follows_nodes([other], OWN)
    assert not follows_nodes([spread], "embedded")


def test_the_number_per_node_is_in_the_recording_only_where_there_is_one() -> None:
    assert "replicasPerEligible" not in Nodes(2).to_json()
    given = Nodes(2, replicas_per_eligible=1)
    assert read_nodes(given.to_json()) == given
