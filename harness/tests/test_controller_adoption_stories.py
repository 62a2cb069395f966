"""Restoring a target by adoption from end to end on a virtual clock: the controller ends at every write, and others are always faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.tests.controller_sim import deployment, image, image_of, no, yes
from harness.tests.controller_stories import Story
from harness.tests.test_controller_crash import FEWEST, compare

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.controller.core import Write
    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
REPLICAS = 3
ANALYSIS: JSON = {
    "interval": "1s",
    "threshold": 1,
    "iterations": 1,
    "restore": "adopt",
    "webhooks": [{"name": "check", "type": "rollout", "url": "http://x/"}],
}


def target() -> JSON:
    obj = deployment(replicas=REPLICAS, revisionHistoryLimit=2, minReadySeconds=0)
    obj["metadata"] |= {
        "labels": {"argocd.argoproj.io/instance": "web"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": "uid-configmaps-app-0"}
        ],
    }
    return obj


def restored(sim: Sim) -> tuple[str, str]:
    told = sim.condition("Restored")
    return told.get("status", ""), told.get("reason", "")


def serving_set(sim: Sim) -> JSON:
    """The ReplicaSet that ran before anything failed."""
    return next(
        one for one in sim.replica_sets if image_of(one) == "app:1" and one["spec"]["replicas"]
    )


def owner(obj: JSON) -> str:
    return next(
        (one["kind"] for one in obj["metadata"]["ownerReferences"] if one.get("controller")), ""
    )


def fail(sim: Sim, name: str = "app:2") -> None:
    sim.edit("deployments", "web", image(name))
    sim.run(until="Progressing")
    sim.run(until="Failed")
    sim.run(5)


def fail_again(sim: Sim) -> None:
    fail(sim)
    fail(sim)


def fail_then_promote(sim: Sim) -> None:
    fail(sim)
    sim.script["check"] = yes()
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")


def fail_and_go(sim: Sim) -> None:
    """The Canary is deleted as soon as its target is gone."""
    sim.edit("deployments", "web", image("app:2"))
    deleted: list[bool] = []

    def watch(write: Write) -> None:
        if (write.verb, write.resource) == ("create", "deployments") and not deleted:
            deleted.append(True)
            sim.remove("canaries", "web")

    sim.before_write = watch
    sim.run(until="gone")


def adopted(sim: Sim) -> bool:
    held = serving_set(sim)
    meta = sim.target["metadata"]
    kept = {key: meta[key] for key in ("labels", "ownerReferences")}
    annotations = {k: v for k, v in meta["annotations"].items() if "deployment.kuber" not in k}
    wanted = target()["metadata"]
    return (
        restored(sim) == ("True", "Adopted")
        and owner(held) == "Deployment"
        and kept == {key: wanted[key] for key in kept}
        and annotations == wanted["annotations"]
        and sim.target["spec"]["replicas"] == REPLICAS
        and sim.target["spec"]["paused"]
        and "restore" not in sim.status
    )


def left(sim: Sim) -> bool:
    held = serving_set(sim)
    at_zero = sim.target["spec"]["replicas"] == 0 and not sim.target["spec"].get("paused")
    return (
        restored(sim) == ("False", "AppliedAgain")
        and owner(held) == "Canary"
        and at_zero
        and image_of(sim.target) == "app:2"
    )


def promoted(sim: Sim) -> bool:
    finalizers = sim.canary["metadata"].get("finalizers")
    return sim.phase == "Succeeded" and sim.behind("web") == REPLICAS and not finalizers


def given_back(sim: Sim) -> bool:
    held = serving_set(sim)
    return owner(held) == "Deployment" and not sim.target["spec"].get("paused")


SPEC: JSON = {"analysis": ANALYSIS, "progressDeadlineSeconds": 60}
STORIES = (
    Story("adopted", fail, adopted, SPEC, target(), answers={"check": no()}),
    Story("applied again", fail_again, left, SPEC, target(), answers={"check": no()}),
    Story("next revision", fail_then_promote, promoted, SPEC, target(), answers={"check": no()}),
    Story("canary deleted", fail_and_go, given_back, SPEC, target(), answers={"check": no()}),
)


def begin(story: Story) -> Sim:
    """A namespace in which the target's owner exists, so that nothing is collected."""
    sim = story.begin()
    sim.objects["configmaps", "app"] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "app",
            "namespace": "n",
            "uid": "uid-configmaps-app-0",
            "resourceVersion": "1",
        },
    }
    return sim


def never_fewer(sim: Sim) -> list[Any]:
    """Moments with fewer ready pods behind the apex than replicas, since there is a Canary that serves."""
    since = next(at for at, phase, _ in sim.history if phase == "Initialized")
    return [one for one in sim.samples if one.t > since and (one.serving or 0) < REPLICAS]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_killed_once_after_each_write_in_a_row_it_ends_in_the_same_place(story: Story) -> None:
    undisturbed = story.tell(begin(story))
    assert story.end(undisturbed)
    sim = begin(story)
    sim.kill_each = True
    story.tell(sim)
    assert sim.restarts > FEWEST
    assert not compare(sim, undisturbed)


@pytest.mark.thorough
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_killed_after_any_write_it_ends_in_the_same_place(
    story: Story, record_property: Callable[[str, object], None]
) -> None:
    undisturbed = story.tell(begin(story))
    writes = len(undisturbed.actions) + len(undisturbed.notes)
    for number in range(1, writes + 1):
        sim = begin(story)
        sim.kill_after = number
        story.tell(sim)
        assert not compare(sim, undisturbed), f"killed after write {number}: {sim.actions[-6:]}"
    record_property("crash points", f"adopt-{story.name.replace(' ', '-')} {writes}")


@pytest.mark.parametrize("story", STORIES[:2], ids=lambda story: story.name)
def test_the_pods_that_serve_are_the_same_all_along(story: Story) -> None:
    sim = begin(story)
    sim.run(until="Initialized")
    sim.settle()
    before = sim.pod_uids(serving_set(sim)["metadata"]["name"])
    assert len(before) == REPLICAS
    story.act(sim)
    assert sim.pod_uids(serving_set(sim)["metadata"]["name"]) == before
    assert never_fewer(sim) == []


STEPS = ("delete deployments", "create deployments", "patch replicasets", "status")
"""The writes of a restoration; `status` is the last one."""
IMAGES = {"what failed": "app:2", "something new": "app:3", "what was promoted": "app:1"}


class Repository:
    """Applies a manifest once, right before or after one of the restoration's writes, whether there is a target or not."""

    def __init__(self, sim: Sim, step: str, image_: str, *, before: bool) -> None:
        self.sim, self.step, self.before = sim, step, before
        self.manifest = target()
        self.manifest["spec"]["template"]["spec"]["containers"][0]["image"] = image_
        self.applied = False
        self._carry_out, self._patch_status = sim.carry_out, sim.patch_status
        sim.carry_out = self.carry_out  # type: ignore[method-assign]
        sim.patch_status = self.patch_status  # type: ignore[method-assign]

    def carry_out(self, write: Write) -> JSON:
        due = f"{write.verb} {write.resource}" == self.step and "restore" in self.sim.status
        self._apply(due=due and self.before)
        answer = self._carry_out(write)
        self._apply(due=due)
        return answer

    def patch_status(self, canary: JSON, patch: JSON) -> None:
        due = self.step == "status" and "restore" in patch and patch["restore"] is None
        self._apply(due=due and self.before)
        self._patch_status(canary, patch)
        self._apply(due=due)

    def _apply(self, *, due: bool) -> None:
        if not due or self.applied:
            return
        self.applied = True
        if self.sim.get("deployments", "web") is None:
            self.sim.add("deployments", self.manifest)
        else:
            self.sim.edit("deployments", "web", {"spec": self.manifest["spec"]})


@pytest.mark.parametrize("what", IMAGES)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_repository_that_is_faster_never_costs_a_pod(step: str, what: str, before: bool) -> None:  # noqa: FBT001
    sim = begin(STORIES[0])
    sim.run(until="Initialized")
    sim.settle()
    old = sim.pod_uids(serving_set(sim)["metadata"]["name"])
    repository = Repository(sim, step, IMAGES[what], before=before)
    STORIES[0].act(sim)
    sim.run(100)
    assert repository.applied
    assert never_fewer(sim) == []
    assert sim.phase == "Failed"
    assert "restore" not in sim.status
    held = [sim.pod_uids(one["metadata"]["name"]) for one in sim.replica_sets]
    assert old in held, "not one pod was replaced"
    assert sim.behind("web") == REPLICAS
    # What failed is no news to a target that still holds it; from then on it was asked for again, and stays when it fails again.
    again = what == "what failed" and (step, before) != ("delete deployments", True)
    assert image_of(sim.target) == ("app:2" if again else "app:1")
