"""Restoring a target by adoption, step by step: what each state of the objects leads to (spec freeze-and-adopt 5 and 6).

The whole way, with a controller that ends at every write, is in `test_controller_adoption_stories.py`; the real Deployment controller in
`test_controller_adoption_embedded.py`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.controller.core import World, decide
from harness.controller.core import adoption as ad
from harness.controller.core.actions import adoption as act
from harness.controller.core.adoption import Stage
from harness.controller.core.canonical import template_hash
from harness.controller.core.lifecycle import FINALIZER
from harness.controller.core.moments import stamp
from harness.controller.core.ownership import owner_reference
from harness.controller.core.scene import Scene
from harness.controller.core.targets.parked import PARKED, PROMOTED_REVISION
from harness.tests.controller_sim_make import canary, deployment, merge

JSON = dict[str, Any]
NOW = 1_800_000_000.0
GOOD = template_hash(deployment(image="app:1")["spec"]["template"])
BAD = template_hash(deployment(image="app:2")["spec"]["template"])
ANALYSIS = {"interval": "1s", "threshold": 1, "iterations": 1, "restore": "adopt"}


def target(image: str = "app:2", uid: str = "t1", replicas: int = 0, **spec: Any) -> JSON:
    """A Deployment as the API server holds it; `app:2` is what failed."""
    obj = deployment(image=image, replicas=replicas, **spec)
    obj["metadata"] |= {
        "uid": uid,
        "resourceVersion": "7",
        "generation": 5,
        "creationTimestamp": stamp(NOW - 5),
        "labels": {"team": "a", "argocd.argoproj.io/instance": "web"},
        "annotations": {"deployment.kubernetes.io/revision": "2", "owner": "us"},
        "managedFields": [],
        "selfLink": "/x",
    }
    obj["status"] = {"observedGeneration": 5, "replicas": replicas}
    return obj


def replicaset(owner: JSON | None, replicas: int = 3, ready: int | None = None) -> JSON:
    """The promoted ReplicaSet, as the Deployment's controller made it, with an owner."""
    template = deployment(image="app:1")["spec"]["template"]
    template["metadata"]["labels"] |= {"pod-template-hash": "abc"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": "web-abc",
            "namespace": "n",
            "uid": "s1",
            "resourceVersion": "9",
            "annotations": {PARKED: "1", PROMOTED_REVISION: GOOD},
            "ownerReferences": [owner] if owner else [],
        },
        "spec": {"replicas": replicas, "template": template},
        "status": {"replicas": replicas, "readyReplicas": replicas if ready is None else ready},
    }


def owned_by(target_: JSON) -> JSON:
    meta = target_["metadata"]
    return {"kind": "Deployment", "name": meta["name"], "uid": meta["uid"], "controller": True}


@dataclass
class Case:
    """A Canary whose run has failed, and what there is."""

    target: JSON | None
    owner: JSON | str | None = "canary"
    """Who controls the promoted ReplicaSet."""
    intent: bool = True
    more: JSON = field(default_factory=dict)
    """Goes over the Canary."""
    sets: dict[str, JSON] | None = None
    world: JSON = field(default_factory=dict)
    condition: tuple[str, str] = ("Unknown", "Pending")
    finalizers: tuple[str, ...] = (FINALIZER,)

    @property
    def canary(self) -> JSON:
        obj = canary(analysis=ANALYSIS, progressDeadlineSeconds=60)
        obj["metadata"] |= {
            "uid": "c1",
            "resourceVersion": "3",
            "generation": 1,
            "finalizers": list(self.finalizers),
        }
        state, reason = self.condition
        told = {"type": "Restored", "status": state, "reason": reason, "message": "m"}
        obj["status"] = {
            "phase": "Failed",
            "lastAppliedSpec": BAD,
            "lastPromotedSpec": GOOD,
            "lastTrackedRevision": "t1/5/2",
            "parked": {"name": "web-abc", "uid": "s1", "hash": "abc"},
            "conditions": [
                told,
                {"type": "Promoted", "status": "False", "reason": "Failed", "message": "m"},
            ],
        }
        if self.intent:
            gone = target()
            manifest = ad.manifest_of(gone, replicaset(None))
            held = ad.Intent("t1", "web-abc", "s1", GOOD, BAD, manifest)
            obj["status"]["restore"] = held.stored()
        return dict(merge(obj, self.more))

    @property
    def scene(self) -> Scene:
        canary_ = self.canary
        owner = owner_reference(canary_) if self.owner == "canary" else self.owner
        assert not isinstance(owner, str)
        sets = {"web-abc": replicaset(owner)} if self.sets is None else self.sets
        objects = {"replicasets": sets, "deployments": {}}
        return Scene(World(target=self.target, objects=objects, **self.world), canary_, NOW)

    def decide(self) -> Any:
        scene = self.scene
        return decide(scene.world, scene.canary, NOW)

    def decide_intent(self) -> Any:
        """What the row that begins decides; rows above it need the whole layout."""
        scene = self.scene
        assert ad.due(scene)
        return act.intend(scene)

    def status(self) -> JSON:
        """The status after the decision."""
        scene = self.scene
        return dict(merge(scene.canary["status"], decide(scene.world, scene.canary, NOW).status))


def restored(status: JSON) -> tuple[str, str]:
    told = next(one for one in status["conditions"] if one["type"] == "Restored")
    return told["status"], told["reason"]


NEW = target("app:1", "t2", 3, paused=True)


# -- what is made again ------------------------------------------------------------------------------------------------------


def test_the_manifest_has_the_targets_own_metadata_and_the_promoted_template() -> None:
    old = target(strategy={"type": "Recreate"}, minReadySeconds=7, revisionHistoryLimit=2)
    old["metadata"] |= {"finalizers": ["x/y"], "ownerReferences": [{"kind": "App", "uid": "u"}]}
    made = ad.manifest_of(old, replicaset(None, 4))
    assert made["metadata"] == {
        "name": "web",
        "namespace": "n",
        "labels": old["metadata"]["labels"],
        "annotations": {"owner": "us"},
        "finalizers": ["x/y"],
        "ownerReferences": [{"kind": "App", "uid": "u"}],
    }
    assert template_hash(made["spec"]["template"]) == GOOD
    assert made["spec"]["replicas"] == 4
    kept = ("strategy", "minReadySeconds", "revisionHistoryLimit", "selector")
    assert {key: made["spec"][key] for key in kept} == {key: old["spec"][key] for key in kept}
    assert "status" not in made
    assert "paused" not in made["spec"]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case(target(), sets={}, intent=False), "NoTemplate"),
        (Case(target(), owner=owned_by(target()), intent=False), "NoTemplate"),
        (Case(target(paused=True), intent=False), "Paused"),
        (Case(target(), intent=False, more={"status": {"lastPromotedSpec": "v2:1"}}), "NoTemplate"),
    ],
    ids=["no set", "not parked", "paused", "another template"],
)
def test_what_cannot_be_made_again_is_said_and_left_alone(case: Case, reason: str) -> None:
    decision = case.decide_intent()
    assert decision.writes == ()
    assert restored(merge(case.canary["status"], decision.status)) == ("False", reason)
    assert [note.severity for note in decision.notes] == ["Warning"]


def test_a_manifest_that_is_too_large_for_a_status_is_refused() -> None:
    big = target()
    big["metadata"]["annotations"]["notes"] = "x" * ad.LARGEST
    found = ad.obstacle(big, replicaset(None), GOOD)
    assert found is not None
    assert found.reason == "TooLarge"
    del big["metadata"]["annotations"]["notes"]
    assert ad.obstacle(big, replicaset(None), GOOD) is None


def test_the_intent_is_written_before_anything_is_taken_away() -> None:
    case = Case(target(), intent=False)
    decision = case.decide_intent()
    assert decision.writes == ()
    held = decision.status["restore"]
    assert held["uid"] == "t1"
    assert held["replicaSet"] == {"name": "web-abc", "uid": "s1"}
    assert (held["promoted"], held["failed"]) == (GOOD, BAD)
    assert held["manifest"]["metadata"]["name"] == "web"


# -- step by step ------------------------------------------------------------------------------------------------------------


def test_the_canary_is_held_before_its_target_goes() -> None:
    decision = Case(target(), finalizers=()).decide()
    assert [(w.verb, w.resource) for w in decision.writes] == [("patch", "canaries")]
    assert decision.writes[0].body == {"metadata": {"finalizers": [FINALIZER]}}


def test_only_the_very_target_that_failed_is_deleted() -> None:
    decision = Case(target()).decide()
    (write,) = decision.writes
    assert (write.verb, write.resource, write.name) == ("delete", "deployments", "web")
    assert (write.uid, write.precondition) == ("t1", "7")
    assert decision.row == "adopt-delete"


def test_what_was_changed_since_the_intent_is_written_down_first() -> None:
    moved = target()
    moved["metadata"]["labels"] = {"team": "b"}
    case = Case(moved)
    assert case.decide().row == "adopt-renew"
    manifest = case.status()["restore"]["manifest"]
    assert manifest["metadata"]["labels"] == {"team": "b"}
    assert manifest == ad.manifest_of(moved, replicaset(None))


@pytest.mark.parametrize(
    "case",
    [
        Case(target("app:3")),
        Case(target(), more={"spec": {"analysis": {"restore": "revert"}}}),
        Case(target(), more={"metadata": {"deletionTimestamp": stamp(NOW)}}),
        Case(target(paused=True)),
        Case(target(), sets={}),
    ],
    ids=["new revision", "not asked for", "deleted", "paused", "set gone"],
)
def test_an_intent_that_is_overruled_before_the_deletion_is_given_up(case: Case) -> None:
    assert case.decide().row == "adopt-withdraw"
    status = case.status()
    assert "restore" not in status
    assert restored(status) == ("False", "Withdrawn")


def test_suspended_nothing_begins_but_what_was_begun_is_finished() -> None:
    still = {"spec": {"suspend": True}}
    assert Case(target(), more=still).decide().row == "suspended"
    assert Case(None, more=still).decide().row == "adopt-create"
    assert Case(NEW, more=still).decide().row == "adopt-release"


def test_a_target_that_does_not_go_is_reported_and_never_forced() -> None:
    going = target()
    going["metadata"] |= {"deletionTimestamp": stamp(NOW - 10), "finalizers": ["x/y"]}
    early = Case(going).decide()
    assert (early.writes, early.status, early.requeue_after) == ((), None, 50.0)
    going["metadata"]["deletionTimestamp"] = stamp(NOW - 60)
    late = Case(going)
    assert late.decide().writes == ()
    assert restored(late.status()) == ("False", "Blocked")
    assert "x/y" in late.decide().notes[0].message
    again = Case(going, more={"status": late.status()})
    assert again.decide().status is None


def test_the_target_is_made_paused_with_as_many_pods_as_are_parked() -> None:
    sets = {"web-abc": replicaset(owner_reference(Case(None).canary), 5)}
    (write,) = Case(None, sets=sets).decide().writes
    assert (write.verb, write.resource) == ("create", "deployments")
    assert write.body["spec"]["paused"] is True
    assert write.body["spec"]["replicas"] == 5
    assert template_hash(write.body["spec"]["template"]) == GOOD


def test_without_the_replicaset_it_makes_its_pods_itself() -> None:
    (write,) = Case(None, sets={}).decide().writes
    assert "paused" not in write.body["spec"]
    assert write.body["spec"]["replicas"] == 3
    ended = Case(target("app:1", "t2", 3), sets={})
    assert ended.decide().row == "adopt-lost"
    assert restored(ended.status()) == ("False", "NothingAdopted")


def test_a_target_that_cannot_be_made_says_so_on_the_canary() -> None:
    case = Case(None, world={"refused_write": "exceeded quota"})
    assert case.decide().writes == ()
    assert restored(case.status()) == ("False", "Blocked")
    told = Case(None, world={"refused_write": "exceeded quota"}, more={"status": case.status()})
    assert [write.verb for write in told.decide().writes] == ["create"]


def test_the_set_is_let_go_only_by_a_canary_whose_target_can_do_no_harm() -> None:
    small = target("app:1", "t2", 2, paused=True)
    (write,) = Case(small).decide().writes
    assert (write.resource, write.body) == ("deployments", {"spec": {"replicas": 3}})
    decision = Case(NEW).decide()
    (write,) = decision.writes
    assert (write.resource, write.name, write.precondition) == ("replicasets", "web-abc", "9")
    assert write.body == {"metadata": {"ownerReferences": []}}


def test_nothing_is_let_go_to_a_target_that_is_not_paused() -> None:
    case = Case(target("app:1", "t2", 3))
    decision = case.decide()
    assert [(w.resource, w.body) for w in decision.writes] == [
        ("deployments", {"spec": {"replicas": 0}})
    ]
    assert restored(case.status()) == ("True", "MadeByOthers")


def test_in_the_end_the_new_target_is_what_is_applied_and_promoted() -> None:
    case = Case(NEW, owner=owned_by(NEW))
    assert case.decide().row == "adopt-verify"
    status = case.status()
    assert restored(status) == ("True", "Adopted")
    assert (status["lastAppliedSpec"], status["lastPromotedSpec"]) == (GOOD, GOOD)
    assert status["lastTrackedRevision"] == "t2/5"
    assert status["lastFailedSpec"] == BAD
    assert "restore" not in status
    assert "adopted 3 of 3 ready pods" in case.decide().notes[0].message


def test_it_is_not_the_end_before_the_new_target_has_counted_its_pods() -> None:
    early = copy.deepcopy(NEW)
    early["status"] = {"observedGeneration": 5}
    decision = Case(early, owner=owned_by(NEW)).decide()
    assert (decision.writes, decision.status) == ((), None)
    assert decision.requeue_after == pytest.approx(55)


def test_no_adopted_pod_is_a_failure() -> None:
    case = Case(NEW, sets={"web-abc": replicaset(owned_by(NEW), ready=0)})
    assert restored(case.status()) == ("False", "NothingAdopted")


def test_pods_of_its_own_are_a_failure() -> None:
    twin = replicaset(owned_by(NEW))
    twin["metadata"] |= {"name": "web-xyz", "uid": "s2"}
    sets = {"web-abc": replicaset(owned_by(NEW)), "web-xyz": twin}
    assert restored(Case(NEW, sets=sets).status()) == ("False", "RolledAgain")
    twin["spec"]["replicas"] = 0
    assert restored(Case(NEW, sets=sets).status()) == ("True", "Adopted")


def test_a_target_that_others_made_from_another_template_is_analysed_even_if_it_failed_before() -> (
    None
):
    for image in ("app:2", "app:3"):
        case = Case(target(image, "t2", 3))
        decision = case.decide()
        assert decision.row == "adopt-overtaken"
        assert decision.writes == ()
        status = case.status()
        assert restored(status) == ("False", "Overtaken")
        assert (status["lastAppliedSpec"], status["lastFailedSpec"]) == (GOOD, BAD)
        scene = case.scene
        after = Scene(scene.world, {**scene.canary, "status": status}, NOW)
        assert after.new_revision


def test_a_template_that_comes_in_between_never_costs_a_pod() -> None:
    changed = target("app:3", "t2", 3, paused=True)
    case = Case(changed, owner=owned_by(changed))
    (write,) = case.decide().writes
    assert write.resource == "replicasets"
    assert write.body["metadata"]["ownerReferences"] == [owner_reference(case.canary)]
    (write,) = Case(changed).decide().writes
    assert write.body == {"spec": {"paused": None, "replicas": 0}}


def test_a_stranger_that_adopted_the_pods_is_reported() -> None:
    other = {"kind": "Deployment", "name": "other", "uid": "o1", "controller": True}
    old = copy.deepcopy(NEW)
    old["metadata"]["creationTimestamp"] = stamp(NOW - 61)
    assert restored(Case(old, owner=other).status()) == ("False", "Blocked")


# -- afterwards --------------------------------------------------------------------------------------------------------------

AFTER: JSON = {"status": {"lastAppliedSpec": GOOD, "lastTrackedRevision": "t2/5"}}


def after(target_: JSON, owner: Any = "target", **more: Any) -> Case:
    holder = owned_by(target_) if owner == "target" else owner
    told = ("True", "Adopted")
    return Case(target_, holder, intent=False, condition=told, more=merge(AFTER, more))


def test_with_another_template_and_its_pods_parked_again_nothing_is_left_of_it() -> None:
    went_on = after(target("app:3", "t2", 0), "canary")
    assert ad.spent(went_on.scene)
    left = merge(went_on.canary["status"], act.went_on(went_on.scene).status)
    assert all(one["type"] != "Restored" for one in left["conditions"])
    assert not any(ad.spent(after(NEW, owner).scene) for owner in ("target", "canary"))
    lost = after(target("app:1", "t2", 3), None)
    lost.sets = {}
    assert not ad.spent(lost.scene), "what became of it is still to be read"


def test_a_target_that_somebody_resumes_is_paused_again() -> None:
    decision = after(target("app:1", "t2", 3)).decide()
    assert decision.row == "pause-again"
    assert decision.writes[0].body == {"spec": {"paused": True}}
    assert decision.notes[0].severity == "Warning"


def test_while_the_target_rests_the_canary_is_held_and_lets_it_go_on_before_it_goes() -> None:
    held = after(NEW)
    assert ad.holds(held.scene)
    assert not ad.holds(after(target("app:3", "t2", 0), "canary").scene)
    going = after(NEW, metadata={"deletionTimestamp": stamp(NOW)})
    decision = going.decide()
    assert decision.row == "adopt-resume"
    assert decision.writes[0].body == {"spec": {"paused": None}}


def test_a_canary_that_is_deleted_meanwhile_waits_until_its_target_is_back() -> None:
    going = {"metadata": {"deletionTimestamp": stamp(NOW)}}
    assert Case(None, more=going).decide().row == "adopt-create"
    assert Case(NEW, more=going).decide().row == "adopt-release"
    assert Case(NEW, None, more=going).decide().row == "adopt-wait"
    assert Case(NEW, owned_by(NEW), more=going).decide().row == "adopt-verify"


def test_without_replicasets_to_look_at_nothing_is_done() -> None:
    scene = Case(None).scene
    blind = Scene(World(target=None), scene.canary, NOW)
    assert ad.at(blind) is Stage.UNSEEN
    assert decide(blind.world, blind.canary, NOW).writes == ()
