"""The CRD that the drills of a run share: made when it is missing, removed when nobody else needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.resource import CRD
from harness.kube.testing import FakeCluster, run_virtual
from harness.run.identity import labels
from harness.run.journal import Journal
from harness.run.objects import RefusedError
from harness.run.shared import install_shared, remove_shared

if TYPE_CHECKING:
    from pathlib import Path

NAME = "canaries.flagger.app"
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


def crd(**more: Any) -> dict[str, Any]:
    return {
        "apiVersion": CRD.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "flagger.app",
            "scope": "Namespaced",
            "names": {"plural": "canaries", "kind": "Canary"},
            "versions": [{"name": "v1beta1", "storage": True}],
        },
        **more,
    }


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    return Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)


def install(cluster: FakeCluster, journal: Journal, kind: str = "existing") -> set[Any]:
    async def act() -> set[Any]:
        async with cluster.client() as client:
            # What is served at once here takes the real server a second.
            return await install_shared(client, journal, [crd(status=ESTABLISHED)], "run-1", kind)

    return run_virtual(act())


def remove(cluster: FakeCluster, journal: Journal) -> list[str]:
    async def act() -> list[str]:
        async with cluster.client() as client:
            return await remove_shared(client, journal)

    return run_virtual(act())


def test_one_that_is_there_is_neither_changed_nor_removed(journal: Journal) -> None:
    cluster = FakeCluster()
    before = cluster.add(crd(status=ESTABLISHED))
    assert install(cluster, journal) == set()
    assert remove(cluster, journal) == []
    assert cluster.get("CustomResourceDefinition", NAME) == before


def test_one_that_another_run_made_a_moment_before_is_not_ours(journal: Journal) -> None:
    cluster = FakeCluster()
    before = cluster.add(crd(status=ESTABLISHED))
    # The look finds nothing, the creation comes too late.
    cluster.fail_next(404, match=lambda asked: asked.verb == "get")
    assert install(cluster, journal) == set()
    assert journal.entries == []
    remove(cluster, journal)
    assert cluster.get("CustomResourceDefinition", NAME) == before


def test_one_that_is_never_served_is_an_error_with_its_name(journal: Journal) -> None:
    cluster = FakeCluster()
    cluster.add(crd())
    with pytest.raises(RefusedError, match=f"{NAME} was not served within 15 s"):
        install(cluster, journal)


def made(cluster: FakeCluster, journal: Journal) -> None:
    """Make the CRD as a run does."""
    cluster.add(crd(status=ESTABLISHED))
    entry = journal.make(_key())
    found = cluster.get("CustomResourceDefinition", NAME)
    assert found is not None
    journal.made(entry, found["metadata"]["uid"])


def _key() -> Any:
    from harness.run.journal import ObjectKey

    return ObjectKey(CRD.group, CRD.version, CRD.plural, CRD.kind, NAME)


def test_ours_goes_when_nobody_needs_it(journal: Journal) -> None:
    cluster = FakeCluster()
    made(cluster, journal)
    assert remove(cluster, journal) == []
    assert cluster.get("CustomResourceDefinition", NAME) is None


def test_ours_stays_while_an_object_of_it_exists(journal: Journal) -> None:
    cluster = FakeCluster()
    made(cluster, journal)
    canary = {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "theirs"},
    }
    cluster.add(canary)
    (problem,) = remove(cluster, journal)
    assert problem.endswith("stays: 1 objects of it exist")
    assert cluster.get("CustomResourceDefinition", NAME) is not None


def test_ours_stays_while_another_run_has_begun(journal: Journal) -> None:
    cluster = FakeCluster()
    made(cluster, journal)
    other = {"name": "drill-other", "labels": labels("run-2", "x")}
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": other})
    (problem,) = remove(cluster, journal)
    assert problem.endswith("stays: another run is using it")
    assert cluster.get("CustomResourceDefinition", NAME) is not None
