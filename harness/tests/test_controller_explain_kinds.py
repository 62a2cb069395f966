"""`drill explain` for every kind of target and router: it sees what the controller sees, says where the run stands, and asks nobody."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core import decide
from harness.controller.explain import Explanation, explain
from harness.controller.explain_text import to_text
from harness.controller.look import world_of
from harness.controller.shell.kinds import RESOURCES
from harness.controller.sources import SourceError, from_cluster, from_file
from harness.kube.errors import Forbidden
from harness.kube.testing import FakeCluster
from harness.tests.controller_sim import Sim, canary, no, obliging, with_configmap
from harness.tests.controller_stories import new_image
from harness.tests.controller_stories_routed import STORIES as ROUTED
from harness.tests.test_controller_explain import saved
from harness.tests.test_controller_idle import SETTLED, with_configs

if TYPE_CHECKING:
    from pathlib import Path

    from harness.controller.core import Decision, World
    from harness.tests.controller_stories import Story

JSON = dict[str, Any]
GATES = next(story for story in ROUTED if story.name == "gates")
KINDS = {name: story for name, (story, _) in SETTLED.items()} | {"gates": GATES}


def served(sim: Sim, *without: str) -> FakeCluster:
    """A cluster that holds it all."""
    kinds = [resource for plural, resource in RESOURCES.items() if plural not in without]
    cluster = FakeCluster(*kinds)
    for obj in saved(sim):
        cluster.add(obj)
    return cluster


def look(sim: Sim) -> Explanation:
    return explain(world_of(sim.canary, saved(sim)), sim.canary, sim.now)


def begun(name: str) -> Sim:
    """The Canary of that story, initialised."""
    sim = KINDS[name].begin()
    sim.run(until="Initialized")
    sim.settle()
    return sim


# -- it sees what the controller sees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_every_pass_of_a_release_is_foreseen(name: str) -> None:
    story: Story = KINDS[name]
    sim = story.begin()
    passes = 0

    def foreseen(world: World, rollout: JSON, now: float) -> Decision:
        nonlocal passes
        passes += 1
        mine = world_of(rollout, saved(sim))
        # What only the process knows.
        mine = replace(mine, answers=world.answers, revisions=world.revisions)
        decision = decide(world, rollout, now)
        assert decide(mine, rollout, now) == decision
        explained = explain(mine, rollout, now)
        assert explained.does == decision.row
        assert len(explained.asks) == len(decision.calls)
        assert to_text(explained)
        return decision

    sim.decide = foreseen
    story.tell(sim)
    assert sim.phase == "Succeeded"
    assert passes > 10


@pytest.mark.parametrize("name", KINDS)
def test_a_cluster_tells_the_same_and_is_only_read(name: str) -> None:
    sim = begun(name)
    sim.run(5)
    cluster = served(sim)
    rollout, world = asyncio.run(from_cluster(cluster.client(), "n", "web"))
    found = explain(world, rollout, sim.now)
    if (
        name != "core service"
    ):  # its fence moves with every write, so also when it is put into the cluster
        assert found == look(sim)
    assert (found.compared, found.verdict, found.does) == (True, "unchanged", "idle")
    assert {asked.method for asked in cluster.requests} == {"GET"}
    lists = {asked.path.rpartition("/")[2] for asked in cluster.asked("list")}
    assert lists == ({"revisions"} if name == "knative" else set())
    word = {"daemonset": "DaemonSet", "core service": "Service", "knative": "Knative Service"}
    assert found.target == f"{word.get(name, 'Deployment')}/web"


def test_what_the_controller_would_not_read_is_not_read() -> None:
    sim = begun("daemonset")
    cluster = served(sim)
    asyncio.run(from_cluster(cluster.client(), "n", "web"))
    kinds = {asked.path.split("/")[-2] for asked in cluster.requests}
    assert kinds == {"canaries", "daemonsets", "services"}


def test_a_crd_that_is_missing_is_what_the_controller_says() -> None:
    sim = begun("route")
    sim.remove("httproutes", "web")
    rollout, world = asyncio.run(from_cluster(served(sim, "httproutes").client(), "n", "web"))
    found = explain(world, rollout, sim.now)
    assert not found.compared
    assert "httproutes.gateway.networking.k8s.io: its CRD is not installed" in found.because
    assert found.does == "refused"


def test_an_older_canary_with_the_same_target_is_looked_for_when_there_is_a_conflict() -> None:
    sim = begun("daemonset")
    condition = {"type": "Accepted", "status": "False", "reason": "Conflict", "message": "older"}
    rollout = {"status": {"conditions": [condition]}, "metadata": {"creationTimestamp": "2027"}}
    sim.edit("canaries", "web", rollout)
    older = canary(targetRef=sim.canary["spec"]["targetRef"])
    older["metadata"] |= {"name": "elder", "creationTimestamp": "2020"}
    sim.add("canaries", older)
    sim.objects["canaries", "elder"]["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    found_canary, world = asyncio.run(from_cluster(served(sim).client(), "n", "web"))
    assert world.rival == "elder"
    assert "Canary elder has the same target" in explain(world, found_canary, sim.now).because


# -- where the run stands ------------------------------------------------------------------------------------------------------


def test_an_iteration_its_checks_and_the_next_step() -> None:
    sim = begun("daemonset")
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(1.5)
    found = look(sim)
    assert found.standing[:2] == ("blue-green: iteration 0 of 2", "failed checks: 0 of 2")
    assert found.standing[2].startswith("next step due in ")
    types = {entry["type"]: entry["status"] for entry in found.conditions}
    assert types["Promoted"] == "Unknown"
    text = to_text(found)
    assert "  stands      blue-green: iteration 0 of 2" in text
    assert "Promoted=Unknown (Progressing)" in text


def test_a_weight_and_its_steps() -> None:
    sim = begun("route")
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(1.5)
    assert look(sim).standing[0] == f"weight {sim.status['canaryWeight']} of 40 (steps: 20, 40)"


@pytest.mark.parametrize(
    ("phase", "gate", "hook", "of"),
    [
        ("Waiting", "ConfirmRollout", "start", "confirm-rollout hook start (phase "),
        ("WaitingPromotion", "ConfirmPromotion", "finish", "confirm-promotion hook finish (phase "),
    ],
)
def test_a_closed_gate_is_told_with_who_keeps_it(phase: str, gate: str, hook: str, of: str) -> None:
    sim = begun("gates")
    if phase == "WaitingPromotion":
        del sim.script["start"]
    sim.script[hook] = no("not before Monday")
    new_image(sim)
    sim.run(until=phase)
    sim.run(0.5)
    found = look(sim)
    assert found.held["gate"] == gate
    assert hook in found.held["message"]
    assert any(line.startswith(f"held by {gate}: ") for line in found.standing)
    assert json.loads(json.dumps(found.to_json()))["held"]["gate"] == gate
    # An interval later the hook is asked again: that is the next call, and nobody makes it here.
    calls = len(sim.outside.calls)
    sim.now += 2.0
    later = look(sim)
    assert [line[: len(of)] for line in later.asks] in ([of], [f"rollback {of[16:]}"])
    assert len(sim.outside.calls) == calls
    assert ".test/" not in json.dumps(later.to_json()), "addresses may hold tokens"


def test_a_metric_that_would_be_asked_is_named() -> None:
    sim = begun("route")
    sim.outside.hooks = lambda call: None if call.kind == "metric" else obliging(call)
    new_image(sim)
    sim.run(20)
    found = look(sim)
    assert found.does == "asking"
    assert found.asks == ("rollback hook undo (phase Progressing)",), (
        "the first question of a round"
    )
    answered = replace(world_of(sim.canary, saved(sim)), answers=sim.outside.answers)
    assert explain(answered, sim.canary, sim.now).asks == ("metric request-success-rate",)


# -- configs -------------------------------------------------------------------------------------------------------------------


NAME = "deployment with configs and an autoscaler"


def test_each_config_is_told_apart() -> None:
    sim = begun(NAME)
    assert look(sim).configs == ("configmap/settings: as on record", "secret/login: as on record")
    sim.edit("configmaps", "settings", {"data": {"colour": "hidden-value"}})
    found = look(sim)
    assert (found.verdict, found.row) == ("changed", "unchanged")
    assert found.because.endswith("But a ConfigMap or Secret that it uses is another one.")
    assert found.configs[0] == "configmap/settings: another content"
    assert any("copy differs: configmap/settings" in line for line in found.standing)
    assert "hidden-value" not in json.dumps(found.to_json())
    sim.remove("secrets", "login")
    assert "secret/login: does not exist" in look(sim).configs[1]


def test_secrets_that_may_not_be_read_are_one_sentence_when_they_matter() -> None:
    sim = begun(NAME)
    cluster = served(sim)
    cluster.forbid("get", "secrets")
    with pytest.raises(SourceError, match=r"^Secret 'login' may not be read with these creden"):
        asyncio.run(from_cluster(cluster.client(), "n", "web"))
    # Nothing of it is on record: then nothing is compared with it.
    sim.edit_status({"trackedConfigs": None})
    cluster = served(sim)
    cluster.forbid("get", "secrets")
    _, world = asyncio.run(from_cluster(cluster.client(), "n", "web"))
    assert "secrets" not in world.objects
    cluster.forbid("get", "services")
    with pytest.raises(Forbidden):
        asyncio.run(from_cluster(cluster.client(), "n", "web"))


def test_a_file_without_the_configs_is_one_sentence(tmp_path: Path) -> None:
    sim = begun(NAME)
    objects = [obj for obj in saved(sim) if obj["kind"] != "Secret"]
    path = tmp_path / "saved.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    message = (
        r"saved.json: Secret 'login' is not in it, and without it Canary n/web cannot be compared$"
    )
    with pytest.raises(SourceError, match=message):
        from_file(path, None, "web")
    path.write_text(json.dumps({"kind": "List", "items": saved(sim)}))
    ((rollout, world),) = from_file(path, None, "web")
    assert explain(world, rollout, sim.now) == look(sim)


def test_configs_that_no_one_refers_to_are_none_of_its_business() -> None:
    sim = begun(NAME)
    assert with_configs() != with_configmap(copy.deepcopy(with_configs()))
    world = world_of(sim.canary, saved(sim))
    assert set(world.objects["configmaps"]) == {"settings", "settings-primary"}
