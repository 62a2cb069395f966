"""`drill sweep` against a fake API server: what dead runs left of their own and of what they shared; what lives or is used stays."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.client import KubeClient
from harness.kube.resource import CANARY, CRD
from harness.kube.testing import FakeCluster, run_virtual
from harness.run import sweep as sweeping
from harness.run.identity import MANAGED_BY, RUN_LABEL, labels
from harness.run.journal import Journal, ObjectKey
from harness.run.marks import mark, now
from harness.run.sweep_cluster import Found

if TYPE_CHECKING:
    from pathlib import Path

NAME = "canaries.flagger.app"
OLD = "2020-01-01T00:00:00Z"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster to which every kubeconfig leads."""
    fake = FakeCluster()
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "kubeconfig").touch()

    async def connect(*_: Any, **__: Any) -> KubeClient:
        return fake.client()

    monkeypatch.setattr(KubeClient, "connect", connect)
    return fake


@pytest.fixture
def where(tmp_path: Path) -> Any:
    """What `sweep` needs of a cluster."""

    @dataclasses.dataclass
    class Where:
        kubeconfig: Path
        context: str | None = None

    return Where(tmp_path / "kubeconfig")


def swept(where: Any = None, **more: Any) -> Found:
    result = run_virtual(sweeping.sweep(dry_run=more.pop("dry_run", False), cluster=where, **more))
    assert isinstance(result, Found)
    return result


def killed(tmp_path: Path) -> Journal:
    """Return the journal of a run whose process is gone."""
    journal = Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)
    text = journal.path.read_text("utf-8")
    journal.path.write_text(text.replace(f'"pid": {journal.reach.pid}', '"pid": 99999999'), "utf-8")
    return journal


def shared(**marks: str) -> dict[str, Any]:
    return {
        "apiVersion": CRD.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": NAME,
            "labels": {**MANAGED_BY, RUN_LABEL: "run-1"},
            "annotations": {mark(run.replace("_", "-")): value for run, value in marks.items()},
        },
        "spec": {
            "group": "flagger.app",
            "scope": "Namespaced",
            "names": {"plural": "canaries", "kind": "Canary"},
            "versions": [{"name": "v1beta1", "storage": True}],
        },
    }


def canary(namespace: str, **metadata: Any) -> dict[str, Any]:
    own = {"name": "web", "namespace": namespace, **metadata}
    return {"apiVersion": CANARY.api_version, "kind": "Canary", "metadata": own, "spec": {}}


def test_a_shared_object_whose_marks_are_all_dead_goes(cluster: FakeCluster, where: Any) -> None:
    cluster.add(shared(run_1=OLD))
    assert swept(where, dry_run=True).removed == [f"CustomResourceDefinition {NAME} (run run-1)"]
    assert cluster.get("CustomResourceDefinition", NAME) is not None
    assert swept(where).removed == [f"CustomResourceDefinition {NAME} (run run-1)"]
    assert cluster.get("CustomResourceDefinition", NAME) is None


def test_one_with_a_young_mark_is_spared_unless_the_user_is_certain(
    cluster: FakeCluster, where: Any
) -> None:
    cluster.add(shared(run_1=now(datetime.now(UTC) - timedelta(minutes=5))))
    assert swept(where).spared == [f"CustomResourceDefinition {NAME} (run run-1)"]
    assert swept(where, older_than=0).removed == [f"CustomResourceDefinition {NAME} (run run-1)"]


@pytest.mark.parametrize("whose", ["somebody's instance", "a living run"])
def test_one_that_is_used_stays_as_it_is(cluster: FakeCluster, where: Any, whose: str) -> None:
    if whose == "a living run":
        Journal.open("run-1", "fake", where.kubeconfig, None)
    else:
        cluster.add(canary("theirs"))
    before = cluster.add(shared(run_1=OLD))
    told = swept(where, older_than=0)
    assert told.removed == []
    assert cluster.get("CustomResourceDefinition", NAME) == before
    assert told.stays == (
        [f"CustomResourceDefinition {NAME} stays: there is 1 object of it"]
        if whose == "somebody's instance"
        else []
    )


def test_what_somebody_else_made_is_not_looked_at(cluster: FakeCluster, where: Any) -> None:
    theirs = shared()
    theirs["metadata"].pop("labels")
    before = cluster.add(theirs)
    swept(where, older_than=0)
    assert cluster.get("CustomResourceDefinition", NAME) == before


@pytest.mark.parametrize("where_made", ["a namespace of its own", "one that stays"])
def test_a_finalizer_of_the_killed_controller_is_taken_off_what_is_ours(
    cluster: FakeCluster, tmp_path: Path, where_made: str
) -> None:
    journal = killed(tmp_path)
    marks = labels("run-1", "drill-1")
    space = cluster.add(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": marks}}
    )
    if where_made == "a namespace of its own":
        key = ObjectKey("", "v1", "namespaces", "Namespace", "n")
        journal.made(journal.make(key, "drill-1"), space["metadata"]["uid"])
    finalizers = ["finalizer.flagger.app"]
    ours = cluster.add(canary("n", labels=marks, finalizers=finalizers))
    theirs = cluster.add(canary("theirs", finalizers=finalizers))
    parts = (CANARY.group, CANARY.version, CANARY.plural, CANARY.kind)
    journal.made(journal.make(ObjectKey(*parts, "web", "n"), "drill-1"), ours["metadata"]["uid"])
    told = swept()
    assert told.problems == []
    assert "Canary n/web: finalizer finalizer.flagger.app was taken off" in told.stays[0]
    assert "Canary n/web (run run-1)" in told.removed
    assert cluster.get("Canary", "web", "n") is None
    assert cluster.get("Canary", "web", "theirs") == theirs
    stays = where_made == "one that stays"
    assert (cluster.get("Namespace", "n") is not None) is stays
    assert not journal.path.exists()


def test_a_finalizer_of_others_is_left_and_named(cluster: FakeCluster, tmp_path: Path) -> None:
    journal = killed(tmp_path)
    marks = labels("run-1", "drill-1")
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    ours = cluster.add(canary("n", labels=marks, finalizers=["example.com/hold"]))
    parts = (CANARY.group, CANARY.version, CANARY.plural, CANARY.kind)
    journal.made(journal.make(ObjectKey(*parts, "web", "n"), "drill-1"), ours["metadata"]["uid"])
    told = swept()
    assert any("Canary n/web is still there" in line for line in told.problems)
    assert any("waits for finalizer example.com/hold" in line for line in told.explained)
    assert journal.path.exists()
