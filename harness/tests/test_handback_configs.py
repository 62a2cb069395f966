"""The way back with tracked ConfigMaps and Secrets, and for every kind of target that Flagger hashes."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from harness.controller.core.configs import checksum
from harness.handback.answers import Told
from harness.handback.plan import Fate, Recorded, plan
from harness.tests.controller_sim import Sim, merge
from harness.tests.test_controller_idle import SETTLED
from harness.tests.test_handback_reading import Oracle, cases_of, saved

JSON = dict[str, Any]
DEPLOYMENT = "deployment with configs and an autoscaler"


class Data(Oracle):
    """A Flagger whose checksums cover `data` alone."""

    def _answer(self, question: Any) -> Told:
        told = super()._answer(question)
        configs = {
            f"{obj['kind'].lower()}/{obj['metadata']['name']}": checksum({"data": obj.get("data")})
            for obj in question.configs
        }
        return Told(told.hash, configs)


def released(name: str = DEPLOYMENT, **configmap: Any) -> Sim:
    """The Canary of that story after its release; `configmap` goes into its ConfigMap before that."""
    story = SETTLED[name][0]
    sim = story.begin()
    if configmap:
        sim.edit("configmaps", "settings", configmap)
    return story.tell(sim)


def returned(sim: Sim) -> tuple[Fate, JSON]:
    """What becomes of the Canary, and its status after the return."""
    (case,) = cases_of(saved(sim), Data())
    found = plan(case)
    return found.fate, merge(case.status, found.patch)


def test_untouched_configs_rest_and_get_the_checksums_of_that_flagger() -> None:
    binary = base64.b64encode(b"\0\1").decode()
    sim = released(binaryData={"store": binary})
    ours = dict(sim.status["trackedConfigs"])
    fate, status = returned(sim)
    assert fate is Fate.RESTS
    data = {
        key: obj["data"]
        for key, obj in (
            ("configmap/settings", sim.objects["configmaps", "settings"]),
            ("secret/login", sim.objects["secrets", "login"]),
        )
    }
    assert status["trackedConfigs"] == {key: checksum({"data": one}) for key, one in data.items()}
    assert status["trackedConfigs"]["secret/login"] == ours["secret/login"], "the same algorithm"
    assert status["trackedConfigs"]["configmap/settings"] != ours["configmap/settings"], (
        "which leaves binaryData out"
    )
    assert status["lastAppliedSpec"] == status["lastPromotedSpec"] == "hash-app:1"


@pytest.mark.parametrize(
    "change", [{"data": {"colour": "red"}}, {"binaryData": {"store": "AAE="}}, {"immutable": True}]
)
def test_a_config_that_nobody_saw_change_is_analysed(change: JSON) -> None:
    sim = released()
    sim.edit("configmaps", "settings", change)
    (case,) = cases_of(saved(sim), Data())
    assert (case.recorded, case.configs_changed) == (Recorded.SAME, True)
    assert plan(case).fate is Fate.STARTS
    assert plan(case).patch == {}


def test_a_missing_config_is_no_change_and_told_by_that_flagger() -> None:
    sim = released()
    sim.remove("secrets", "login")
    (case,) = cases_of(saved(sim), Data())
    assert not case.configs_changed


def test_a_run_goes_on_with_its_configs() -> None:
    sim = released()
    sim.edit("configmaps", "settings", {"data": {"colour": "red"}})
    sim.run(until="Progressing")
    sim.run(1.5)
    fate, status = returned(sim)
    assert fate is Fate.GOES_ON
    red = checksum({"data": {"colour": "red"}})
    assert status["trackedConfigs"]["configmap/settings"] == red


def test_what_the_primary_shares_it_could_not_have_missed() -> None:
    sim = released()
    name = ("deployments", "web-primary")
    text = copy.deepcopy(sim.objects[name])
    for source in text["spec"]["template"]["spec"]["containers"][0]["envFrom"]:
        for reference in source.values():
            reference["name"] = reference["name"].removesuffix("-primary")
    sim.objects[name] = text
    sim.edit("configmaps", "settings", {"data": {"colour": "red"}})
    (case,) = cases_of(saved(sim), Data())
    assert not case.configs_changed


@pytest.mark.parametrize("name", ["daemonset", "core service"])
def test_other_kinds_are_compared_too(name: str) -> None:
    sim = released(name)
    (case,) = cases_of(saved(sim), Data())
    assert case.recorded is Recorded.SAME
    assert plan(case).fate is Fate.RESTS
    assert plan(case).patch["lastAppliedSpec"].startswith("hash-")
    plural = SETTLED[name][0].plural
    change = (
        {"spec": {"ports": [{"name": "other", "port": 81}]}}
        if plural == "services"
        else {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    )
    sim.edit(plural, "web", change)
    (case,) = cases_of(saved(sim), Data())
    assert plan(case).fate is Fate.STARTS
