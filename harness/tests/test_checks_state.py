"""State: what checks see of a cluster, and that it does not depend on the order of kinds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.checks.expression import Expression
from harness.checks.state import State
from harness.checks.vocabulary import OBJECTS, VARIABLES
from harness.model.timeline import ObjectSeen, Requests, RolloutKind, SubjectFacts
from harness.model.timeline_outside import Call, Queries, QueriesCounted
from harness.model.timeline_traffic import TrafficWindow
from harness.tests import knative_objects as knative
from harness.tests import stories
from harness.tests.checking import state_of
from harness.tests.timelines import Recording, scenario


def test_before_the_first_list_nothing_is_claimed() -> None:
    world = State(Recording().header()).world()
    assert set(world) == {"t", "since_change", "step", "values", "subject", "at"}
    assert world["at"] == {}
    assert world["since_change"] == -1.0


def test_after_an_empty_list_it_is_known_that_there_is_nothing() -> None:
    world = state_of(Recording().synced()).world()
    assert world["pods"] == []
    assert world["rollout"]["exists"] is False
    assert world["primary"]["ready"] == 0


def test_every_word_of_the_vocabulary_is_in_the_world() -> None:
    receiver = {"gates": {"approve": {"answer": "open"}}}
    story = stories.promotion(
        {**stories.body(), "receiver": receiver, "metrics": {"up": "1"}, "traffic": {}}
    )
    story.see({"kind": "Node", "metadata": {"name": "zwolle-pi-1"}})
    story.see(
        {
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web-primary"}},
        }
    )
    story.see({"kind": "HTTPRoute", "metadata": {"name": "web"}})
    story.see({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}})
    for kind in ("ConfigMap", "Secret"):
        story.see({"kind": kind, "metadata": {"name": "web"}})
    knative.service(story, created=2, traffic={1: 100})
    knative.revision(story, 1)
    story.add(Call, sort="gate", gate="approve", status=200, seconds=0.1)
    story.add(Queries, came=(1.0,), statuses=(200,), passed=1)
    story.add(QueriesCounted, total=1, seconds=0.0)
    pod = f"web-primary-{stories.NEW}-b6tnm"
    story.add(TrafficWindow, since=1.0, until=1.2, sent=1, answers=({"pod": pod, "ms": [1.0]},))
    story.add(Requests, rollouts={"web": (3, 1)}, total=9, watches=2)
    world = state_of(story).world()
    assert set(world) == set(VARIABLES)
    for name, word in VARIABLES.items():
        row_type = word.type.removeprefix("list(").removesuffix(")")
        if row_type in OBJECTS:
            row = world[name][0] if word.type.startswith("list(") else world[name]
            assert set(row) == set(OBJECTS[row_type]), name


@pytest.mark.parametrize(
    ("pod", "selector"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd"}),
        ({"nodeSelector": {}}, {}),
        ({"nodeSelector": None}, {}),
        ({}, {}),
    ],
)
def test_a_workload_tells_its_node_selector_and_an_empty_one_is_none(
    pod: dict[str, Any], selector: dict[str, str]
) -> None:
    story = Recording().synced().rollout("Initialized")
    spec = {"template": {"spec": pod}}
    story.see({"kind": "DaemonSet", "metadata": {"name": "web-primary"}, "spec": spec})
    assert state_of(story).world()["primary"]["node_selector"] == selector


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_roles_do_not_depend_on_the_order_of_kinds(order: tuple[int, ...]) -> None:
    story = Recording().at(1.0)
    story.rollout("Initialized").deployment("web-primary", "aaa").pod(
        "web-primary", "aaa", "x", node="n", ready=True
    )
    mixed = Recording()
    mixed.lines = [story.lines[index] for index in order]
    world = state_of(mixed).world()
    assert [(p["app"], p["role"], p["hash"]) for p in world["pods"]] == [
        ("web-primary", "primary", "aaa")
    ]
    assert world["primary"]["ready"] == 1
    assert world["primary"]["hash"] == "aaa"


def test_a_pod_of_an_unseen_replica_set_is_known_by_its_owners_name() -> None:
    world = state_of(Recording().pod("web-canary-x", "5f66c8d9fd", "a")).world()
    assert world["pods"][0]["app"] == "web-canary-x"


def test_the_pods_of_a_workload_that_an_operator_owns_are_the_workloads() -> None:
    story = Recording().rollout("Initialized").deployment("web", "aaa")
    (deployment,) = [
        line.object
        for line in story.lines
        if isinstance(line, ObjectSeen) and line.object["kind"] == "Deployment"
    ]
    owner = {"kind": "Application", "name": "shop", "controller": True}
    story.see({**deployment, "metadata": {**deployment["metadata"], "ownerReferences": [owner]}})
    story.pod("web", "aaa", "x", node="n", ready=True)
    world = state_of(story).world()
    assert [(p["app"], p["role"]) for p in world["pods"]] == [("web", "target")]
    assert world["target"]["ready"] == 1


def test_ready_counts_pods_that_are_not_terminating() -> None:
    story = Recording().rollout("Promoting").deployment("web-primary", "aaa")
    story.pod("web-primary", "aaa", "x", node="n", ready=True)
    story.pod("web-primary", "aaa", "y", node="n", ready=True, terminating=True)
    primary = state_of(story).world()["primary"]
    assert (primary["ready"], primary["replicas"], primary["desired"]) == (1, 1, 2)


def test_the_primary_keeps_its_role_when_the_rollout_object_is_gone() -> None:
    story = Recording().synced().rollout("Succeeded").deployment("web-primary", "aaa")
    story.gone("web", "Canary")
    world = state_of(story).world()
    assert world["rollout"]["exists"] is False
    assert world["primary"]["exists"] is True


def test_a_late_deletion_of_an_earlier_object_does_not_remove_its_successor() -> None:
    story = Recording().pod("web", "aaa", "x", node="n")
    old = story.lines[-1]
    assert isinstance(old, ObjectSeen)
    newer = {**old.object, "metadata": {**old.object["metadata"], "uid": "another"}}
    story.add(ObjectSeen, change="ADDED", object=newer).add(
        ObjectSeen, change="DELETED", object=old.object
    )
    assert len(state_of(story).world()["pods"]) == 1


def test_a_refused_pod_is_seen_on_the_replica_set_alone() -> None:
    story = Recording().deployment("web", "aaa")
    replica_set = story.lines[-1]
    assert isinstance(replica_set, ObjectSeen)
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "exceeded quota: none",
    }
    story.see({**replica_set.object, "status": {"conditions": [failure]}}).synced()
    workload = state_of(story).world()["workloads"][0]
    assert workload["createFailed"] is True
    assert workload["message"] == "exceeded quota: none"


def test_a_refused_pod_of_a_daemon_set_is_seen_by_its_event_until_the_pod_is_there() -> None:
    story = Recording().synced()
    daemon = {
        "kind": "DaemonSet",
        "metadata": {"name": "web"},
        "status": {"desiredNumberScheduled": 1},
    }
    event = {
        "kind": "Event",
        "metadata": {"name": "e"},
        "reason": "FailedCreate",
        "message": "webhook says no",
    }
    story.see(daemon).see({**event, "involvedObject": {"kind": "DaemonSet", "name": "web"}})
    assert state_of(story).world()["workloads"][0]["createFailed"] is True
    meta = {
        "name": "web-1",
        "ownerReferences": [{"kind": "DaemonSet", "name": "web", "controller": True}],
    }
    story.see({"kind": "Pod", "metadata": meta})
    assert state_of(story).world()["workloads"][0]["createFailed"] is False


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ({"app": "web-primary"}, "primary"),
        ({"app": "web"}, "target"),
        ({"tier": "front"}, "none"),
        ({}, "none"),
    ],
)
def test_services_say_whose_pods_they_select(selector: dict[str, str], selects: str) -> None:
    story = (
        Recording().rollout("Initialized").deployment("web", "bbb").deployment("web-primary", "aaa")
    )
    story.see({"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": selector}})
    service = state_of(story).world()["services"][0]
    assert (service["role"], service["selects"]) == ("apex", selects)


def test_a_tainted_or_cordoned_node_is_not_schedulable() -> None:
    story = Recording()
    story.see(
        {
            "kind": "Node",
            "metadata": {"name": "a"},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        }
    )
    story.see({"kind": "Node", "metadata": {"name": "b"}, "spec": {"unschedulable": True}})
    story.see({"kind": "Node", "metadata": {"name": "c"}, "spec": {}})
    assert [n["schedulable"] for n in state_of(story).world()["nodes"]] == [False, False, True]


def test_another_subject_maps_its_own_status() -> None:
    kind = RolloutKind(
        "argoproj.io/v1alpha1",
        "Rollout",
        "rollouts",
        primary_suffix="-stable",
        phases={"Healthy": "Succeeded"},
    )
    story = Recording(subject=SubjectFacts("argo", "1.10.2", rollout=kind))
    story.see({"kind": "Rollout", "metadata": {"name": "web"}, "status": {"phase": "Healthy"}})
    state = state_of(story)
    assert state.world()["rollout"]["phase"] == "Succeeded"
    assert state.world()["rollout"]["ended"] is True
    assert state.primary_name == "web-stable"


def test_time_since_the_change_counts_from_when_the_change_was_made() -> None:
    story = (
        Recording(scenario())
        .at(1.0)
        .step("new revision", "started")
        .at(2.0)
        .step("new revision", "acted")
        .at(5.0)
        .synced()
    )
    assert state_of(story).world()["since_change"] == 3.0


def test_the_version_grows_only_when_the_world_changes() -> None:
    story = Recording().synced().pod("web", "aaa", "x", node="n")
    state = state_of(story)
    state.facts()
    before = state.stamp(dict.fromkeys(VARIABLES))
    for observation in Recording().at(9.0).pod("web", "aaa", "x", node="n").lines:
        state.apply(observation)
    state.facts()
    assert state.stamp(dict.fromkeys(VARIABLES)) == before


def test_an_until_can_be_evaluated_live() -> None:
    state = state_of(Recording().synced().rollout("Initialized"))
    assert Expression.compile('rollout.phase == "Initialized"').evaluate(state.world()) is True
