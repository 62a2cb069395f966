"""The simulated cluster's ReplicaSets behave like real ones (spec freeze-and-adopt 4, K1 to K11; a real control plane was compared with).

And the beds that judge every write of a story can find fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.decision import Write
from harness.controller.core.ownership import controller_of
from harness.tests.controller_sim import (
    Refused,
    Sim,
    canary,
    deployment,
    image,
    image_of,
    never_ready,
    number,
    running,
)
from harness.tests.controller_sim_deployments import DESIRED, HASH
from harness.tests.controller_stories import new_image
from harness.tests.controller_stories_frozen import AB, WEIGHTS, Kept, freeze
from harness.tests.controller_stories_parked import PLAIN, Served

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"


def play(sim: Sim, seconds: float = 3.0) -> Sim:
    """Let time pass without a controller."""
    end = sim.now + seconds
    while sim.now < end:
        for _ in range(5):
            sim.play()
        sim.now = round(sim.now + 0.25, 3)
    return sim


def town(*images: str, **spec: Any) -> Sim:
    """A Deployment that ran these images, one after the other."""
    sim = Sim()
    sim.add("deployments", deployment(image=images[0] if images else "app:1", **spec))
    for one in images:
        sim.edit("deployments", "web", image(one))
        play(sim)
    return play(sim)


def sets(sim: Sim) -> dict[str, tuple[str, int]]:
    """Controller's kind and pods of each ReplicaSet, by image."""
    return {
        image_of(one): (
            (controller_of(one) or {}).get("kind", ""),
            len(sim.pod_uids(one["metadata"]["name"])),
        )
        for one in sim.replica_sets
    }


def of(sim: Sim, image_: str) -> JSON:
    return next(one for one in sim.replica_sets if image_of(one) == image_)


def let_go(sim: Sim) -> Sim:
    """Delete the Deployment and keep what it owns."""
    sim.remove("deployments", "web", "Orphan")
    assert sim.get("deployments", "web"), "letting go takes a while"
    return play(sim)


def hand(sim: Sim, image_: str, owners: list[JSON]) -> None:
    sim.edit("replicasets", of(sim, image_)["metadata"]["name"], {"metadata": {"ownerReferences": owners}})  # fmt: skip


def notes(sim: Sim, image_: str) -> JSON:
    found: JSON = of(sim, image_)["metadata"]["annotations"]
    return found


# -- whose a ReplicaSet is ---------------------------------------------------------------------------------------------------


def test_a_deployment_makes_a_replica_set_with_a_hash_of_its_own() -> None:
    sim = town("app:1")
    (made,) = sim.replica_sets
    digest = made["metadata"]["labels"][HASH]
    assert made["metadata"]["name"] == f"web-{digest}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: digest}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "web", HASH: digest}
    assert made["status"]["readyReplicas"] == 3
    assert sim.target["metadata"]["annotations"][REVISION] == "1"


def test_one_that_nobody_controls_is_adopted_with_its_pods() -> None:
    """K1, K4, K7."""
    sim = let_go(town("app:1"))
    pods = sim.pod_uids(of(sim, "app:1")["metadata"]["name"])
    assert sets(sim) == {"app:1": ("", 3)}
    sim.add("deployments", deployment())
    play(sim)
    assert sets(sim) == {"app:1": ("Deployment", 3)}
    assert sim.pod_uids(of(sim, "app:1")["metadata"]["name"]) == pods
    assert sim.target["status"]["readyReplicas"] == 3


def test_one_that_another_controls_is_ignored_and_keeps_and_repairs_its_pods() -> None:
    """K2, K10: the name is taken, so another hash is tried."""
    sim = let_go(town("app:1"))
    hand(sim, "app:1", [{"kind": "Canary", "name": "web", "uid": "u", "controller": True}])
    held = of(sim, "app:1")["metadata"]["name"]
    sim.add("deployments", deployment())
    play(sim)
    assert len(sim.replica_sets) == 2
    assert sim.target["status"]["collisionCount"] == 1
    assert len(sim.pod_uids(held)) == 3
    sim.pods[held].pop()
    assert sim.ready_pods(held) == 2
    play(sim)
    assert sim.ready_pods(held) == 3
    assert sim.ready_pods("web") == 3


def test_another_template_makes_it_an_old_one_that_goes() -> None:
    """K5."""
    sim = let_go(town("app:1"))
    sim.add("deployments", deployment(image="app:2"))
    play(sim)
    assert sets(sim) == {"app:1": ("Deployment", 0), "app:2": ("Deployment", 3)}


def test_one_that_is_not_selected_any_more_is_released() -> None:
    """K6."""
    sim = town("app:1")
    name = of(sim, "app:1")["metadata"]["name"]
    sim.edit("replicasets", name, {"metadata": {"labels": {"app": "other"}}})
    play(sim)
    assert controller_of(sim.objects["replicasets", name]) is None
    assert len(sim.pod_uids(name)) == 3
    assert sim.ready_pods("web") == 3


def test_a_deployment_that_is_being_deleted_adopts_nothing() -> None:
    """K3."""
    sim = let_go(town("app:1"))
    held = deployment()
    held["metadata"]["finalizers"] = ["somebody/else"]
    sim.add("deployments", held)
    sim.remove("deployments", "web")
    play(sim)
    assert sets(sim) == {"app:1": ("", 3)}


def test_of_equal_templates_the_oldest_wins() -> None:
    """K4."""
    sim = let_go(town("app:1"))
    first = sim.replica_sets[0]
    other = {**first, "metadata": {**first["metadata"], "name": "web-other"}}
    sim.add("replicasets", other)
    sim.add("deployments", deployment())
    play(sim)
    assert len(sim.pod_uids(first["metadata"]["name"])) == 3
    assert sim.pod_uids("web-other") == set()


# -- revisions and sizes -----------------------------------------------------------------------------------------------------


def test_a_template_put_back_gets_the_next_number_and_remembers_the_earlier_one() -> None:
    """K8."""
    sim = town("app:1", "app:2", "app:1")
    assert (notes(sim, "app:1")[REVISION], notes(sim, "app:1")[HISTORY]) == ("3", "1")
    assert sim.target["metadata"]["annotations"][REVISION] == "3"


def test_annotations_and_min_ready_seconds_go_along() -> None:
    """K9."""
    sim = town("app:1")
    sim.edit("deployments", "web", {"metadata": {"annotations": {"note": "x"}}, "spec": {"minReadySeconds": 4}})  # fmt: skip
    play(sim)
    assert notes(sim, "app:1")["note"] == "x"
    assert of(sim, "app:1")["spec"]["minReadySeconds"] == 4


def test_only_so_many_old_ones_are_kept() -> None:
    sim = town("app:1", "app:2", "app:3", revisionHistoryLimit=1)
    assert sorted(sets(sim)) == ["app:2", "app:3"]


def test_paused_it_scales_and_does_not_roll() -> None:
    sim = town("app:1", paused=True)
    assert sim.replica_sets == []
    sim = town("app:1")
    sim.edit("deployments", "web", {"spec": {**image("app:2")["spec"], "paused": True, "replicas": 5}})  # fmt: skip
    play(sim)
    assert sets(sim) == {"app:1": ("Deployment", 5)}
    assert sim.target["status"]["observedGeneration"] == sim.target["metadata"]["generation"]


def test_a_size_of_before_keeps_an_adopted_one_from_rolling() -> None:
    """K7: a real Deployment's controller scales first, has nothing to scale, and never comes to rolling."""
    sim = let_go(town("app:1"))
    sim.edit("replicasets", of(sim, "app:1")["metadata"]["name"], {"spec": {"replicas": 5}})
    sim.add("deployments", deployment(replicas=5))
    sim.edit("deployments", "web", image("app:2"))
    play(sim)
    assert sets(sim) == {"app:1": ("Deployment", 5)}
    assert notes(sim, "app:1")[DESIRED] == "3"
    sim.edit("deployments", "web", {"spec": {"replicas": 4}})
    play(sim)
    assert sets(sim) == {"app:1": ("Deployment", 0), "app:2": ("Deployment", 4)}


# -- what goes with it -------------------------------------------------------------------------------------------------------


def test_what_a_deployment_owns_goes_with_it_unless_another_owner_is_left() -> None:
    sim = town("app:1", "app:2")
    meta = of(sim, "app:2")["metadata"]
    sim.add("configmaps", {"metadata": {"name": "owner", "namespace": "n"}})
    other = {"kind": "ConfigMap", "name": "owner", "uid": sim.born[-1]}
    hand(sim, "app:2", [*meta["ownerReferences"], other])
    sim.remove("deployments", "web")
    play(sim)
    assert sets(sim) == {"app:2": ("", 3)}
    sim.remove("configmaps", "owner")
    play(sim)
    assert (sim.replica_sets, sim.ready_pods(meta["name"])) == ([], 0)


def test_in_the_foreground_it_goes_last() -> None:
    sim = town("app:1")
    sim.remove("deployments", "web", "Foreground")
    assert sim.get("deployments", "web")
    play(sim)
    assert (sim.get("deployments", "web"), sim.replica_sets, sim.pods["web"]) == (None, [], [])


def test_a_canary_takes_what_it_parked_with_it() -> None:
    sim = running(**PLAIN)
    parked = sim.status["parked"]["name"]
    assert sim.ready_pods(parked) == 3
    sim.remove("canaries", "web")
    play(sim)
    assert sim.get("replicasets", parked) is None


def test_only_the_very_object_that_was_meant_is_deleted() -> None:
    sim = town("app:1")
    meta = sim.target["metadata"]
    for version, uid in (("1", meta["uid"]), (meta["resourceVersion"], "uid-of-before")):
        with pytest.raises(Refused):
            sim.carry_out(Write("delete", "deployments", "web", {}, version, uid))
    sim.carry_out(Write("delete", "deployments", "web", {}, meta["resourceVersion"], meta["uid"]))
    assert sim.get("deployments", "web") is None


def test_replica_sets_are_seen_by_whom_they_concern_only() -> None:
    assert "replicasets" not in running().world().objects
    assert "replicasets" in running(**PLAIN).world().objects


# -- who judges --------------------------------------------------------------------------------------------------------------


def fails(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(3.5)
    sim.script["request-success-rate"] = number(50)
    sim.run(until="Failed")


def replaces(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(4.5)
    new_image(sim, "app:3")
    sim.run(2)


def empties(sim: Sim) -> None:
    """Somebody, with our name, takes the frozen pods away."""
    freeze(sim)
    body = {"spec": {"replicas": 0}}
    version = sim.target["metadata"]["resourceVersion"]
    sim._write(Write("patch", "deployments", "web", body, version))


def breaks(sim: Sim) -> None:
    sim.delay = never_ready("web", images=("app:3",))
    freeze(sim)
    sim.edit("deployments", "web", {"spec": {"strategy": {"type": "Recreate"}}})
    new_image(sim, "app:3")
    sim.run(2)


@pytest.mark.parametrize(
    ("spec", "act", "words"),
    [
        (AB, fails, "sent back"),
        (WEIGHTS, fails, "sent back"),
        (AB, replaces, "sent back"),
        (WEIGHTS, replaces, "sent back"),
    ],
)
def test_a_bed_finds_users_that_are_sent_back(
    spec: JSON, act: Callable[[Sim], None], words: str
) -> None:
    analysis = {**spec["analysis"], "freezeOnFailure": False}
    assert words in " ".join(judged(Kept(), {**spec, "analysis": analysis}, act))


@pytest.mark.parametrize(
    ("act", "words"), [(empties, "taken away"), (breaks, "nobody answers"), (freeze, "")]
)
def test_a_bed_finds_frozen_pods_that_go(act: Callable[[Sim], None], words: str) -> None:
    found = judged(Kept(), AB, act)
    assert words in " ".join(found)
    assert bool(found) == bool(words)


def test_a_bed_finds_moments_with_fewer_pods() -> None:
    def lose(sim: Sim) -> None:
        sim.pods[sim.status["parked"]["name"]].pop()
        sim.settle()

    assert "2 pods serve" in " ".join(judged(Served(), PLAIN, lose))


def judged(sim: Sim, spec: JSON, act: Callable[[Sim], None]) -> list[str]:
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**spec))
    sim.run(until="Initialized")
    act(sim)
    return sim.problems
