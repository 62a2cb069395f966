"""Handback: what is read of a namespace, what is asked about it, and what our own comparison says."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.shell.kinds import RESOURCES
from harness.handback.answers import Flagger, Told
from harness.handback.plan import Case, Fate, Recorded, plan
from harness.handback.reading import read_cases
from harness.handback.references import references
from harness.kube.testing import FakeCluster
from harness.tests.controller_handover import HandOver, annotation
from harness.tests.controller_sim import Sim, canary, deployment, image, merge, never_ready, running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.handback.told import Question

JSON = dict[str, Any]


class Oracle:
    """Answers for a Flagger: the hash is the image, so that a test can read it."""

    def __init__(self, *, fenced: bool = False) -> None:
        self.fenced = fenced
        self.questions: list[Question] = []

    async def __call__(self, questions: Sequence[Question]) -> Flagger:
        self.questions = list(questions)
        return Flagger("v0.0.0", self.fenced, [self._answer(one) for one in questions])

    def _answer(self, question: Question) -> Told:
        pod = question.target["spec"].get("template", {}).get("spec", {})
        image_ = pod.get("containers", [{}])[0].get("image", "none")
        configs = {
            f"{obj['kind'].lower()}/{obj['metadata']['name']}": "x" for obj in question.configs
        }
        return Told(f"hash-{image_}", configs)


def saved(sim: Sim) -> list[JSON]:
    """The objects of a Sim."""
    return copy.deepcopy([*sim.objects.values()])


def cases_of(objects: Sequence[JSON], ask: Oracle | None = None) -> list[Case]:
    cluster = FakeCluster(*RESOURCES.values())
    for obj in objects:
        cluster.add(obj)
    _, cases = asyncio.run(read_cases(cluster.client(), "n", ask or Oracle()))
    assert {asked.verb for asked in cluster.requests} <= {"get", "list"}, "something was written"
    return cases


def case_of(sim: Sim) -> Case:
    (case,) = cases_of(saved(sim))
    return case


# -- our own comparison ------------------------------------------------------------------------------------------------------


def test_a_settled_canary_is_the_one_on_record() -> None:
    case = case_of(running())
    assert (case.recorded, case.told) == (Recorded.SAME, Told("hash-app:1", {}))
    assert plan(case).patch["lastAppliedSpec"] == "hash-app:1"


def test_a_scaled_target_still_is() -> None:
    sim = running()
    sim.edit("deployments", "web", {"spec": {"replicas": 7}})
    assert case_of(sim).recorded is Recorded.SAME


def test_an_unseen_change_is_told_with_its_row() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    case = case_of(sim)
    assert (case.recorded, plan(case).fate) == (Recorded.CHANGED, Fate.STARTS)
    assert "nothing proves" in case.evidence


def test_a_failed_canary_gets_the_hash_of_the_promoted_template_from_its_replica_set() -> None:
    sim = running(never_ready("web"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.settle()
    case = case_of(sim)
    assert (case.recorded, case.promoted) == (Recorded.SAME, "hash-app:1")
    patch = plan(case).patch
    assert (patch["lastAppliedSpec"], patch["lastPromotedSpec"]) == ("hash-app:2", "hash-app:1")


def test_a_promoted_template_that_is_not_kept_is_not_made_up() -> None:
    sim = running(never_ready("web"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    objects = [obj for obj in saved(sim) if "app:1" not in str(obj) or obj["kind"] != "ReplicaSet"]
    (case,) = cases_of(objects)
    assert case.promoted == ""
    assert "not kept any more" in plan(case).why


def test_a_run_goes_on_where_it_stands() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(3)
    assert (case_of(sim).recorded, plan(case_of(sim)).fate) == (Recorded.SAME, Fate.GOES_ON)


def test_a_promotion_under_way_ends_settled() -> None:
    sim = running(never_ready("web-primary"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Promoting")
    result = plan(case_of(sim))
    assert (result.fate, result.patch["lastAppliedSpec"]) == (Fate.GOES_ON, "hash-app:2")


def test_a_target_changed_during_its_promotion_starts_after_it() -> None:
    sim = running(never_ready("web-primary"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Promoting")
    sim.edit("deployments", "web", image("app:3"))
    result = plan(case_of(sim))
    assert (result.fate, result.patch) == (Fate.STARTS, {})


def test_a_rollback_onto_a_broken_primary_is_no_rest() -> None:
    """The primary still has to be promoted again, by whoever is in charge."""
    sim = running(never_ready("web-primary"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.edit("deployments", "web", image("app:1"))
    assert plan(case_of(sim)).fate is Fate.STARTS


def test_a_status_of_an_older_flagger_is_judged_by_evidence() -> None:
    sim = HandOver("Succeeded")
    case = case_of(sim)
    assert case.recorded is Recorded.SAME
    sim.change(annotation("new"))
    assert case_of(sim).recorded is Recorded.CHANGED


def test_an_older_flaggers_run_cannot_be_told() -> None:
    assert case_of(HandOver("Progressing")).recorded is Recorded.UNKNOWN


def test_an_older_flaggers_promotion_is_judged_by_evidence() -> None:
    sim = HandOver("Promoting")
    assert case_of(sim).recorded is Recorded.SAME
    sim.change(annotation("new"))
    assert case_of(sim).recorded is Recorded.CHANGED


def test_a_primary_that_lags_behind_at_the_first_initialisation_is_said() -> None:
    sim = Sim(never_ready("web-primary", images=("app:1",)))
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(5)
    assert sim.phase == "Initializing"
    assert case_of(sim).recorded is Recorded.SAME
    sim.edit("deployments", "web", image("app:2"))
    assert "moved on" in plan(case_of(sim)).why


# -- configs -----------------------------------------------------------------------------------------------------------------


def test_checksums_of_a_flagger_count_while_the_primary_is_its_own() -> None:
    sim = HandOver("Succeeded")
    assert sim.status["trackedConfigs"]
    assert case_of(sim).configs_changed
    assert plan(case_of(sim)).fate is Fate.STARTS


def test_what_is_left_of_a_time_without_tracking_does_not_count() -> None:
    sim = running()
    sim.edit_status({"trackedConfigs": {"configmap/web-config": "241889ca0604e333"}})
    case = case_of(sim)
    assert not case.configs_changed
    after = merge(case.status, plan(case).patch)
    assert after["trackedConfigs"] == {}


def test_only_what_a_target_refers_to_is_read_and_asked_about() -> None:
    target = deployment()
    pod = target["spec"]["template"]["spec"]
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    pod["volumes"] = [{"name": "v", "secret": {"secretName": "missing"}}]
    objects = saved(running(target=target))
    for kind, name in (("ConfigMap", "settings"), ("Secret", "other")):
        objects.append(
            {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}}
        )
    oracle = Oracle()
    (case,) = cases_of(objects, oracle)
    (question,) = oracle.questions
    assert [obj["metadata"]["name"] for obj in question.configs] == ["settings"]
    assert plan(case).patch["trackedConfigs"] == {"configmap/settings": "x"}


def test_every_place_that_can_refer_to_a_config_is_looked_at() -> None:
    def container(prefix: str) -> JSON:
        return {
            "env": [
                {"name": "a", "value": "b"},
                {"valueFrom": {"configMapKeyRef": {"name": f"{prefix}-key"}}},
                {"valueFrom": {"secretKeyRef": {"name": f"{prefix}-key"}}},
            ],
            "envFrom": [
                {"configMapRef": {"name": f"{prefix}-all"}},
                {"secretRef": {"name": f"{prefix}-all"}},
            ],
        }

    sources = [{"configMap": {"name": "in-projected"}}, {"secret": {"name": "in-projected"}}]
    pod = {
        "volumes": [
            {"configMap": {"name": "in-volume"}},
            {"secret": {"secretName": "in-volume"}},
            {"projected": {"sources": sources}},
            {"emptyDir": {}},
        ],
        "containers": [container("main"), container("main")],
        "initContainers": [container("init")],
        "imagePullSecrets": [{"name": "registry"}],
    }
    names = ("in-volume", "in-projected", "main-key", "main-all", "init-key", "init-all")
    expected = [(kind, name) for name in names for kind in ("ConfigMap", "Secret")]
    assert references({"spec": {"template": {"spec": pod}}}) == expected
    assert references({"spec": {"ports": []}}) == []


# -- other kinds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "fate", "word"),
    [
        ({"apiVersion": "serving.knative.dev/v1", "kind": "Service"}, Fate.LEFT, "knative"),
        ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, Fate.LEFT, "StatefulSet"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, Fate.TROUBLE, "does not exist"),
    ],
)
def test_what_cannot_be_asked_about_is_said(reference: JSON, fate: Fate, word: str) -> None:
    obj = canary(targetRef={**reference, "name": "gone"}) | {"status": {"phase": "Succeeded"}}
    (case,) = cases_of([obj])
    assert plan(case).fate is fate
    assert word in plan(case).why


def test_a_flagger_with_a_fence_is_known_to_every_case() -> None:
    (case,) = cases_of(saved(running()), Oracle(fenced=True))
    assert case.fenced
    assert plan(case).patch == {}
