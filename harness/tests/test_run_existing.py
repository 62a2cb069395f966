"""Before anything is made on a cluster that is not ours: what is found there, and what that changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.base import PUBLIC_IMAGE, ChoiceError, Cluster, ClusterError
from harness.kube.resource import PRIORITY_CLASS
from harness.kube.testing import FakeCluster
from harness.model.timeline import ClusterFacts
from harness.run import existing
from harness.run.adapt import Adaptation
from harness.run.adapt.priority import NO_PRIORITY, priority_class
from harness.run.existing import Prepared, Wanted, look, prepare
from harness.run.identity import labels
from harness.subjects.bundled import Bundled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.clusters.rights import Right

CRDS = tuple(Bundled().cluster_objects())
ROLES = tuple(Bundled().namespace_objects("drill"))


def facts(kind: str = "existing", **more: Any) -> ClusterFacts:
    return ClusterFacts(kind, "dev", "v1.35.4", ("a", "b"), **more)


def place(kind: str = "existing", **more: Any) -> Cluster:
    return Cluster("context:dev", facts(kind, **more), Path("nowhere"), "dev")


def cluster() -> FakeCluster:
    found = FakeCluster(PRIORITY_CLASS)
    for name, spec in (("a", {}), ("b", {}), ("c", {"unschedulable": True})):
        labels = {"kubernetes.io/hostname": f"host-{name}"}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        node = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": ready}
        found.add({"apiVersion": "v1", "kind": "Node", **node})
    return found


def prepared(there: FakeCluster, where: Cluster | None = None, **wanted: Any) -> Prepared:
    given = Wanted(**{"crds": CRDS, "roles": ROLES, **wanted})
    return asyncio.run(prepare(there.client(), where or place(), given))


def test_the_nodes_that_take_pods_are_counted_and_bound_to() -> None:
    got = prepared(cluster())
    assert got.cluster.facts.nodes == ("a", "b")
    assert got.adaptation.nodes == ("host-a", "host-b")
    assert got.cluster.facts.notes == ("2 nodes counted; left out: 1 cordoned.",)
    # Names of nodes are the user's: an anonymised report has to know all of them.
    assert ("c", "host-c") in got.names


def test_drill_pods_get_a_priority_that_is_made_with_the_crds() -> None:
    got = prepared(cluster())
    assert got.adaptation.priority_class == "rollout-drill"
    assert got.shared == (priority_class(),)


def test_a_priority_of_our_name_with_other_values_is_not_used() -> None:
    there = cluster()
    there.add({**priority_class(), "value": 1_000_000})
    got = prepared(there)
    assert (got.adaptation.priority_class, got.shared) == ("", ())
    assert NO_PRIORITY in got.cluster.facts.notes


def test_in_a_namespace_that_was_given_only_a_priority_that_is_there_is_used() -> None:
    there = cluster()
    there.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    _have_crds(there)
    assert prepared(there, namespace="mine").adaptation.priority_class == ""
    there.add(priority_class())
    assert prepared(there, namespace="mine").adaptation.priority_class == "rollout-drill"
    # One that other runs made for themselves goes with them.
    theirs = priority_class()
    theirs["metadata"]["labels"] = labels("another", "drill")
    there.add(theirs)
    assert prepared(there, namespace="mine").adaptation.priority_class == ""
    assert prepared(there).adaptation.priority_class == "rollout-drill"


def _have_crds(there: FakeCluster) -> None:
    for crd in CRDS:
        there.add(crd)


def test_a_namespace_that_is_restricted_or_not_there() -> None:
    there = cluster()
    _have_crds(there)
    with pytest.raises(ClusterError, match="namespace: there is no namespace mine"):
        prepared(there, namespace="mine")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": "mine", "labels": labels}
    there.add({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    assert prepared(there, namespace="mine").adaptation.restricted
    assert not prepared(there).adaptation.restricted


def test_without_rights_nothing_is_made_and_all_are_named_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(_client: object, rights: Iterable[Right]) -> dict[Right, bool]:
        return dict.fromkeys(rights, False)

    monkeypatch.setattr(existing, "ask", nothing)
    there = cluster()
    with pytest.raises(ClusterError) as refused:
        prepared(there)
    text = str(refused.value)
    assert text.startswith("No drill can run on context:dev, and nothing was made there. Missing: ")
    for right in (
        "create, get, list, delete namespaces",
        "list, watch pods",
        "create serviceaccounts/token",
    ):
        assert right in text
    assert text.endswith("`drill doctor --cluster context:dev` shows everything.")
    assert {asked.method for asked in there.requests} == {"GET"}


def test_nodes_that_may_not_be_listed_are_those_that_were_named() -> None:
    there = cluster()
    there.forbid("list", "nodes")
    got = prepared(there, nodes=("x", "y"))
    assert got.cluster.facts.nodes == ("x", "y")
    assert got.adaptation.nodes == ("x", "y")
    assert "may not be listed" in got.cluster.facts.notes[0]
    none = prepared(there)
    assert none.cluster.facts.nodes == ()
    assert none.adaptation.nodes == ()


def test_nodes_that_are_not_there_are_the_users_mistake() -> None:
    with pytest.raises(ChoiceError, match="there is no node z; there are: a, b, c"):
        prepared(cluster(), nodes=("z",))


@pytest.mark.parametrize("kind", ["embedded", "kind", "k3s"])
def test_a_cluster_of_ours_is_not_even_asked(kind: str) -> None:
    there = cluster()
    where = place(kind, simulated="kwok v0.8.0" if kind == "embedded" else "")
    got = prepared(there, where)
    assert there.requests == []
    assert got.cluster is where
    assert got.shared == ()
    assert got.adaptation.nodes == ()
    assert (got.adaptation == Adaptation()) is (kind == "embedded")


def test_security_contexts_are_for_real_containers() -> None:
    assert PUBLIC_IMAGE in prepared(cluster()).adaptation.images
    simulated = place(simulated="kwok v0.8.0")
    assert prepared(cluster(), simulated).adaptation.images == ()


def test_an_image_of_the_users_own_is_taken_and_not_trusted_to_run_without_root() -> None:
    got = prepared(cluster(), image="registry.example/nginx:1")
    assert got.cluster.workload_image == "registry.example/nginx:1"
    assert "registry.example/nginx:1" not in got.adaptation.images
    ours = "registry.example/rollout-drill/workload:1"
    assert ours in prepared(cluster(), image=ours).adaptation.images


def test_the_survey_only_reads() -> None:
    there = cluster()
    asyncio.run(look(there.client(), Wanted(crds=CRDS, roles=ROLES)))
    made = [a for a in there.requests if a.method != "GET" and "accessreviews" not in a.path]
    assert made == []


def test_what_adds_nodes_is_in_the_notes() -> None:
    there = cluster()
    assert not any("can be added" in note for note in prepared(there).cluster.facts.notes)
    metadata = {"name": "karpenter", "namespace": "kube-system"}
    there.add({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})
    notes = prepared(there).cluster.facts.notes
    assert "Nodes can be added here while a drill runs, by Karpenter." in notes
