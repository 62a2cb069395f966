"""CRDs of a subject that takes over: replaced on a cluster of the drill's own, left alone elsewhere, and waited for."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.kube.testing import FakeCluster, run_virtual
from harness.run.crds import differs, replace_crds
from harness.run.objects import RefusedError
from harness.run.pool import foreign_crd
from harness.tests.test_run_shared import ESTABLISHED, NAME

KEY = ("apiextensions.k8s.io", "customresourcedefinitions", "", NAME)


def crd(*fields: str) -> dict[str, Any]:
    """Return a CRD whose status has these fields."""
    status = {"type": "object", "properties": {name: {"type": "string"} for name in fields}}
    schema = {"type": "object", "properties": {"metadata": {"type": "object"}, "status": status}}
    version = {"name": "v1beta1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "flagger.app",
            "scope": "Namespaced",
            "names": {"plural": "canaries", "kind": "Canary"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def cluster_with(*fields: str) -> FakeCluster:
    cluster = FakeCluster()
    cluster.add({**crd(*fields), "status": ESTABLISHED})
    return cluster


def fields_of(cluster: FakeCluster) -> set[str]:
    found = cluster.get("CustomResourceDefinition", NAME)
    assert found is not None
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return set(schema["properties"]["status"]["properties"])


def replace(cluster: FakeCluster, wanted: dict[str, Any], *, exclusive: bool = True) -> set[Any]:
    async def act() -> set[Any]:
        async with cluster.client() as client:
            return await replace_crds(client, [wanted], exclusive=exclusive)

    return run_virtual(act())


def test_it_is_replaced_so_that_what_the_new_one_lacks_is_gone() -> None:
    cluster = cluster_with("phase", "lastAppliedSpec")
    assert replace(cluster, crd("phase", "lastTrackedRevision")) == {KEY}
    assert fields_of(cluster) == {"phase", "lastTrackedRevision"}


def test_one_that_is_the_same_is_left_alone_on_any_cluster() -> None:
    cluster = cluster_with("phase")
    before = cluster.get("CustomResourceDefinition", NAME)
    assert replace(cluster, crd("phase"), exclusive=False) == {KEY}
    assert cluster.get("CustomResourceDefinition", NAME) == before


def test_elsewhere_another_one_is_never_replaced() -> None:
    cluster = cluster_with("phase")
    with pytest.raises(RefusedError, match="differs from the one that is needed"):
        replace(cluster, crd("phase", "more"), exclusive=False)
    assert fields_of(cluster) == {"phase"}
    written = [asked for asked in cluster.asked("update") if asked.params.get("dryRun") != "All"]
    assert written == []


def test_one_that_is_new_is_made() -> None:
    cluster = FakeCluster()
    # Nobody establishes it here, so that is what it is waited for.
    with pytest.raises(RefusedError, match=f"{NAME} was not served within 15 s"):
        replace(cluster, crd("phase"))
    assert fields_of(cluster) == {"phase"}


def test_the_schema_must_be_served_before_anything_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_with("phase")
    old = cluster.server._schemas("/openapi/v3/apis/flagger.app/v1beta1")
    stale = copy.deepcopy(old)
    monkeypatch.setattr(cluster.server, "_schemas", lambda _: stale)
    with pytest.raises(
        RefusedError,
        match=r"not served within 20 s; seen last: it differs in 1 fields, among them status\.more",
    ):
        replace(cluster, crd("phase", "more"))


def test_a_conflict_with_the_writer_of_its_status_is_tried_again() -> None:
    cluster = cluster_with("phase")
    cluster.fail_next(
        409, match=lambda asked: asked.verb == "update" and not asked.params.get("dryRun")
    )
    replace(cluster, crd("phase", "more"))
    assert fields_of(cluster) == {"phase", "more"}


@pytest.mark.parametrize(("wanted", "expected"), [(("phase",), False), (("phase", "more"), True)])
def test_a_warm_cluster_with_another_subjects_crd_does_not_suit(
    wanted: tuple[str, ...], *, expected: bool
) -> None:
    cluster = cluster_with("phase")

    async def act() -> tuple[bool, str]:
        async with cluster.client() as client:
            return await differs(client, crd(*wanted)), await foreign_crd(client, [crd(*wanted)])

    differing, why = run_virtual(act())
    assert differing is expected
    assert ("that of another subject" in why) is expected


def test_a_warm_cluster_without_any_suits_everybody() -> None:
    async def act() -> str:
        async with FakeCluster().client() as client:
            return await foreign_crd(client, [crd("phase")])

    assert run_virtual(act()) == ""
