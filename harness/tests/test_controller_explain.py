"""`drill explain`: the row that applies, the comparisons behind it, and what the next pass does; from a cluster or a file."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from harness.controller.core import pruned
from harness.controller.core.change import Row
from harness.controller.core.phases import SKIPPED
from harness.controller.explain import NOT_COMPARED, SENTENCES, Explanation, explain
from harness.controller.explain_text import to_text
from harness.controller.look import world_of
from harness.controller.sources import SourceError, from_cluster, from_file
from harness.kube.errors import Forbidden
from harness.kube.testing import FakeCluster
from harness.tests.controller_handover import HandOver, annotation
from harness.tests.controller_sim import Sim, image, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JSON = dict[str, Any]


def saved(sim: Sim) -> list[JSON]:
    """Everything in the namespace, as `kubectl get -o yaml` would have it."""
    return copy.deepcopy([*sim.objects.values()])


def look(sim: Sim) -> Explanation:
    objects = saved(sim)
    canary = next(obj for obj in objects if obj["kind"] == "Canary")
    before = copy.deepcopy(objects)
    found = explain(world_of(canary, objects), canary, sim.now)
    assert objects == before, "explaining changed what was read"
    return found


def tidy(sim: Sim) -> Sim:
    """Let the controller make the Services that a handed-over namespace lacks, and nothing else."""
    while look(sim).does == "upkeep":
        sim.controller_pass()
    return sim


def scaled(sim: Sim) -> None:
    sim.edit("deployments", "web", {"spec": {"replicas": 5}})
    sim._roll("web")


def remade(sim: Sim) -> None:
    old = sim.target
    sim.remove("deployments", "web")
    spec = {"spec": old["spec"]}
    sim.add("deployments", {"apiVersion": "apps/v1", "kind": "Deployment"} | spec | meta("web"))
    sim._roll("web")


def meta(name: str) -> JSON:
    return {"metadata": {"name": name, "namespace": "n"}}


def of_another_way(sim: Sim) -> None:
    sim.edit_status(
        {"lastAppliedSpec": "v2:0000000000000000", "lastPromotedSpec": "v2:0000000000000000"}
    )


# -- the tables --------------------------------------------------------------------------------------------------------------


def test_every_row_has_a_sentence_of_its_own() -> None:
    assert set(SENTENCES) == set(Row)
    sentences = [sentence for _, sentence in SENTENCES.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(re.fullmatch(r"[A-Z][^\n]*\.", sentence) for sentence in sentences)
    numbers = {number.partition(",")[0] for number, _ in SENTENCES.values()}
    assert numbers == {"U1", *map(str, range(1, 11))}


def test_every_reason_not_to_compare_has_a_sentence() -> None:
    assert set(NOT_COMPARED) == set(SKIPPED.values())


# -- which row applies -------------------------------------------------------------------------------------------------------


def nothing(_: Sim) -> None:
    pass


def changed(sim: Sim) -> None:
    sim.edit("deployments", "web", image("app:2"))


def of_another_way_and_scaled(sim: Sim) -> None:
    of_another_way(sim)
    scaled(sim)


def unfenced(sim: Sim) -> None:
    sim.edit_status({"lastTrackedRevision": None})


def put_back(sim: Sim) -> None:
    """The status speaks of another template than the promoted one, which is what the target holds."""
    fence = f"{sim.target['metadata']['uid']}/0"
    sim.edit_status({"lastAppliedSpec": "v2:0000000000000000", "lastTrackedRevision": fence})


def forgotten(sim: Sim) -> None:
    sim.edit_status({"lastAppliedSpec": None})


@pytest.mark.parametrize(
    ("happens", "row", "number", "verdict", "does"),
    [
        (nothing, Row.UNCHANGED, "4", "unchanged", "idle"),
        (scaled, Row.FENCE_REFRESHED, "5", "unchanged", "track"),
        (changed, Row.CHANGED, "10", "changed", "start"),
        (remade, Row.REBASED, "U1", "unchanged", "rebase"),
        (of_another_way, Row.DRIFT_ABSORBED, "7", "unchanged", "track"),
        (of_another_way_and_scaled, Row.SCALED_AND_DRIFTED, "8", "unchanged", "track"),
        (unfenced, Row.NO_FENCE_SAME, "2, D10", "unchanged", "track"),
        (put_back, Row.MANUAL_ROLLBACK, "9", "rolled back", "track"),
        (forgotten, Row.FIRST_SYNC, "1", "changed", "start"),
    ],
)
def test_the_row_of_an_idle_canary(
    happens: Callable[[Sim], object], row: Row, number: str, verdict: str, does: str
) -> None:
    sim = running()
    happens(sim)
    found = look(sim)
    assert (found.compared, found.row, found.number) == (True, row.value, number)
    assert (found.verdict, found.does) == (verdict, does)
    assert found.because == SENTENCES[row][1]
    # It is what the controller does: its own pass comes to the same.
    decision = sim.controller_pass()
    assert (decision.row, decision.looked) == (does, row.value)
    assert (decision.status or {}).keys() >= found.status.keys()
    assert bool(decision.status) == bool(found.status)


def test_the_comparisons_name_what_moved() -> None:
    sim = running()
    scaled(sim)
    found = look(sim)
    counter = sim.status["lastTrackedRevision"].split("/")[1]
    assert found.comparisons == (
        "hash: applied and promoted",
        "fence: the same object",
        f"fence: counter {counter} on record, {sim.target['metadata']['generation']} now",
        "fence: revision 1 on record, 1 now",
    )
    assert found.stored["fence"] != found.found["fence"]
    assert found.stored["applied"] == found.found["hash"]


def test_a_change_says_what_would_be_written_but_not_what_is_in_it() -> None:
    sim = running()
    sim.edit("deployments", "web", image("secret-registry/app:2"))
    found = look(sim)
    assert found.writes == ("patch deployments/web",)
    assert found.status["phase"] == "Progressing"
    assert any("New revision" in text for text in found.says)
    assert "secret-registry" not in json.dumps(found.to_json())


# -- statuses of others ------------------------------------------------------------------------------------------------------


def test_a_status_of_another_controller_is_adopted_with_its_evidence() -> None:
    found = look(tidy(HandOver("Succeeded")))
    assert (found.row, found.does) == (Row.MIGRATION_ADOPTED.value, "adopt")
    assert found.evidence[0].startswith("target and primary hold the same template")
    assert any(line.startswith("the last status was written at 2027-") for line in found.evidence)
    assert any("ReplicaSet/" in line and "was made at" in line for line in found.evidence)


def test_a_change_that_nobody_watched_is_told_by_its_times() -> None:
    sim = HandOver("Succeeded")
    sim.change(annotation("new"))
    found = look(sim)
    assert (found.row, found.verdict) == (Row.MIGRATION_CHANGED.value, "changed")
    assert (
        found.evidence[0]
        == "target and primary differ in metadata.annotations.note (fields that the primary merely lacks)"
    )
    status, made = (re.findall(r"at (\S+Z)", line)[0] for line in found.evidence[1:3])
    assert status < made


def test_an_unsettled_status_of_another_controller_restarts() -> None:
    found = look(tidy(HandOver("Progressing")))
    assert (found.row, found.does) == (Row.MIGRATION_RESTART.value, "restart")
    assert found.comparisons == ("the hash on record is not one of ours: it cannot be compared",)


def test_without_a_primary_nothing_can_be_told() -> None:
    sim = HandOver("Succeeded")
    sim.remove("deployments", "web-primary")
    found = look(sim)
    assert not found.compared
    assert found.does in ("comparison-failed", "upkeep")


# -- nothing is compared -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "reason"),
    [("Promoting", "promoting"), ("Finalising", "promoting"), ("Odd", "unknown-phase")],
)
def test_a_phase_in_which_nothing_is_compared(phase: str, reason: str) -> None:
    sim = running()
    sim.edit_status({"phase": phase})
    sim.edit("deployments", "web", image("app:2"))
    found = look(sim)
    assert (found.compared, found.row, found.verdict) == (False, "", "")
    assert found.because == NOT_COMPARED[reason]


def test_waiting_is_not_compared() -> None:
    sim = running()
    sim.edit_status({"phase": "Waiting"})
    assert look(sim).because == NOT_COMPARED["waiting"]


def test_a_canary_that_is_new_is_not_compared() -> None:
    sim = Sim()
    sim.add("deployments", copy.deepcopy(running().target))
    sim.add("canaries", copy.deepcopy({k: v for k, v in running().canary.items() if k != "status"}))
    found = look(sim)
    assert not found.compared
    assert found.does == "first-sight"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"suspend": True}, "suspended"), ({"provider": "nginx"}, "unsupported")],
)
def test_a_canary_that_is_left_alone(spec: JSON, reason: str) -> None:
    sim = running()
    sim.edit("canaries", "web", {"spec": spec})
    found = look(sim)
    assert not found.compared
    assert found.because.startswith(NOT_COMPARED[reason])
    assert reason != "unsupported" or "'nginx' is not implemented" in found.because


def test_a_missing_target_is_said() -> None:
    sim = running()
    sim.remove("deployments", "web")
    assert look(sim).because == NOT_COMPARED["target-missing"]


def test_a_fence_in_the_annotation_counts_as_on_record() -> None:
    sim = running()
    fence = sim.status["lastTrackedRevision"]
    sim.edit_status({"lastTrackedRevision": None})
    kept = {pruned.ANNOTATION: f"{sim.status['lastAppliedSpec']} {fence}"}
    sim.edit("canaries", "web", {"metadata": {"annotations": kept}})
    found = look(sim)
    assert (found.row, found.stored["fence"]) == (Row.UNCHANGED.value, fence)


# -- as text -----------------------------------------------------------------------------------------------------------------


def test_the_first_line_is_the_answer() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    first, *rest = to_text(look(sim)).splitlines()
    assert first == "canary/web in n, phase Initialized: changed"
    assert rest[0].split() == ["row", "changed", "(10):", *SENTENCES[Row.CHANGED][1].split()]
    assert any("row start: patch deployments/web; patch status (" in line for line in rest)


def test_what_is_not_compared_says_so_first() -> None:
    sim = running()
    sim.edit_status({"phase": "Promoting"})
    first, second, *_ = to_text(look(sim)).splitlines()
    assert first == "canary/web in n, phase Promoting: not compared"
    assert NOT_COMPARED["promoting"] in second


# -- from a file -------------------------------------------------------------------------------------------------------------


def as_yaml(*documents: object) -> str:
    out = io.StringIO()
    YAML(typ="safe").dump_all(documents, out)
    return out.getvalue()


@pytest.mark.parametrize("form", ["list", "documents", "json"])
def test_a_saved_list_gives_the_same_answer(tmp_path: Path, form: str) -> None:
    sim = HandOver("Succeeded")
    sim.change(annotation("new"))
    listed = {"apiVersion": "v1", "kind": "List", "items": saved(sim)}
    text = {
        "list": lambda: as_yaml(listed),
        "documents": lambda: as_yaml(*saved(sim)),
        "json": lambda: json.dumps(listed),
    }[form]()
    path = tmp_path / "saved.yaml"
    path.write_text(text)
    ((canary, world),) = from_file(path, None, None)
    assert explain(world, canary, sim.now) == look(sim)


def test_an_unquoted_time_is_read_as_text(tmp_path: Path) -> None:
    sim = running()
    path = tmp_path / "saved.yaml"
    text = as_yaml(*saved(sim))
    path.write_text(re.sub(r"'(\d{4}-\d\d-\d\dT[\d:]+Z)'", r"\1", text))
    assert path.read_text() != text
    ((canary, _),) = from_file(path, None, "web")
    assert canary["metadata"]["creationTimestamp"] == sim.canary["metadata"]["creationTimestamp"]


def test_several_canaries_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "saved.yaml"
    objects = saved(running())
    other = json.loads(json.dumps(objects).replace('"namespace": "n"', '"namespace": "m"'))
    path.write_text(as_yaml(*objects, *other))
    assert len(from_file(path, None, "web")) == 2
    ((canary, world),) = from_file(path, "m", "web")
    assert canary["metadata"]["namespace"] == "m"
    assert world.target is not None
    assert world.target["metadata"]["namespace"] == "m"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r"saved.yaml:1: neither YAML nor JSON: .+"),
        ("- 1", r"saved.yaml: not an object of Kubernetes, it has no kind: '\[1\]'"),
        ("kind: Pod", r"saved.yaml: Pod without metadata.name"),
        (
            "kind: Pod\nmetadata: {name: a}",
            r"saved.yaml: there is no Canary in it \(there is: Pod\)",
        ),
        ("", r"saved.yaml: there is no Canary in it \(there is: nothing\)"),
        (
            "kind: Canary\nmetadata: {name: a, namespace: b}\nspec: {}",
            r"saved.yaml: Canary 'a' is not as an API server sends it, it has no metadata.uid, metadata.resourceVersion, spec.targetRef",
        ),
    ],
)
def test_a_file_of_something_else_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "saved.yaml"
    path.write_text(text)
    with pytest.raises(SourceError) as caught:
        from_file(path, None, None)
    assert re.search(message + "$", str(caught.value))
    assert "\n" not in str(caught.value)


def test_another_name_is_told_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "saved.yaml"
    path.write_text(as_yaml(*saved(running())))
    with pytest.raises(SourceError, match=r"no Canary 'other' in it \(there is: n/web\)"):
        from_file(path, None, "other")


# -- from a cluster ----------------------------------------------------------------------------------------------------------


def cluster_of(sim: Sim) -> FakeCluster:
    cluster = FakeCluster()
    for obj in saved(sim):
        cluster.add(obj)
    return cluster


def test_a_cluster_is_only_read_and_only_by_name() -> None:
    sim = running()
    cluster = cluster_of(sim)
    canary, world = asyncio.run(from_cluster(cluster.client(), "n", "web"))
    assert explain(world, canary, sim.now).row == Row.UNCHANGED.value
    assert {asked.verb for asked in cluster.requests} == {"get"}


def test_replica_sets_are_listed_only_where_they_matter() -> None:
    sim = HandOver("Succeeded")
    sim.change(annotation("new"))
    cluster = cluster_of(sim)
    canary, world = asyncio.run(from_cluster(cluster.client(), "n", "web"))
    assert explain(world, canary, sim.now).row == Row.MIGRATION_CHANGED.value
    assert [asked.path.rpartition("/")[2] for asked in cluster.requests if asked.verb != "get"] == [
        "replicasets"
    ]


def test_replica_sets_that_may_not_be_read_are_done_without() -> None:
    sim = HandOver("Succeeded")
    sim.change(annotation("new"))
    cluster = cluster_of(sim)
    cluster.forbid("list", "replicasets")
    canary, world = asyncio.run(from_cluster(cluster.client(), "n", "web"))
    found = explain(world, canary, sim.now)
    assert "no ReplicaSet shows since when the target has its template" in found.evidence


def test_an_unknown_canary_is_told_with_those_there_are() -> None:
    cluster = cluster_of(running())
    with pytest.raises(SourceError, match=r"no Canary 'other' in namespace 'n' \(there is: web\)"):
        asyncio.run(from_cluster(cluster.client(), "n", "other"))


def test_a_right_that_is_missing_is_not_taken_for_a_missing_object() -> None:
    cluster = cluster_of(running())
    cluster.forbid("get", "deployments")
    with pytest.raises(Forbidden):
        asyncio.run(from_cluster(cluster.client(), "n", "web"))
