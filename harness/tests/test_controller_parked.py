"""Deployments whose primary is a parked ReplicaSet: what is read off hand-made objects, and what is written."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.controller.core.names import names_of
from harness.controller.core.ownership import owner_reference
from harness.controller.core.snapshots import Fence
from harness.controller.core.targets.base import Pair
from harness.controller.core.targets.parked import (
    PARKED,
    PARKED_BY,
    PROMOTED_REVISION,
    current_set,
    parked_by,
    primary_set,
    set_ready,
)
from harness.controller.core.targets.registry import target_for
from harness.tests.controller_sim_make import canary, deployment, merge

JSON = dict[str, Any]
KIND = "pod-template-hash"


def rollout(status: JSON | None = None) -> JSON:
    obj = canary(analysis={"interval": "1s", "iterations": 2, "restore": "adopt"})
    obj["metadata"]["uid"] = "u-canary"
    return obj | ({"status": status} if status is not None else {})


def target(image: str = "app:1", replicas: int = 3, **spec: Any) -> JSON:
    """A Deployment that is rolled out."""
    obj = deployment(image=image, replicas=replicas, **spec)
    meta = {"uid": "u-web", "resourceVersion": "7", "generation": 2}
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
    result: JSON = merge(obj, {"metadata": meta, "status": {"observedGeneration": 2, **counts}})
    return result


def found(
    name: str, image: str = "app:1", *, owner: str = "u-web", number: int = 0, **more: Any
) -> JSON:
    """A ReplicaSet of a target with that image, all of whose pods are ready; `more`: replicas, ready, made, revision."""
    replicas = more.get("replicas", 3)
    template = copy.deepcopy(deployment(image=image)["spec"]["template"])
    template["metadata"]["labels"][KIND] = name
    kind = {"u-web": "Deployment", "u-canary": "Canary"}.get(owner, "Deployment")
    owners = [{"kind": kind, "name": "web", "uid": owner, "controller": True}] if owner else []
    notes = {PARKED: str(number), PROMOTED_REVISION: more.get("revision", "v2:00")}
    return {
        "metadata": {
            "name": name,
            "uid": f"u-{name}",
            "resourceVersion": "5",
            "generation": 1,
            "creationTimestamp": more.get("made", "2026-01-01T00:00:00Z"),
            "labels": {"app": "web", KIND: name},
            "annotations": notes if number else {},
            "ownerReferences": owners,
        },
        "spec": {"replicas": replicas, "template": template},
        "status": {"observedGeneration": 1, "availableReplicas": more.get("ready", replicas)},
    }


def pair(
    held: JSON, *sets: JSON, status: JSON | None = None, revision: str = "v2:00", **more: Any
) -> Pair:
    owner = rollout(status)
    objects = {"replicasets": {one["metadata"]["name"]: one for one in sets}}
    return Pair(owner, names_of(owner, held), held, None, objects, revision, **more)


def kind() -> Any:
    return target_for(rollout())


def at(phase: str, **more: Any) -> JSON:
    return {"phase": phase, "lastPromotedSpec": "v2:00", "parked": {}} | more


# -- which one serves, which one is the target's ---------------------------------------------------------------------------------


def test_the_one_parked_last_serves() -> None:
    old, new = found("a", owner="u-canary", number=2), found("b", owner="u-canary", number=10)
    others = found("c", owner="u-other", number=11), found("d", owner="u-canary"), found("e")
    sets = {one["metadata"]["name"]: one for one in (old, new, *others)}
    assert primary_set(rollout(), target(), sets) is new
    assert parked_by(rollout(), new)
    assert not parked_by(rollout(), sets["e"])
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert primary_set(rollout(), target(), sets) is old


@pytest.mark.parametrize("owner", ["u-web", ""])
def test_one_that_was_given_back_serves_as_long_as_the_status_names_it(owner: str) -> None:
    sets = {"a": found("a", owner=owner, number=3)}
    assert primary_set(rollout({"parked": {"uid": "u-a"}}), target(), sets) is sets["a"]
    assert primary_set(rollout({"parked": {}}), target(), sets) is None
    assert (primary_set(rollout({"parked": {"uid": "u-a"}}), None, sets) is None) == bool(owner)


def test_the_oldest_with_the_targets_template_is_current() -> None:
    """K4; the label that tells revisions apart is not compared."""
    young = found("a", made="2026-01-02T00:00:00Z")
    sets = {
        "a": young,
        "b": found("b"),
        "c": found("c", "app:0", made="2025-01-01T00:00:00Z"),
        "d": found("d", owner="u-canary", number=1, made="2025-01-01T00:00:00Z"),
    }
    assert current_set(target(), sets) is sets["b"]
    assert current_set(target("app:9"), sets) is None


def test_a_set_is_ready_when_its_own_status_says_so() -> None:
    assert set_ready(found("a")).ready
    assert "2 of 3" in set_ready(found("a", ready=2)).message
    assert set_ready(found("a", ready=2), 60).ready
    behind = merge(found("a"), {"metadata": {"generation": 2}})
    assert "taken up" in set_ready(behind).message


def test_the_fence_holds_no_revision() -> None:
    """Numbers of revisions come again once a ReplicaSet was parked, so they prove nothing."""
    held = merge(
        target(), {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "4"}}}
    )
    assert kind().snapshot(held).fence == Fence("u-web", "2")


# -- parking -----------------------------------------------------------------------------------------------------------------


def test_parking_is_one_write_and_then_the_target_goes_to_zero() -> None:
    running = found("a")
    plain = {"kind": "ConfigMap", "name": "app", "uid": "u-app"}
    running["metadata"]["ownerReferences"].append(plain)
    park, zero = kind().create(pair(target(), running, found("b", owner="u-other", number=4)))
    assert (park.verb, park.resource, park.name, park.precondition) == (
        "patch",
        "replicasets",
        "a",
        "5",
    )
    assert park.body == {
        "metadata": {
            "ownerReferences": [plain, owner_reference(rollout())],
            "annotations": {PROMOTED_REVISION: "v2:00", PARKED: "5", PARKED_BY: "web"},
        }
    }
    assert (zero.resource, zero.body, zero.precondition) == (
        "deployments",
        {"spec": {"replicas": 0}},
        "7",
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": {"paused": True}}, "paused"),
        ({"metadata": {"generation": 3}}, "taken up"),
        ({"status": {"availableReplicas": 2}}, "2 of 3"),
        ({"status": {"replicas": 4}}, "old pods"),
    ],
)
def test_only_what_is_rolled_out_is_parked(change: JSON, words: str) -> None:
    held = pair(merge(target(), change), found("a"))
    assert kind().create(held) == ()
    assert words in kind().primary_ready(held, 100).message


def test_a_zero_that_a_controller_left_behind_becomes_a_number_before_anything_is_parked() -> None:
    held = target(replicas=0)
    entry = {"manager": "rollout-drill-controller", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    held["metadata"]["managedFields"] = [entry]
    (write,) = kind().create(pair(held, found("a", replicas=0)))
    assert (write.resource, write.body) == ("deployments", {"spec": {"replicas": 1}})


def test_a_promotion_parks_what_was_analysed_with_as_many_pods_as_served() -> None:
    serving = found("a", owner="u-canary", number=3, replicas=5)
    held = target("app:2", replicas=3)
    entry = {"manager": "rollout-drill-controller", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    held["metadata"]["managedFields"] = [entry]
    both = pair(held, serving, found("b", "app:2"), revision="v2:02")
    park, zero = kind().promote(both)
    assert park.name == "b"
    assert park.body["metadata"]["annotations"][PARKED] == "4"
    assert park.body["spec"] == {"replicas": 5}
    assert zero.body == {"spec": {"replicas": 0}}


def test_a_promotion_that_is_repeated_parks_nothing_twice() -> None:
    done = found("b", "app:2", owner="u-canary", number=4, revision="v2:02")
    (zero,) = kind().promote(pair(target("app:2"), done, revision="v2:02"))
    assert zero.body == {"spec": {"replicas": 0}}
    assert kind().promote(pair(target("app:2", replicas=0), done, revision="v2:02")) == ()


def test_a_paused_target_is_neither_ready_nor_promoted() -> None:
    """Without its ReplicaSet it would scale up an older one, which may be one that failed."""
    both = pair(target("app:2", paused=True), found("b", "app:2"), revision="v2:02")
    assert kind().promote(both) == ()
    assert "paused" in kind().canary_ready(both, 100).message


def test_a_parking_that_was_cut_off_is_ended() -> None:
    done = found("b", "app:2", owner="u-canary", number=4, revision="v2:02")
    both = pair(target("app:2"), done, status=at("Promoting"), revision="v2:02")
    (zero,) = kind().keep(both)
    assert zero.body == {"spec": {"replicas": 0}}
    idle = pair(target("app:2"), done, status=at("Succeeded"), revision="v2:02")
    assert kind().keep(idle) == ()  # somebody scaled it up: theirs (A10)


def test_what_a_restored_target_owns_is_taken_back_before_it_rolls() -> None:
    lent = found("a", number=3)
    status = at("Failed", parked={"uid": "u-a"})
    rest = pair(target(paused=True), lent, status=status)
    assert kind().idle(rest)
    assert kind().keep(rest) == ()
    assert kind().to_zero(rest) == ()
    park, resume = kind().keep(pair(target("app:2", paused=True), lent, status=status))
    assert park.body["metadata"]["annotations"][PARKED] == "4"
    assert resume.body == {"spec": {"replicas": 0, "paused": None}}
    under_way = status | {"restore": {"uid": "u"}}
    assert kind().keep(pair(target("app:2", paused=True), lent, status=under_way)) == ()


# -- what served before ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "selected", "goes"),
    [
        (at("Succeeded"), "b", True),
        (at("Failed"), "b", True),
        (at("Succeeded"), "a", False),
        (at("Promoting"), "b", False),
        (at("Finalising"), "b", False),
        (
            at("Failed", conditions=[{"type": "Promoted", "reason": "PromotionFailed"}]),
            "b",
            False,
        ),
    ],
)
def test_what_served_before_goes_when_nothing_leads_there(
    status: JSON, selected: str, *, goes: bool
) -> None:
    old, new = found("a", owner="u-canary", number=1), found("b", owner="u-canary", number=2)
    both = pair(target(), old, new, status=status, selected=frozenset({selected}))
    writes = kind().leftovers(both)
    assert [(one.verb, one.name, one.uid) for one in writes] == [("delete", "a", "u-a")] * goes


# -- Services ----------------------------------------------------------------------------------------------------------------


def test_services_tell_both_apart_by_the_hash() -> None:
    serving, analysed = found("a", owner="u-canary", number=1), found("b", "app:2")
    both = pair(target("app:2"), serving, analysed, status=at("Progressing"))
    select = kind().selector
    for role in ("apex", "primary"):
        assert select(both, role, {}) == {"app": "web", KIND: "a"}
    assert select(both, "canary", {}) == {"app": "web", KIND: "b"}
    idle = pair(target("app:2", replicas=0), serving, analysed, status=at("Succeeded"))
    assert select(idle, "canary", {}) == {"app": "web", KIND: "a"}
    assert select(pair(target()), "primary", {}) == {"app": "web"}


def test_a_service_is_led_to_a_newly_parked_one_once_that_is_ready() -> None:
    old, new = (
        found("a", owner="u-canary", number=1),
        found("b", "app:2", owner="u-canary", number=2, ready=2),
    )
    both = pair(target("app:2", replicas=0), old, new, status=at("Promoting"))
    held = {"app": "web", KIND: "a"}
    assert kind().selector(both, "apex", held) == held
    new["status"]["availableReplicas"] = 3
    assert kind().selector(both, "apex", held) == {"app": "web", KIND: "b"}
    new["status"]["availableReplicas"] = 0
    assert kind().selector(both, "apex", {"app": "web", KIND: "gone"}) == {"app": "web", KIND: "b"}


def test_canary_traffic_stays_with_what_was_analysed_until_it_was_moved_away() -> None:
    """A newer template has no pods yet when it is seen."""
    analysed, newer = found("b", "app:2"), found("c", "app:3", replicas=0)
    serving = found("a", owner="u-canary", number=1)
    known = kind().snapshot(target("app:2")).hash
    status = at("Progressing", canaryWeight=50, lastAppliedSpec=known)
    both = pair(target("app:3"), serving, analysed, newer, status=status)
    assert kind().selector(both, "canary", {})[KIND] == "b"
    status["lastAppliedSpec"] = kind().snapshot(target("app:3")).hash
    assert kind().selector(both, "canary", {})[KIND] == "c"
