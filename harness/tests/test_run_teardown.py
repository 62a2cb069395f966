"""Teardown: only what the journal names, in the right order, each with a deadline."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.resource import CANARY, DEPLOYMENT, NAMESPACE
from harness.kube.testing import FakeCluster, run_virtual
from harness.run.identity import RUN_LABEL, labels
from harness.run.journal import Entry, Journal, ObjectKey
from harness.run.namespace import make_namespace
from harness.run.objects import Maker, RefusedError
from harness.run.teardown import tear_down

if TYPE_CHECKING:
    from pathlib import Path

MARKS = labels("run-1", "drill-1")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    return Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)


def _namespace(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def _canary(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": CANARY.api_version,
        "kind": "Canary",
        "metadata": {"name": "web", **metadata},
        "spec": {},
    }


def test_the_rollout_goes_before_the_namespace(journal: Journal) -> None:
    cluster = FakeCluster()

    async def drill() -> None:
        async with cluster.client() as client:
            entry = await make_namespace(client, journal, MARKS, "x", draw=lambda _: "drill-x")
            await Maker(client, journal, MARKS).apply(_canary(), entry.key.name)
            removal = await tear_down(client, journal, first_kinds=("Canary",))
            assert removal.problems == []
            assert removal.removed == {"Canary": 1, "Namespace": 1}

    run_virtual(drill())
    deleted = [asked.path for asked in cluster.asked("delete")]
    assert deleted[0].endswith("/canaries/web")
    assert deleted[-1].endswith("/namespaces/drill-x")
    assert journal.entries == []


def test_many_rollouts_are_removed_side_by_side(journal: Journal) -> None:
    cluster = FakeCluster()

    async def drill() -> float:
        loop = asyncio.get_running_loop()
        async with cluster.client() as client:
            entry = await make_namespace(client, journal, MARKS, "x", draw=lambda _: "drill-x")
            canaries = [
                {**_canary(), "metadata": {"name": f"web-{number}", "finalizers": ["x/slow"]}}
                for number in range(64)
            ]
            await Maker(client, journal, MARKS).apply_all(canaries, entry.key.name)

            async def finalise() -> None:
                """Let each finalizer take three seconds."""
                while left := cluster.objects("Canary"):
                    await asyncio.sleep(3)
                    for canary in left:
                        if "deletionTimestamp" in canary["metadata"]:
                            cluster.remove("Canary", canary["metadata"]["name"], "drill-x")

            finalising = asyncio.create_task(finalise())
            began = loop.time()
            removal = await tear_down(client, journal, first_kinds=("Canary",))
            await finalising
            assert removal.problems == []
            assert removal.removed == {"Canary": 64, "Namespace": 1}
            return loop.time() - began

    # One after the other they would take 64 times three seconds.
    assert run_virtual(drill()) < 40
    deleted = [asked.path.rpartition("/")[2] for asked in cluster.asked("delete", "canaries")]
    assert deleted[0] == "web-63"


def test_another_object_that_took_the_name_is_not_touched(journal: Journal) -> None:
    cluster = FakeCluster()
    cluster.add(_namespace("drill-x", labels=MARKS))
    journal.entries.append(
        Entry(ObjectKey("", "v1", "namespaces", "Namespace", "drill-x"), "drill-1", "another-uid")
    )

    async def drill() -> None:
        async with cluster.client() as client:
            await tear_down(client, journal)

    run_virtual(drill())
    assert cluster.get("Namespace", "drill-x") is not None
    assert cluster.asked("delete") == []


def test_an_announced_object_without_uid_is_ours_only_with_our_label(journal: Journal) -> None:
    cluster = FakeCluster()
    cluster.add(_namespace("drill-mine", labels={RUN_LABEL: "run-1"}))
    cluster.add(_namespace("drill-theirs", labels={RUN_LABEL: "run-2"}))
    for name in ("drill-mine", "drill-theirs"):
        journal.make(ObjectKey("", "v1", "namespaces", "Namespace", name), "drill-1")

    async def drill() -> None:
        async with cluster.client() as client:
            await tear_down(client, journal)

    run_virtual(drill())
    assert cluster.get("Namespace", "drill-mine") is None
    assert cluster.get("Namespace", "drill-theirs") is not None


def test_an_object_that_stays_is_a_problem_and_stays_in_the_journal(journal: Journal) -> None:
    cluster = FakeCluster()

    async def drill() -> list[str]:
        async with cluster.client() as client:
            await make_namespace(client, journal, MARKS, "x", draw=lambda _: "drill-x")
            cluster.add(
                _canary(namespace="drill-x", finalizers=["example.com/never"], labels=MARKS)
            )
            obj = cluster.get("Canary", "web", "drill-x")
            assert obj is not None
            key = ObjectKey(
                CANARY.group, CANARY.version, CANARY.plural, CANARY.kind, "web", "drill-x"
            )
            journal.made(journal.make(key, "drill-1"), obj["metadata"]["uid"])
            removal = await tear_down(client, journal, first_kinds=("Canary",), within=30)
            return removal.problems

    problems = run_virtual(drill())
    assert problems[0] == "Canary drill-x/web is still there 30 s after its deletion"
    assert "web" in [entry.key.name for entry in journal.entries]


@pytest.mark.parametrize(
    ("away", "problems"),
    [
        (40, []),
        (
            10_000,
            ["Namespace drill-x could not be removed within 60 s: the API server gave no answer"],
        ),
    ],
)
def test_a_server_that_is_away_for_a_while_is_waited_for(
    journal: Journal, away: int, problems: list[str]
) -> None:
    cluster = FakeCluster()

    async def drill() -> list[str]:
        async with cluster.client() as client:
            await make_namespace(client, journal, MARKS, "x", draw=lambda _: "drill-x")
            loop = asyncio.get_running_loop()
            back = loop.time() + away
            cluster.fail_next(0, times=10_000, match=lambda _: loop.time() < back)
            return (await tear_down(client, journal)).problems

    assert run_virtual(drill()) == problems
    assert len(journal.entries) == len(problems)


def test_a_taken_or_terminating_name_leads_to_another_name(journal: Journal) -> None:
    cluster = FakeCluster()
    cluster.add(_namespace("drill-one", finalizers=["example.com/stuck"]))
    names = iter(["drill-one", "drill-two"])

    async def drill() -> Entry:
        async with cluster.client() as client:
            await client.delete(NAMESPACE, "drill-one")
            return await make_namespace(client, journal, MARKS, "x", draw=lambda _: next(names))

    entry = run_virtual(drill())
    assert entry.key.name == "drill-two"
    # The name of the other one must not stay in the journal, or teardown would take it for ours.
    assert [e.key.name for e in journal.entries] == ["drill-two"]


def test_an_object_that_was_there_already_is_refused(journal: Journal) -> None:
    cluster = FakeCluster()
    cluster.add(_namespace("drill-x"))
    theirs = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "drill-x"},
        "spec": {"replicas": 3},
    }
    cluster.add(theirs)

    async def drill() -> None:
        async with cluster.client() as client:
            changed = {**theirs, "spec": {"replicas": 1}}
            await Maker(client, journal, MARKS).apply(changed, "drill-x")

    with pytest.raises(RefusedError, match="exists already and was not made by this drill"):
        run_virtual(drill())
    found = cluster.get("Deployment", "web", "drill-x")
    assert found is not None
    assert found["spec"]["replicas"] == 3
    assert journal.entries == []
