"""The simulated cluster behaves like one where tests of the controller lean on it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.calls import Call
from harness.controller.core.decision import Write
from harness.tests.controller_sim import (
    Invalid,
    Node,
    Refused,
    Sim,
    canary,
    configmap,
    daemonset,
    deployment,
    image,
    kservice,
    no,
    number,
    running,
    service,
    target_ref,
    yes,
)

JSON = dict[str, Any]


def play(sim: Sim, seconds: float) -> None:
    """Let time pass without a controller."""
    end = sim.now + seconds
    while sim.now < end:
        for _ in range(5):
            sim.play()
        sim.now = round(sim.now + 0.1, 3)


# -- the API server ----------------------------------------------------------------------------------------------------------


def patch(sim: Sim, resource: Any, name: str, body: JSON) -> Write:
    return Write(
        "patch", resource, name, body, sim.objects[resource, name]["metadata"]["resourceVersion"]
    )


def test_an_object_with_finalizers_stays_until_they_are_gone() -> None:
    sim = Sim()
    sim.add(
        "canaries", canary() | {"metadata": {"name": "web", "namespace": "n", "finalizers": ["f"]}}
    )
    sim.remove("canaries", "web")
    assert sim.canary["metadata"]["deletionTimestamp"]
    assert sim.canary["metadata"]["generation"] == 2
    sim.carry_out(patch(sim, "canaries", "web", {"metadata": {"finalizers": None}}))
    assert not sim.has_canary


def test_what_is_owned_goes_after_its_owner_and_only_then() -> None:
    sim = Sim()
    sim.add("canaries", canary())
    owner = {"kind": "Canary", "name": "web", "uid": sim.canary["metadata"]["uid"]}
    owned = configmap("copy")
    owned["metadata"]["ownerReferences"] = [owner]
    shared = configmap("shared")
    shared["metadata"]["ownerReferences"] = [owner, owner | {"uid": "somebody-else"}]
    sim.add("configmaps", owned)
    sim.add("configmaps", shared)
    sim.collect()
    assert set(sim.of("configmaps")) == {"copy", "shared"}
    sim.remove("canaries", "web")
    sim.collect()
    assert set(sim.of("configmaps")) == {"shared"}


def test_a_delete_is_done_once_and_gone_already_is_success() -> None:
    sim = Sim()
    sim.add("configmaps", configmap())
    write = Write("delete", "configmaps", "settings", {})
    sim.carry_out(write)
    sim.carry_out(write)
    assert not sim.of("configmaps")


def test_every_third_write_meets_a_conflict_once() -> None:
    sim = Sim()
    sim.conflict_every = 3
    for index in range(2):
        sim.carry_out(Write("create", "configmaps", f"c{index}", configmap(f"c{index}")))
    write = Write("create", "configmaps", "c2", configmap("c2"))
    with pytest.raises(Refused):
        sim.carry_out(write)
    sim.carry_out(write)
    assert len(sim.of("configmaps")) == 3


def test_a_release_comes_through_conflicts() -> None:
    sim = running()
    sim.conflict_every = 2
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")


def test_a_refused_object_is_tried_again_ever_more_rarely_and_said_once() -> None:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.admission = lambda verb, plural, _obj: (
        "quota" if (verb, plural) == ("create", "services") else ""
    )
    sim.run(100)
    assert 5 < len(sim.actions) < 15
    assert [m for m in sim.messages() if "refuses" in m] == [
        "The API server refuses a write: quota"
    ]
    with pytest.raises(Invalid):
        sim.controller_pass()
    sim.admission = None
    sim.run(until="Initialized")


def test_a_dropped_event_is_not_seen_until_everything_is_read_again() -> None:
    sim = running()
    sim.drop_events("deployments", "web")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(30)
    assert sim.phase == "Initialized"
    sim.relist()
    sim.run(until="Succeeded")


def test_a_write_decided_on_a_stale_copy_is_refused() -> None:
    sim = running()
    sim.drop_events("services", "web")
    sim.edit("services", "web", {"metadata": {"labels": {"mine": "yes"}}})
    old = sim.seen()["services"]["web"]["metadata"]["resourceVersion"]
    with pytest.raises(Refused):
        sim.carry_out(Write("patch", "services", "web", {"spec": {}}, old))


def test_an_older_canary_with_the_same_target_is_a_rival() -> None:
    sim = Sim()
    sim.add("canaries", canary() | {"metadata": {"name": "first", "namespace": "n"}})
    sim.add("canaries", canary())
    other = canary(targetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "else"})
    sim.add("canaries", other | {"metadata": {"name": "third", "namespace": "n"}})
    assert sim.world().rival == "first"
    sim.remove("canaries", "first")
    assert sim.world().rival == ""


def test_writers_are_noted_field_by_field() -> None:
    sim = Sim()
    sim.add("daemonsets", daemonset())
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"zero": "true"}}}}}
    sim.edit("daemonsets", "web", selector, "controller")
    user, controller = sim.get("daemonsets", "web")["metadata"]["managedFields"]  # type: ignore[index]
    assert controller["fieldsV1"] == {
        "f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {"f:zero": {}}}}}
    }
    assert "f:containers" in user["fieldsV1"]["f:spec"]["f:template"]["f:spec"]


# -- DaemonSets --------------------------------------------------------------------------------------------------------------


def daemons(**spec: Any) -> Sim:
    sim = Sim()
    sim.nodes = {f"node-{n}": Node({"disk": "ssd"} if n < 3 else {}) for n in range(4)}
    sim.nodes["node-3"].taints = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    sim.add("daemonsets", daemonset(**spec))
    play(sim, 2)
    return sim


def test_a_daemonset_runs_where_its_selector_and_the_taints_let_it() -> None:
    sim = daemons()
    status = sim.objects["daemonsets", "web"]["status"]
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (3, 3)
    toleration = {"key": "dedicated", "operator": "Equal", "value": "db"}
    sim.edit("daemonsets", "web", {"spec": {"template": {"spec": {"tolerations": [toleration]}}}})
    play(sim, 10)
    assert sim.ready_pods("web") == 4
    sim.edit(
        "daemonsets", "web", {"spec": {"template": {"spec": {"nodeSelector": {"disk": "nvme"}}}}}
    )
    play(sim, 1)
    status = sim.objects["daemonsets", "web"]["status"]
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"]) == (0, 0)
    assert status["observedGeneration"] == 3


@pytest.mark.parametrize(("limit", "least"), [(1, 2), (2, 1), ("50%", 1), ("100%", 0)])
def test_a_rolling_update_takes_away_no_more_pods_than_may_be_missing(
    limit: int | str, least: int
) -> None:
    sim = daemons(
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}
    )
    sim.edit("daemonsets", "web", image("app:2"))
    lowest = 3
    for _ in range(100):
        play(sim, 0.1)
        lowest = min(lowest, sim.ready_pods("web"))
    assert lowest == least
    assert sim.objects["daemonsets", "web"]["status"]["updatedNumberScheduled"] == 3


def test_a_rolling_update_that_never_gets_ready_stops_at_the_limit() -> None:
    sim = daemons()
    sim.delay = lambda _name, _template, _index: None
    sim.edit("daemonsets", "web", image("app:2"))
    play(sim, 30)
    assert sim.ready_pods("web") == 2
    assert sim.objects["daemonsets", "web"]["status"]["updatedNumberScheduled"] == 1


def test_on_delete_waits_for_somebody_to_delete_the_pods() -> None:
    sim = daemons(updateStrategy={"type": "OnDelete"})
    sim.edit("daemonsets", "web", image("app:2"))
    play(sim, 10)
    assert sim.objects["daemonsets", "web"]["status"]["updatedNumberScheduled"] == 0
    sim.pods["web"].pop()
    play(sim, 2)
    assert sim.objects["daemonsets", "web"]["status"]["updatedNumberScheduled"] == 1


# -- routes and traffic ------------------------------------------------------------------------------------------------------


def route(primary: int, canary_weight: int) -> JSON:
    backends = [
        {"name": "web-primary", "port": 80, "weight": primary},
        {"name": "web-canary", "port": 80, "weight": canary_weight},
    ]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "n"},
        "spec": {"parentRefs": [{"name": "gateway"}], "rules": [{"backendRefs": backends}]},
    }


def accepted(sim: Sim) -> list[tuple[str, int]]:
    status = sim.objects["httproutes", "web"].get("status") or {"parents": []}
    return [
        (condition["status"], condition["observedGeneration"])
        for parent in status["parents"]
        for condition in parent["conditions"]
        if condition["type"] == "Accepted"
    ]


def test_a_gateway_accepts_each_generation_of_a_route_after_a_while() -> None:
    sim = Sim()
    sim.add("httproutes", route(100, 0))
    sim.play()
    assert accepted(sim) == []
    play(sim, 0.5)
    assert accepted(sim) == [("True", 1)]
    sim.gateway_refuses = lambda _route: "NoMatchingListenerHostname"
    sim.edit("httproutes", "web", {"spec": {"hostnames": ["web.test"]}})
    sim.play()
    assert accepted(sim) == [("True", 1)]
    play(sim, 0.5)
    assert accepted(sim) == [("False", 2)]


def test_traffic_follows_the_route_else_the_apex() -> None:
    sim = Sim()
    assert sim.serving() is None
    sim.add("deployments", deployment())
    sim.add("services", service())
    play(sim, 2)
    assert (sim.traffic(), sim.serving()) == ({"web": 100}, 3)
    sim.add("httproutes", route(100, 0))
    sim.add("services", service("web-primary", selector={"app": "web-primary"}))
    sim.add("services", service("web-canary"))
    assert (sim.traffic(), sim.serving()) == ({"web-primary": 100, "web-canary": 0}, 0)


def test_knative_makes_a_revision_for_each_template_and_traffic_follows() -> None:
    sim = Sim()
    sim.add("kservices", kservice())
    play(sim, 3)
    assert sim.traffic() == {"web-00001": 100}
    pinned = [{"latestRevision": True, "percent": 0}, {"revisionName": "web-00001", "percent": 100}]
    containers = [{"name": "c", "image": "app:2"}]
    spec = {"template": {"spec": {"containers": containers}}, "traffic": pinned}
    sim.edit("kservices", "web", {"spec": spec})
    play(sim, 3)
    assert sim.traffic() == {"web-00002": 0, "web-00001": 100}
    assert sim.objects["kservices", "web"]["status"]["latestCreatedRevisionName"] == "web-00002"
    assert set(sim.of("krevisions")) == {"web-00001", "web-00002"}


def test_the_target_is_found_by_group_and_kind() -> None:
    for kind, plural in (
        ("DaemonSet", "daemonsets"),
        ("Service", "services"),
        ("Knative", "kservices"),
    ):
        sim = Sim()
        sim.add("canaries", canary(targetRef=target_ref(kind)))
        made = {"daemonsets": daemonset(), "services": service(), "kservices": kservice()}[plural]
        sim.add(plural, made)
        assert sim.plural == plural
        assert sim.world().target == sim.target


# -- the world outside -------------------------------------------------------------------------------------------------------


def call(name: str, key: str = "") -> Call:
    return Call(key or name, "webhook", name, {"type": "rollout"})


def test_answers_come_after_a_while_and_are_kept_until_the_status_is_written() -> None:
    sim = Sim()
    outside = sim.outside
    outside.ask((call("smoke"),), sim.now)
    outside.ask((call("smoke"),), sim.now)
    assert not outside.answer(sim.now)
    sim.now += 0.1
    assert outside.answer(sim.now)
    assert (outside.answers["smoke"].ok, outside.answers["smoke"].at) == (True, sim.now)
    outside.ask((call("smoke"),), sim.now)
    assert len(outside.calls) == 1
    outside.forget()
    outside.ask((call("smoke"),), sim.now)
    assert len(outside.calls) == 2


def test_a_call_that_hangs_is_given_up_and_one_that_nobody_wants_is_dropped() -> None:
    sim = Sim()
    sim.script.update({"slow": None, "gate": no("answered 403"), "errors": number(3)})
    outside = sim.outside
    outside.ask((call("slow"), call("gate"), call("errors")), sim.now)
    sim.now += 0.1
    outside.answer(sim.now)
    assert [outside.answers[name].ok for name in ("gate", "errors")] == [False, True]
    assert outside.answers["errors"].value == 3
    sim.now += 10
    outside.answer(sim.now)
    assert "no answer within 10 s" in outside.answers["slow"].message
    outside.forget()
    outside.ask((call("slow"),), sim.now)
    outside.ask((), sim.now)
    sim.script["slow"] = yes()
    sim.now += 20
    assert not outside.answer(sim.now)


def test_a_restart_loses_answers() -> None:
    sim = Sim()
    sim.outside.ask((call("smoke"),), sim.now)
    sim.outside.answer(sim.now + 1)
    sim.restart()
    assert not sim.outside.answers
