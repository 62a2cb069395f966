"""`analysis.restore: adopt` from end to end on a virtual clock: who may have a parked primary, and what it is like to have one."""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_sim import Sim, canary, daemonset, deployment, image, service
from harness.tests.controller_sim_make import target_ref

JSON = dict[str, Any]
ANALYSIS: JSON = {"interval": "2s", "threshold": 1, "iterations": 2, "restore": "adopt"}
HASH = "pod-template-hash"


def adopting(replicas: int = 3, **spec: Any) -> Sim:
    """A namespace with a target that runs, and a Canary that was just made."""
    sim = Sim()
    sim.add("deployments", deployment(replicas=replicas))
    sim.run(10)
    sim.add("canaries", canary(**{"analysis": ANALYSIS, **spec}))
    return sim


def held(sim: Sim, plural: str, name: str) -> JSON:
    obj = sim.get(plural, name)
    assert obj is not None
    return obj


def refers(name: str, kind: str = "configMapRef") -> JSON:
    container = {"name": "c", "image": "app:1", "envFrom": [{kind: {"name": name}}]}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def config(name: str = "env", **more: Any) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n"},
        "data": {"a": "1"},
    } | more


def told(sim: Sim) -> str:
    accepted = sim.condition("Accepted")
    return str(accepted["message"]) if accepted.get("status") == "False" else ""


# -- what it is like -----------------------------------------------------------------------------------------------------------


def test_from_the_first_sight_to_a_promotion_every_pod_that_serves_stays() -> None:
    sim = adopting()
    (first,) = [one["metadata"]["name"] for one in sim.replica_sets]
    pods = sim.pod_uids(first)
    assert len(pods) == 3
    sim.run(until="Initialized")
    sim.run(5)
    assert sim.pod_uids(first) == pods
    assert sim.get("deployments", "web-primary") is None
    assert sim.status["parked"]["name"] == first
    assert sim.target["spec"]["replicas"] == 0
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(1)
    analysed = held(sim, "services", "web-canary")["spec"]["selector"][HASH]
    sim.run(until="Succeeded")
    serving = sim.status["parked"]
    assert (
        serving["hash"] == analysed != held(sim, "replicasets", first)["metadata"]["labels"][HASH]
    )
    assert held(sim, "services", "web")["spec"]["selector"] == {"app": "web", HASH: analysed}
    sim.run(30)
    # What served before is gone, and the target waits at zero.
    assert sim.get("replicasets", first) is None
    assert sim.behind("web") == 3
    assert sim.target["spec"]["replicas"] == 0
    assert sum(one["spec"]["replicas"] for one in sim.replica_sets) == 3


def test_pods_that_served_before_go_an_interval_after_the_promotion() -> None:
    """Whoever still sends there is to find somebody."""
    sim = adopting()
    (first,) = [one["metadata"]["name"] for one in sim.replica_sets]
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    then = sim.now
    sim.run(1)
    assert sim.get("replicasets", first) is not None
    sim.run(5)
    assert sim.get("replicasets", first) is None
    assert sim.now > then + 2


def test_a_parked_one_that_somebody_deletes_is_made_up_for_with_as_many_pods() -> None:
    sim = adopting()
    sim.run(until="Initialized")
    sim.remove("replicasets", sim.status["parked"]["name"])
    sim.run(20)
    assert sim.behind("web") == 3
    assert sim.behind("web-primary") == 3
    assert sim.status["parked"]["replicas"] == 3
    assert held(sim, "replicasets", sim.status["parked"]["name"])
    assert sim.target["spec"]["replicas"] == 0
    assert sim.phases() == ["Initializing", "Initialized"]


def test_a_promotion_whose_status_was_lost_is_said_and_not_analysed_again() -> None:
    sim = adopting()
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")

    def lose(patch: JSON) -> None:
        if patch.get("phase") == "Promoting":
            sim.before_status = None
            sim.edit("canaries", "web", {"metadata": {"labels": {"a": "b"}}})

    sim.before_status = lose
    sim.run(until="Succeeded")
    sim.run(20)
    assert sim.phases() == [
        "Initializing",
        "Initialized",
        "Progressing",
        "Promoting",
        "Finalising",
        "Succeeded",
    ]
    assert sim.behind("web") == 3


def test_with_revert_on_deletion_the_target_serves_before_the_parked_one_goes() -> None:
    sim = Sim()
    sim.add("services", service("web"))  # a user's own, which stays
    sim.add("deployments", deployment())
    sim.run(10)
    sim.add("canaries", canary(analysis=ANALYSIS, revertOnDeletion=True))
    sim.run(until="Initialized")
    assert sim.behind("web") == 3
    assert sim.ready_pods("web") == 0
    sim.remove("canaries", "web")
    sim.run(until="gone")
    sim.run(5)
    assert sim.behind("web") == 3
    assert sim.ready_pods("web") == 3
    assert held(sim, "services", "web")["spec"]["selector"] == {"app": "web"}
    assert sum(one["spec"]["replicas"] for one in sim.replica_sets) == 3
    assert min(one.serving or 0 for one in sim.samples if one.t > 0) == 3


# -- who may have it -------------------------------------------------------------------------------------------------------------


def test_a_config_that_can_change_is_refused_with_the_ways_out() -> None:
    """A6: both versions would share it under one name."""
    sim = adopting()
    sim.run(until="Initialized")
    sim.add("configmaps", config())
    sim.edit("deployments", "web", refers("env"))
    sim.run(20)
    said = told(sim)
    assert sim.condition("Accepted")["reason"] == "Invalid"
    for word in ("ConfigMap 'env'", "immutable: true", "disabled", "'revert'"):
        assert word in said
    assert sim.phase == "Initialized"
    sim.edit("configmaps", "env", {"immutable": True})
    sim.run(until="Succeeded")
    assert told(sim) == ""
    assert sim.get("configmaps", "env-primary") is None


@pytest.mark.parametrize(
    "free",
    [
        {"immutable": True},
        {
            "metadata": {
                "name": "env",
                "namespace": "n",
                "annotations": {"flagger.app/config-tracking": "disabled"},
            }
        },
    ],
)
def test_configs_that_cannot_change_or_are_not_tracked_are_no_matter(free: JSON) -> None:
    sim = Sim()
    sim.add("configmaps", config(**free))
    sim.add("deployments", deployment())
    sim.edit("deployments", "web", refers("env"))
    sim.run(10)
    sim.add("canaries", canary(analysis=ANALYSIS))
    sim.run(until="Initialized")
    assert told(sim) == ""


def test_an_autoscaler_of_the_canarys_is_refused() -> None:
    sim = adopting(
        autoscalerRef={
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "name": "a",
        }
    )
    sim.run(20)
    assert "name changes with every promotion" in told(sim)
    assert sim.actions == [("status", "canaries", "web")]


def test_other_kinds_are_refused() -> None:
    sim = Sim()
    sim.add("daemonsets", daemonset())
    sim.add("canaries", canary(analysis=ANALYSIS, targetRef=target_ref("DaemonSet")))
    sim.run(20)
    assert "allowed kind of spec.targetRef: Deployment" in told(sim)


def test_it_is_chosen_once() -> None:
    """Neither does an ordinary primary become a parked one later, nor the other way round."""
    sim = adopting(analysis={**ANALYSIS, "restore": "revert"})
    sim.run(until="Initialized")
    sim.edit("canaries", "web", {"spec": {"analysis": {"restore": "adopt"}}})
    before = len(sim.actions)
    sim.run(20)
    assert "chosen when a Canary is initialised" in told(sim)
    assert sim.actions[before:] == [("status", "canaries", "web")]
    sim.edit("canaries", "web", {"spec": {"analysis": {"restore": "revert"}}})
    sim.run(20)
    assert told(sim) == ""

    sim = adopting()
    sim.run(until="Initialized")
    sim.edit("canaries", "web", {"spec": {"analysis": {"restore": None}}})
    before = len(sim.actions)
    sim.run(20)
    assert "was chosen when this Canary was initialised" in told(sim)
    assert sim.actions[before:] == [("status", "canaries", "web")]
    assert sim.behind("web") == 3


def test_a_primary_that_was_made_before_is_no_parked_one() -> None:
    """The field came while the bootstrap was under way."""
    sim = adopting(analysis={**ANALYSIS, "restore": "revert"})
    while sim.get("deployments", "web-primary") is None:
        sim.controller_pass()
    sim.edit("canaries", "web", {"spec": {"analysis": {"restore": "adopt"}}})
    sim.run(20)
    assert "'web-primary' was made already" in told(sim)


def test_pods_that_keep_apart_from_all_others_are_warned_of() -> None:
    """Target and primary carry the same label (A5)."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for keys, warned in ((None, True), ([HASH], False)):
        wanted = term | ({"matchLabelKeys": keys} if keys else {})
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [wanted]}}
        sim = adopting()
        sim.edit("deployments", "web", {"spec": {"template": {"spec": {"affinity": affinity}}}})
        sim.run(until="Initialized")
        message = sim.condition("Warned").get("message", "")
        assert ("each needs a place by kubernetes.io/hostname" in message) == warned
