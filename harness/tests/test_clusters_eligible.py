"""Which nodes a drill counts on a cluster that is not ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.clusters.base import ChoiceError
from harness.clusters.eligible import eligible, parse_selector, told, why_out
from harness.model.nodes import Nodes
from harness.run.anonymise import Anonymiser
from harness.run.preconditions import eligible_nodes, enough

JSON = dict[str, Any]


def node(name: str, ready: str = "True", labels: JSON | None = None, **spec: Any) -> JSON:
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": f"host-{name}"} | (labels or {}),
        },
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


NODES = [
    node("c", labels={"disk": "ssd"}),
    node("a"),
    node("b", unschedulable=True, labels={"disk": "ssd"}),
    node("d", "Unknown"),
    node("e", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
    node("f", taints=[{"key": "soft", "effect": "PreferNoSchedule"}]),
]


def test_cordoned_tainted_and_silent_nodes_do_not_count() -> None:
    found = eligible(NODES)
    assert found.names == ("a", "c", "f")
    assert found.hostnames == ("host-a", "host-c", "host-f")
    assert found.left_out == {"b": "cordoned", "d": "not ready", "e": "tainted gpu=yes:NoSchedule"}
    assert told(found.left_out).startswith("b is cordoned, d is not ready, e is tainted gpu=yes")


def test_a_node_without_conditions_is_not_ready() -> None:
    assert why_out({"metadata": {"name": "x"}}) == "not ready"


def test_nodes_are_chosen_by_name_and_by_label() -> None:
    assert eligible(NODES, ("c", "b")).names == ("c",)
    assert eligible(NODES, (), "disk=ssd").names == ("c",)
    assert eligible(NODES, ("a", "c"), "disk=ssd").names == ("c",)
    assert set(eligible(NODES, ("c", "b")).left_out) == {"b"}


@pytest.mark.parametrize(
    ("names", "selector", "sentence"),
    [
        (("x", "a"), "", "--nodes: there is no node x; there are: a, b, c, d, e, f."),
        ((), "disk=hdd", "--node-selector disk=hdd: no node has these labels."),
        (("a",), "disk=ssd", "--node-selector disk=ssd: no node among a has these labels."),
        (("b",), "", "None of the nodes that were chosen takes pods: b is cordoned."),
        ((), "ssd", "--node-selector 'ssd': expected key=value"),
    ],
)
def test_a_choice_that_leaves_nothing_is_refused(
    names: tuple[str, ...], selector: str, sentence: str
) -> None:
    with pytest.raises(ChoiceError) as refused:
        eligible(NODES, names, selector)
    assert str(refused.value).startswith(sentence)


def test_nodes_that_cannot_be_listed_are_those_that_were_named() -> None:
    found = eligible(None, ("x", "y", "x"))
    assert (found.names, found.hostnames, found.seen) == (("x", "y"), ("x", "y"), False)
    assert eligible(None).names == ()
    with pytest.raises(ChoiceError, match="cannot be listed"):
        eligible(None, (), "a=b")


def test_a_selector_is_read() -> None:
    assert parse_selector(" a=b, c/d= ,e==f") == {"a": "b", "c/d": "", "e": "f"}
    assert parse_selector("") == {}


def view(name: str, *, schedulable: bool = True) -> JSON:
    return {"name": name, "ready": True, "schedulable": schedulable}


def test_a_drill_counts_the_nodes_that_it_may_use_only() -> None:
    nodes = [view("a"), view("b"), view("bought")]
    assert enough(nodes, Nodes(2), otherwise=9, among=("a", "b"))[0]
    assert not enough(nodes, Nodes(2), otherwise=9)[0]
    cordoned = [view("a", schedulable=False), view("b"), view("bought")]
    assert enough(cordoned, Nodes(2), otherwise=9, among=("a", "b")) == (
        False,
        "1 eligible nodes, exactly 2 needed",
    )


def test_names_are_compared_as_the_cluster_has_them_in_an_anonymised_drill_too() -> None:
    live = SimpleNamespace(
        now=lambda: 0.0, state=SimpleNamespace(world=lambda: {"nodes": [view("a"), view("c")]})
    )
    facts = SimpleNamespace(kind="existing", nodes=("a", "b"))
    anonymiser = Anonymiser()
    anonymiser.learn_node("a")
    parts: Any = SimpleNamespace(
        plan=SimpleNamespace(resolved=SimpleNamespace(nodes=Nodes(1))),
        place=SimpleNamespace(cluster=SimpleNamespace(facts=facts)),
        live=live,
        anonymiser=anonymiser,
    )
    found = eligible_nodes(parts)
    assert (found.holds, found.reason) == (True, "1 eligible nodes, exactly 1 needed")


def test_where_nobody_knows_a_number_that_is_needed_is_not_claimed() -> None:
    assert enough([], Nodes(2), otherwise=0) == (
        False,
        "how many nodes take pods is not known: name them with --nodes, exactly 2 needed",
    )
    assert enough([], Nodes(), otherwise=0)[0]
    assert enough([], Nodes(2), otherwise=2)[0]
