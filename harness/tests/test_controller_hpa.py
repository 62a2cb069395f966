"""How many pods there are, in whole releases: with an HPA, with KEDA, and without either (cases C13 and C14)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.controller.core.autoscalers.scaledobject import PAUSED
from harness.tests.controller_sim import Sim, canary, deployment, hpa, image, image_of, running
from harness.tests.controller_stories_routed import GATEWAY, HPA, KEDA, SCALED_OBJECT

JSON = dict[str, Any]
HPAS = "horizontalpodautoscalers"
SCALED = "scaledobjects"
AUTOSCALER = "kube-controller-manager"
HAND_OVER = "scaledobject.keda.sh/transfer-hpa-ownership"


def scaled(scaler: JSON | None = None, **spec: Any) -> Sim:
    sim = Sim()
    sim.add(HPAS, scaler or hpa(least=2))
    sim.add("deployments", deployment(replicas=4))
    sim.add("canaries", canary(**HPA, **spec))
    sim.run(until="Initialized")
    sim.settle()
    return sim


# -- HPA ---------------------------------------------------------------------------------------------------------------------


def test_the_primary_gets_a_scaler_of_its_own_that_names_it() -> None:
    source = hpa(least=2)
    source["metadata"] |= {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    sim = scaled(source)
    copied = sim.objects[HPAS, "web-primary"]
    assert copied["spec"]["scaleTargetRef"]["name"] == "web-primary"
    assert copied["spec"]["minReplicas"] == 2
    assert copied["metadata"]["labels"] == {"team": "a"}
    assert sim.objects[HPAS, "web"]["spec"] == source["spec"]
    assert sim.primary["spec"]["replicas"] == 4


def test_a_run_starts_with_the_minimum_and_a_promotion_leaves_the_primarys_number() -> None:
    sim = scaled()
    sim.edit("deployments", "web-primary", {"spec": {"replicas": 5}}, AUTOSCALER)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    assert sim.target["spec"]["replicas"] == 2
    sim.edit("deployments", "web", {"spec": {"replicas": 3}}, AUTOSCALER)
    sim.run(until="Succeeded")
    sim.settle()
    assert (image_of(sim.primary), sim.primary["spec"]["replicas"]) == ("app:2", 5)
    assert sim.target["spec"]["replicas"] == 0


@pytest.mark.parametrize("least", [None, 1])
def test_a_minimum_of_one_starts_with_one(least: int | None) -> None:
    source = hpa(least=1)
    if least is None:
        del source["spec"]["minReplicas"]
    sim = scaled(source)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    assert sim.target["spec"]["replicas"] == 1


def test_changes_of_the_original_reach_the_copy_with_the_promotion_and_then_rest() -> None:
    """Deviation O11."""
    sim = scaled()
    change: JSON = {"metadata": {"labels": {"team": "b"}}, "spec": {"maxReplicas": 9}}
    sim.edit(HPAS, "web", change)
    sim.run(10)
    assert sim.objects[HPAS, "web-primary"]["spec"]["maxReplicas"] == 6
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    copied = sim.objects[HPAS, "web-primary"]
    assert (copied["spec"]["maxReplicas"], copied["metadata"]["labels"]) == (9, {"team": "b"})
    before = copied["metadata"]["resourceVersion"]
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    sim.run(until="Succeeded")
    assert sim.objects[HPAS, "web-primary"]["metadata"]["resourceVersion"] == before


def test_bounds_of_the_primarys_own_are_honoured() -> None:
    reference: JSON = copy.deepcopy(HPA["autoscalerRef"])
    reference["primaryScalerReplicas"] = {"minReplicas": 3, "maxReplicas": 4}
    sim = Sim()
    sim.add(HPAS, hpa())
    sim.add("deployments", deployment())
    sim.add("canaries", canary(autoscalerRef=reference))
    sim.run(until="Initialized")
    spec = sim.objects[HPAS, "web-primary"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 4)


def test_a_scaler_that_is_missing_holds_the_bootstrap_and_is_named() -> None:
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**HPA))
    sim.run(60)
    assert sim.phase != "Initialized"
    assert sim.ready_pods("web") == 3
    assert [m for m in sim.messages() if "HorizontalPodAutoscaler 'web'" in m]
    sim.add(HPAS, hpa())
    sim.run(until="Initialized")


def test_a_scaler_that_adds_pods_in_mid_run_is_no_loss_of_readiness() -> None:
    """More pods for more traffic, long after the deadline of 20 s: those that were ready still are."""
    analysis = {"interval": "2s", "threshold": 2, "stepWeight": 2, "maxWeight": 60}
    sim = scaled(**GATEWAY, analysis=analysis)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(15)
    for count in (3, 4, 5):
        sim.edit("deployments", "web", {"spec": {"replicas": count}}, AUTOSCALER)
        sim.run(9)
        assert sim.phase == "Progressing"
    sim.run(until="Succeeded")


# -- case C14: KEDA ----------------------------------------------------------------------------------------------------------


def paused(sim: Sim, name: str = "web") -> str | None:
    return (sim.objects[SCALED, name]["metadata"].get("annotations") or {}).get(PAUSED)


def test_c14_the_pause_is_the_originals_alone() -> None:
    source = copy.deepcopy(SCALED_OBJECT)
    source["metadata"]["annotations"] = {HAND_OVER: "true"}
    sim = Sim()
    seen: set[str | None] = set()
    sim.add(SCALED, source)
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**KEDA))
    sim.before_status = lambda _patch: (
        seen.add(paused(sim, "web-primary")) if sim.get(SCALED, "web-primary") else None
    )
    sim.run(until="Initialized")
    assert paused(sim) == "0"
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    assert paused(sim) is None
    assert sim.target["spec"]["replicas"] == 2
    sim.run(until="Succeeded")
    assert paused(sim) == "0"
    sim.remove(SCALED, "web-primary")
    sim.run(5)
    assert paused(sim, "web-primary") is None
    assert seen == {None}
    kept = sim.objects[SCALED, "web-primary"]["metadata"]["annotations"]
    assert kept == {HAND_OVER: "true"}


def test_c14_a_roll_back_pauses_again() -> None:
    sim = Sim()
    sim.add(SCALED, SCALED_OBJECT)
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**KEDA))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.settle()
    sim.edit("deployments", "web", image("app:1"))
    sim.run(until="Failed")
    assert (paused(sim), sim.target["spec"]["replicas"]) == ("0", 0)


# -- case C13: neither -------------------------------------------------------------------------------------------------------


def with_replicas(count: int, name: str) -> JSON:
    change = image(name)
    change["spec"]["replicas"] = count
    return change


def test_c13_a_promotion_copies_the_users_number_and_a_run_comes_back_with_it() -> None:
    sim = running(target=deployment(replicas=2))
    sim.edit("deployments", "web", with_replicas(4, "app:2"))
    sim.run(until="Succeeded")
    sim.settle()
    assert (sim.primary["spec"]["replicas"], sim.target["spec"]["replicas"]) == (4, 0)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Progressing")
    sim.run(1)
    assert sim.ready_pods("web") == 4
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["replicas"] == 4
    assert not [m for m in sim.messages() if "the promotion will take" in m]


def test_c13_an_apply_that_drops_the_field_is_warned_of_before_the_promotion() -> None:
    """A client-side apply sets the field to null, and the API server makes it 1, which then is that client's."""
    sim = running(target=deployment(replicas=4))
    sim.edit("deployments", "web", with_replicas(1, "app:2"), "kubectl-client-side-apply")
    sim.run(until="Progressing")
    assert [m for m in sim.messages() if "web-primary from 4 to 1" in m]
    assert sim.primary["spec"]["replicas"] == 4


def test_c13_a_default_that_nobody_wrote_is_nobodys_wish() -> None:
    sim = running(target=deployment(replicas=4))
    sim.edit("deployments", "web", with_replicas(1, "app:2"))
    for entry in sim.target["metadata"]["managedFields"]:
        entry["fieldsV1"].get("f:spec", {}).pop("f:replicas", None)
    sim.run(until="Succeeded")
    assert sim.primary["spec"]["replicas"] == 4
