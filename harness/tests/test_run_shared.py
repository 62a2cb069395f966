"""Objects that runs share on a cluster: joined or made, and removed by the last one to leave, whoever meets whom there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.resource import CRD, PRIORITY_CLASS
from harness.kube.testing import Asked, FakeCluster, run_virtual
from harness.run.identity import MANAGED_BY, RUN_LABEL, labels
from harness.run.journal import Journal, ObjectKey
from harness.run.marks import mark, marked, now, ours, users
from harness.run.objects import RefusedError
from harness.run.shared import Left, install_shared, remove_shared

if TYPE_CHECKING:
    from collections.abc import Callable
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


def serving() -> FakeCluster:
    """Return a cluster that serves a CRD as soon as somebody watches for it; the real one takes a second."""
    cluster = FakeCluster()

    def serve(asked: Asked) -> bool:
        if asked.verb == "list" and cluster.get("CustomResourceDefinition", NAME):
            cluster.update("CustomResourceDefinition", NAME, None, {"status": ESTABLISHED})
        return False

    cluster.fail_next(500, match=serve)
    return cluster


def install(cluster: FakeCluster, journal: Journal, kind: str = "existing") -> set[Any]:
    async def act() -> set[Any]:
        async with cluster.client() as client:
            return await install_shared(client, journal, [crd(status=ESTABLISHED)], "run-1", kind)

    return run_virtual(act())


def remove(cluster: FakeCluster, journal: Journal) -> Left:
    async def act() -> Left:
        async with cluster.client() as client:
            return await remove_shared(client, journal)

    return run_virtual(act())


def found(cluster: FakeCluster) -> dict[str, Any]:
    there = cluster.get("CustomResourceDefinition", NAME)
    assert there is not None
    return there


def another(journal: Journal, run: str = "run-2") -> Journal:
    """Return the journal of a run on the same machine."""
    return Journal.open(run, "fake", journal.path.parent / "kubeconfig", None)


def joined(cluster: FakeCluster, journal: Journal) -> set[Any]:
    async def act() -> set[Any]:
        async with cluster.client() as client:
            wanted = [crd(status=ESTABLISHED)]
            return await install_shared(client, journal, wanted, journal.reach.run, "existing")

    return run_virtual(act())


def when(
    cluster: FakeCluster,
    verb: str,
    then: Callable[[], None],
    number: int = 1,
    matches: Callable[[Asked], bool] = lambda _: True,
) -> None:
    """Do something a moment before the request number `number` of its verb arrives."""
    left = number

    def look(asked: Asked) -> bool:
        nonlocal left
        if asked.verb == verb and matches(asked):
            left -= 1
            if left == 0:
                then()
        return False

    cluster.fail_next(500, match=look)


def test_one_that_is_there_is_neither_changed_nor_removed(journal: Journal) -> None:
    cluster = FakeCluster()
    before = cluster.add(crd(status=ESTABLISHED))
    assert install(cluster, journal) == set()
    assert remove(cluster, journal) == Left()
    assert found(cluster) == before


@pytest.mark.parametrize("marks", [MANAGED_BY, {RUN_LABEL: "run-1"}])
def test_half_of_our_labels_does_not_make_it_ours(journal: Journal, marks: dict[str, str]) -> None:
    cluster = FakeCluster()
    body = crd(status=ESTABLISHED)
    body["metadata"]["labels"] = dict(marks)
    before = cluster.add(body)
    assert not ours(before)
    assert install(cluster, journal) == set()
    assert found(cluster) == before


def test_one_that_another_made_a_moment_before_is_not_ours(journal: Journal) -> None:
    cluster = FakeCluster()

    def make() -> None:
        cluster.add(crd(status=ESTABLISHED))

    when(cluster, "create", make)
    assert install(cluster, journal) == set()
    assert journal.entries == []
    remove(cluster, journal)
    assert marked(found(cluster)) == {}


def test_one_that_is_never_served_is_an_error_with_its_name(journal: Journal) -> None:
    cluster = FakeCluster()
    cluster.add(crd())
    with pytest.raises(RefusedError, match=f"{NAME} was not served within 15 s"):
        install(cluster, journal)


def test_what_an_embedded_cluster_has_belongs_to_it(journal: Journal) -> None:
    cluster = serving()
    assert install(cluster, journal, "embedded") == set()
    assert journal.entries == []
    # So that a run which takes it for somebody's cluster neither marks nor removes it.
    assert not ours(found(cluster))
    assert marked(found(cluster)) == {}


def test_ours_has_a_mark_and_goes_when_nobody_needs_it(journal: Journal) -> None:
    cluster = serving()
    (key,) = install(cluster, journal)
    assert key == (CRD.group, CRD.plural, "", NAME)
    assert list(marked(found(cluster))) == ["run-1"]
    (entry,) = journal.entries
    assert entry.uid == found(cluster)["metadata"]["uid"]
    assert remove(cluster, journal).removed == [f"CustomResourceDefinition {NAME}"]
    assert cluster.get("CustomResourceDefinition", NAME) is None
    assert journal.entries == []


def test_the_last_run_to_leave_removes_it_whoever_made_it(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)
    second = another(journal)
    assert joined(cluster, second) != set()
    assert list(marked(found(cluster))) == ["run-1", "run-2"]
    (stays,) = remove(cluster, journal).stays
    assert stays == f"CustomResourceDefinition {NAME} stays: run run-2 is using it"
    assert list(marked(found(cluster))) == ["run-2"]
    assert journal.entries == []
    assert remove(cluster, second).removed == [f"CustomResourceDefinition {NAME}"]
    assert cluster.get("CustomResourceDefinition", NAME) is None


def test_a_run_that_joins_in_the_moment_of_the_deletion_wins(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)

    def join() -> None:
        marks = {mark("run-2"): now()}
        cluster.update("CustomResourceDefinition", NAME, None, {"metadata": {"annotations": marks}})

    when(cluster, "delete", join)
    assert "run run-2 is using it" in remove(cluster, journal).stays[0]
    assert list(marked(found(cluster))) == ["run-2"]


def test_of_two_that_leave_at_once_one_removes_it(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)
    second = another(journal)
    joined(cluster, second)

    def leave() -> None:
        annotations = {mark("run-2"): None}
        change = {"metadata": {"annotations": annotations}}
        cluster.update("CustomResourceDefinition", NAME, None, change)

    # Both have seen each other's mark; the second one takes its own away a moment earlier.
    when(cluster, "patch", leave)
    assert remove(cluster, journal).removed == [f"CustomResourceDefinition {NAME}"]
    assert cluster.get("CustomResourceDefinition", NAME) is None


def test_a_run_that_finds_it_being_deleted_waits_and_makes_it_anew(journal: Journal) -> None:
    cluster = serving()
    body = crd(status=ESTABLISHED)
    body["metadata"] |= {
        "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
        "labels": {**MANAGED_BY, RUN_LABEL: "run-0"},
    }
    old = cluster.add(body)

    async def act() -> None:
        async with cluster.client() as client:
            await client.delete(CRD, NAME)
            joining = asyncio.create_task(
                install_shared(client, journal, [crd(status=ESTABLISHED)], "run-1", "existing")
            )
            await asyncio.sleep(5)
            assert not joining.done()
            cluster.remove("CustomResourceDefinition", NAME)
            assert await joining != set()

    run_virtual(act())
    assert found(cluster)["metadata"]["uid"] != old["metadata"]["uid"]
    assert list(marked(found(cluster))) == ["run-1"]


def test_a_deletion_between_the_look_and_the_mark_is_seen(journal: Journal) -> None:
    cluster = serving()
    body = crd(status=ESTABLISHED)
    body["metadata"]["labels"] = {**MANAGED_BY, RUN_LABEL: "run-0"}
    old = cluster.add(body)
    when(cluster, "patch", lambda: cluster.remove("CustomResourceDefinition", NAME))
    assert install(cluster, journal) != set()
    assert found(cluster)["metadata"]["uid"] != old["metadata"]["uid"]
    (entry,) = journal.entries
    assert entry.uid == found(cluster)["metadata"]["uid"]


def test_one_that_does_not_go_is_an_error_that_names_it(journal: Journal) -> None:
    cluster = serving()
    body = crd(status=ESTABLISHED)
    body["metadata"] |= {"finalizers": ["example.com/never"]}
    cluster.add(body)

    async def act() -> None:
        async with cluster.client() as client:
            await client.delete(CRD, NAME)
            await install_shared(client, journal, [crd()], "run-1", "existing")

    with pytest.raises(RefusedError, match=f"{NAME} is being deleted by somebody"):
        run_virtual(act())


def test_ours_stays_while_an_object_of_it_exists(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)
    canary = {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "web", "namespace": "theirs"},
    }
    cluster.add(canary)
    (sentence,) = remove(cluster, journal).stays
    assert sentence.endswith("stays: there is 1 object of it")
    # It is theirs from now on: the next run uses it, and does not remove it even when it is used no more.
    assert not ours(found(cluster))
    assert install(cluster, another(journal)) == set()
    assert marked(found(cluster)) == {}
    assert journal.entries == []


def test_what_the_runs_own_leftovers_need_stays_for_the_sweep_that_takes_those(
    journal: Journal,
) -> None:
    cluster = serving()
    install(cluster, journal)
    stuck = {"apiVersion": "flagger.app/v1beta1", "kind": "Canary"}
    cluster.add({**stuck, "metadata": {"name": "web", "namespace": "drill-x"}})
    entry = journal.make(ObjectKey("", "v1", "namespaces", "Namespace", "drill-x"), "drill")
    (problem,) = remove(cluster, journal).problems
    assert "stays as long as what its drills left" in problem
    assert list(marked(found(cluster))) == ["run-1"]
    cluster.remove("Canary", "web", "drill-x")
    journal.gone(entry)
    assert remove(cluster, journal).removed == [f"CustomResourceDefinition {NAME}"]


def test_a_run_that_was_killed_before_it_had_the_mark_is_swept(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)
    killed = another(journal)
    killed.make(ObjectKey(CRD.group, CRD.version, CRD.plural, CRD.kind, NAME))
    assert remove(cluster, killed).stays
    assert killed.entries == []
    assert list(marked(found(cluster))) == ["run-1"]


def test_marks_of_the_dead_do_not_count_and_go(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)
    long_ago = now(datetime.now(UTC) - timedelta(days=1))
    marks = {mark("run-dead"): long_ago, mark("run-seen"): long_ago}
    cluster.update("CustomResourceDefinition", NAME, None, {"metadata": {"annotations": marks}})
    other = {"name": "drill-other", "labels": labels("run-seen", "x")}
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": other})
    assert "run run-seen is using it" in remove(cluster, journal).stays[0]
    assert list(marked(found(cluster))) == ["run-seen"]


@pytest.mark.parametrize(
    ("age", "seen", "counts"),
    [(60, set(), True), (7100, set(), True), (7300, set(), False), (7300, {"run-2"}, True)],
)
def test_a_mark_counts_while_it_is_young_or_its_run_is_seen(
    age: int,
    seen: set[str],
    counts: bool,  # noqa: FBT001
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    came = now(at - timedelta(seconds=age))
    obj = {"metadata": {"annotations": {mark("run-1"): came, mark("run-2"): came, "other": came}}}
    assert users(obj, me="run-1", at=at, seen=seen) == ["run-2"] * counts


def test_a_mark_without_a_readable_time_counts() -> None:
    obj = {"metadata": {"annotations": {mark("run-2"): "yesterday"}}}
    assert users(obj, me="run-1", at=datetime.now(UTC), seen=()) == ["run-2"]


def test_a_priority_class_is_shared_too_and_stays_while_pods_have_it(journal: Journal) -> None:
    cluster = FakeCluster(PRIORITY_CLASS)
    obj = {
        "apiVersion": PRIORITY_CLASS.api_version,
        "kind": "PriorityClass",
        "metadata": {"name": "rollout-drill"},
        "value": -1000,
    }

    def pod(name: str, priority: str) -> None:
        metadata = {"name": name, "namespace": "theirs"}
        spec = {"priorityClassName": priority}
        cluster.add({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def both() -> tuple[Left, Left]:
        async with cluster.client() as client:
            await install_shared(client, journal, [obj], "run-1", "existing")
            pod("a", "rollout-drill")
            pod("b", "other")
            first = await remove_shared(client, journal)
            cluster.remove("Pod", "a", "theirs")
            await install_shared(client, journal, [obj], "run-1", "existing")
            return first, await remove_shared(client, journal)

    used, unused = run_virtual(both())
    assert used.stays == ["PriorityClass rollout-drill stays: 1 pods have it"]
    assert unused.removed == ["PriorityClass rollout-drill"]


def test_one_that_may_not_be_removed_stays_in_the_journal(journal: Journal) -> None:
    cluster = serving()
    install(cluster, journal)
    cluster.forbid("delete", "customresourcedefinitions")
    (problem,) = remove(cluster, journal).problems
    assert "could not be removed" in problem
    assert len(journal.entries) == 1
