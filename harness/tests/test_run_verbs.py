"""Verbs with many targets: which objects they choose, what is sent to each, and how many at a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.kube.testing import FakeCluster, run_virtual
from harness.model.scenario import ApplyStep, DeleteStep, PatchStep, ScaleStep, TemplatePatch
from harness.model.timeline import RolloutKind, SubjectFacts
from harness.run.identity import labels
from harness.run.journal import Journal
from harness.run.objects import Maker, RefusedError
from harness.run.together import AT_ONCE, together
from harness.run.verbs import VERBS
from harness.run.verbs.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NS = "drill-x"


def deployment(name: str, **more: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template, **more},
    }


def canary(name: str, target: str, **marks: str) -> dict[str, Any]:
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": name, "labels": marks},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    }


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}


MANIFESTS = {
    "all.yaml": [
        *(config("one"), deployment("one"), canary("first", "one", cell="a")),
        *(config("two"), deployment("two"), canary("second", "two", cell="b")),
        *(config("three"), deployment("three"), canary("third", "three", cell="a")),
    ]
}


class Stage:
    """A drill as far as verbs see it, on a fake cluster with everything applied."""

    def __init__(self, journal: Journal, manifests: dict[str, Any], outside: Any = None) -> None:
        self.cluster = FakeCluster()
        client = self.cluster.client()
        subject = SimpleNamespace(facts=SubjectFacts("bundled", "1", (), RolloutKind()))
        self.context = Context(
            client=client,
            maker=Maker(client, journal, labels("run-1", "drill-1")),
            live=cast("Any", None),
            namespace=NS,
            manifests=manifests,
            subjects=cast("Any", SimpleNamespace(current=subject)),
            start_subject=cast("Any", None),
            upgrade_subject=cast("Any", None),
            upgrade_kubernetes=cast("Any", None),
            say=print,
            outside=cast("Any", outside),
        )

    async def act(self, action: Any) -> None:
        await VERBS[action.VERB](self.context, action)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found = self.cluster.get(kind, name, NS)
        assert found is not None
        return found

    def changed(self, kind: str, holds: Callable[[dict[str, Any]], bool]) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.cluster.objects(kind, NS) if holds(obj)]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("DRILL_STATE_DIR", str(tmp_path))
    journal = Journal.open("run-1", "fake", tmp_path / "kubeconfig", None)
    return Stage(journal, MANIFESTS)


def acted(stage: Stage, *actions: Any) -> Stage:
    async def run() -> None:
        for action in (ApplyStep(("all.yaml",)), *actions):
            await stage.act(action)

    run_virtual(run())
    return stage


def scaled(obj: dict[str, Any]) -> bool:
    return bool(obj["spec"]["replicas"] == 5)


def test_one_workload_is_that_of_the_first_rollout(stage: Stage) -> None:
    acted(stage, ScaleStep("workload", 5))
    assert stage.changed("Deployment", scaled) == ["one"]


def test_workloads_are_those_of_every_rollout(stage: Stage) -> None:
    acted(stage, ScaleStep("workloads", 5))
    assert stage.changed("Deployment", scaled) == ["one", "three", "two"]


def test_where_chooses_workloads_by_the_labels_of_their_rollouts(stage: Stage) -> None:
    acted(stage, ScaleStep("workloads", 5, {"cell": "a"}))
    assert stage.changed("Deployment", scaled) == ["one", "three"]


def test_where_chooses_the_first_that_fits_for_a_single_target(stage: Stage) -> None:
    acted(stage, ScaleStep("workload", 5, {"cell": "b"}))
    assert stage.changed("Deployment", scaled) == ["two"]


def test_a_choice_that_nothing_fits_is_refused_with_the_labels(stage: Stage) -> None:
    with pytest.raises(
        RefusedError, match=r"none of the 3 Canary objects .* has the labels cell=z"
    ):
        acted(stage, ScaleStep("workloads", 5, {"cell": "z"}))


def test_a_template_patch_changes_each_template_and_keeps_the_rest(stage: Stage) -> None:
    change = TemplatePatch(annotations={"rev": "2"}, image="registry.example/web:2")
    acted(stage, PatchStep("workloads", template=change, where={"cell": "a"}))
    for name, image in (("one", "web:2"), ("two", "web:1"), ("three", "web:2")):
        template = stage.get("Deployment", name)["spec"]["template"]
        assert template["spec"]["containers"][0]["image"].endswith(image)
        assert ("annotations" in template.get("metadata", {})) == (image == "web:2")


def test_a_status_patch_goes_to_the_status_and_nowhere_else(stage: Stage) -> None:
    acted(stage, PatchStep("rollouts", status={"phase": "Failed"}))
    patches = [asked for asked in stage.cluster.asked("patch") if asked.path.endswith("/status")]
    assert len(patches) == 3
    assert all(asked.body == {"status": {"phase": "Failed"}} for asked in patches)
    assert stage.get("Canary", "second")["status"] == {"phase": "Failed"}
    assert stage.get("Canary", "second")["metadata"]["generation"] == 1


def test_a_deletion_can_leave_what_is_owned_behind(stage: Stage) -> None:
    acted(stage)
    owner = {
        "kind": "Deployment",
        "name": "one",
        "uid": stage.get("Deployment", "one")["metadata"]["uid"],
    }
    for name in ("orphan", "other"):
        stage.cluster.add(
            {
                "kind": "ReplicaSet",
                "metadata": {"name": name, "namespace": NS, "ownerReferences": [owner]},
            }
        )
    acted(stage, DeleteStep("Deployment/one", orphan=True))
    assert stage.cluster.get("Deployment", "one", NS) is None
    assert stage.get("ReplicaSet", "orphan")["metadata"]["ownerReferences"] == []
    deleted = stage.cluster.asked("delete")
    assert [asked.body["propagationPolicy"] for asked in deleted] == ["Orphan"]


def test_without_that_it_takes_along_what_it_owns(stage: Stage) -> None:
    acted(stage, DeleteStep("rollouts"))
    assert stage.cluster.objects("Canary", NS) == []
    policies = {asked.body["propagationPolicy"] for asked in stage.cluster.asked("delete")}
    assert policies == {"Background"}


# ---- many at a time


def test_the_objects_of_many_rollouts_are_applied_kind_by_kind_in_the_order_of_the_kinds(
    stage: Stage,
) -> None:
    acted(stage)
    plurals = [asked.path.split("/")[-2] for asked in stage.cluster.asked("patch")]
    assert plurals == ["configmaps"] * 3 + ["deployments"] * 3 + ["canaries"] * 3
    # One look at what is there for each kind, not one for each object.
    assert len(stage.cluster.asked("list")) == 3
    assert stage.cluster.asked("get") == []


def test_an_object_of_many_that_was_there_already_is_refused_and_nothing_is_made(
    stage: Stage,
) -> None:
    stage.cluster.add(
        {"kind": "Deployment", "metadata": {"name": "two", "namespace": NS}, "spec": {}}
    )
    with pytest.raises(RefusedError, match="Deployment drill-x/two exists already"):
        acted(stage)
    assert stage.cluster.asked("patch") == []


def test_applied_again_they_are_no_strangers(stage: Stage) -> None:
    acted(stage, ApplyStep(("all.yaml",)))
    assert len(stage.cluster.asked("patch")) == 18


def test_so_many_at_a_time_and_no_more() -> None:
    running, most, done = 0, 0, []

    async def act(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        done.append(item)

    async def run() -> float:
        await together(act, range(500))
        return asyncio.get_running_loop().time()

    took = run_virtual(run())
    assert most == AT_ONCE
    assert sorted(done) == list(range(500))
    assert took < 500 / AT_ONCE + 2


def test_the_first_failure_ends_it_and_is_raised_as_it_is() -> None:
    begun: list[int] = []

    async def act(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(1)
        if item == 1:
            msg = "no"
            raise RefusedError(msg)

    with pytest.raises(RefusedError, match="no"):
        run_virtual(together(act, range(100)))
    assert len(begun) <= 2 * AT_ONCE
