"""ConfigMaps and Secrets in whole releases: what starts a run, and when the primary gets it (spec objects 6, cases C02, C04, C05)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.controller.core.configs.checksums import OPT_OUT
from harness.tests.controller_sim import (
    Sim,
    canary,
    configmap,
    daemonset,
    deployment,
    hpa,
    image,
    image_of,
    no,
    target_ref,
    yes,
)
from harness.tests.controller_stories_routed import HPA, hook

JSON = dict[str, Any]


def secret(name: str, **data: str) -> JSON:
    return configmap(name) | {"kind": "Secret", "type": "Opaque", "data": data}


def pod_spec(**more: Any) -> JSON:
    """A container with ConfigMap `c1` and an init container with ConfigMap `c1` and Secret `s1`."""
    from_secret = {"name": "V", "valueFrom": {"secretKeyRef": {"name": "s1", "key": "k"}}}
    config = [{"configMapRef": {"name": "c1"}}]
    return {
        "initContainers": [{"name": "i", "image": "i:1", "envFrom": config, "env": [from_secret]}],
        "containers": [{"name": "c", "image": "app:1", "resources": {}, "envFrom": config}],
        **more,
    }


def reading(kind: str = "Deployment", spec: JSON | None = None, **canary_spec: Any) -> Sim:
    sim = Sim()
    made = daemonset() if kind == "DaemonSet" else deployment()
    made["spec"]["template"]["spec"] = spec or pod_spec()
    sim.add("configmaps", configmap("c1", colour="green"))
    sim.add("secrets", secret("s1", k="old"))
    sim.add("daemonsets" if kind == "DaemonSet" else "deployments", made)
    sim.add("canaries", canary(**({"targetRef": target_ref(kind)} | canary_spec)))
    return sim


def initialised(kind: str = "Deployment", **canary_spec: Any) -> Sim:
    sim = reading(kind, **canary_spec)
    sim.run(until="Initialized")
    sim.settle()
    return sim


def runs(sim: Sim) -> int:
    return len([m for m in sim.messages() if m.startswith("New revision of web found")])


def data(sim: Sim, name: str, plural: str = "configmaps") -> JSON:
    found: JSON = sim.objects[plural, name]["data"]
    return found


def recolour(sim: Sim, colour: str = "blue") -> None:
    sim.edit("configmaps", "c1", {"data": {"colour": colour}})


# -- case C04 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
def test_c04_init_containers_read_the_copies_and_a_change_waits_for_its_promotion(
    kind: str,
) -> None:
    sim = initialised(kind)
    first = sim.primary["spec"]["template"]["spec"]["initContainers"][0]
    assert first["envFrom"][0]["configMapRef"]["name"] == "c1-primary"
    assert first["env"][0]["valueFrom"]["secretKeyRef"]["name"] == "s1-primary"
    own = sim.target["spec"]["template"]["spec"]["initContainers"][0]
    assert own["envFrom"][0]["configMapRef"]["name"] == "c1"
    assert data(sim, "s1-primary", "secrets") == {"k": "old"}
    recolour(sim)
    sim.run(until="Progressing")
    while sim.phase == "Progressing":
        assert data(sim, "c1-primary") == {"colour": "green"}
        sim.run(0.5)
    assert data(sim, "c1-primary") == {"colour": "blue"}
    sim.run(60)
    assert (sim.phase, runs(sim)) == ("Succeeded", 1)


def test_a_secret_counts_like_a_configmap() -> None:
    sim = initialised()
    sim.edit("secrets", "s1", {"data": {"k": "new"}})
    sim.run(until="Succeeded")
    sim.run(30)
    assert runs(sim) == 1
    assert data(sim, "s1-primary", "secrets") == {"k": "new"}


def test_binary_data_and_immutability_count() -> None:
    """Deviation D8."""
    sim = initialised()
    sim.edit("configmaps", "c1", {"binaryData": {"b": "AA=="}})
    sim.run(until="Succeeded")
    assert sim.objects["configmaps", "c1-primary"]["binaryData"] == {"b": "AA=="}
    sim.run(30)
    assert runs(sim) == 1


def test_metadata_of_a_config_is_no_change_and_neither_is_the_same_content() -> None:
    sim = initialised()
    sim.edit("configmaps", "c1", {"metadata": {"labels": {"a": "b"}}})
    recolour(sim, "green")
    before = len(sim.actions)
    sim.run(60)
    assert (sim.phase, len(sim.actions)) == ("Initialized", before)


def test_a_failed_config_keeps_its_copy_and_is_not_tried_again_and_the_repair_is() -> None:
    sim = initialised(
        analysis={"interval": "2s", "iterations": 2, "webhooks": [hook("rollout", "load")]}
    )
    sim.script["load"] = no()
    recolour(sim)
    sim.run(until="Failed")
    sim.run(60)
    assert (sim.phase, runs(sim), data(sim, "c1-primary")) == ("Failed", 1, {"colour": "green"})
    sim.script["load"] = yes()
    recolour(sim, "red")
    sim.run(until="Succeeded")
    assert data(sim, "c1-primary") == {"colour": "red"}


def test_a_config_put_back_after_a_failure_may_run_again_and_ends_well() -> None:
    sim = initialised(
        analysis={"interval": "2s", "iterations": 2, "webhooks": [hook("rollout", "load")]}
    )
    sim.script["load"] = no()
    recolour(sim)
    sim.run(until="Failed")
    sim.script["load"] = yes()
    recolour(sim, "green")
    sim.run(60)
    assert sim.phase == "Succeeded"
    assert data(sim, "c1-primary") == {"colour": "green"}


def test_a_failed_config_that_comes_back_at_the_gate_is_still_what_failed() -> None:
    """The template is the promoted one all along; which of its configs was promoted decides."""
    hooks = [hook("rollout", "load"), hook("confirm-rollout", "start")]
    sim = initialised(analysis={"interval": "2s", "iterations": 2, "webhooks": hooks})
    sim.script["load"] = no()
    recolour(sim)
    sim.run(until="Failed")
    sim.script["start"] = no()
    recolour(sim, "green")
    sim.run(until="Waiting")
    recolour(sim)
    sim.run(30)
    assert (sim.phase, data(sim, "c1-primary")) == ("Failed", {"colour": "green"})


# -- case C02: in mid-run ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [False, True], ids=["progressing", "waiting for promotion"])
@pytest.mark.parametrize("what", ["image", "config"])
def test_c02_a_change_in_mid_run_starts_over(what: str, *, waiting: bool) -> None:
    gate = [hook("confirm-promotion", "finish")] if waiting else []
    sim = initialised(analysis={"interval": "2s", "iterations": 4, "webhooks": gate})
    sim.script["finish"] = no()
    sim.edit("deployments", "web", {"metadata": {"labels": {"x": "y"}}} | _image("app:2"))
    if waiting:
        sim.run(until="WaitingPromotion")
    else:
        while sim.status.get("iterations") != 2:
            sim.run(0.1)
    if what == "image":
        sim.edit("deployments", "web", _image("app:3"))
    else:
        recolour(sim)
    sim.run(0.5)
    assert (sim.phase, sim.status["iterations"], sim.status["failedChecks"]) == (
        "Progressing",
        0,
        0,
    )
    sim.script.clear()
    seen = {(image_of(sim.primary), data(sim, "c1-primary")["colour"])}
    while sim.phase != "Succeeded":
        sim.run(0.25)
        seen.add((image_of(sim.primary), data(sim, "c1-primary")["colour"]))
    last = ("app:3", "green") if what == "image" else ("app:2", "blue")
    assert seen == {("app:1", "green"), last}
    assert len([m for m in sim.messages() if "starting over" in m]) == 1


def _image(name: str) -> JSON:
    spec = pod_spec()
    spec["containers"][0]["image"] = name
    return {"spec": {"template": {"spec": spec}}}


def test_a_config_that_changes_while_the_primary_rolls_gets_a_run_afterwards() -> None:
    sim = initialised()
    recolour(sim)
    sim.run(until="Promoting")
    recolour(sim, "red")
    sim.run(60)
    assert (sim.phase, data(sim, "c1-primary")) == ("Succeeded", {"colour": "red"})
    assert runs(sim) == 2


def test_a_config_that_changes_during_the_bootstrap_gets_a_run() -> None:
    """As a template would: deviation D2."""
    sim = reading()
    sim.run(0.5)
    recolour(sim)
    sim.run(60)
    assert (sim.phase, runs(sim)) == ("Succeeded", 1)
    assert data(sim, "c1-primary") == {"colour": "blue"}


# -- case C05 ----------------------------------------------------------------------------------------------------------------


def optional(*, absent_ok: bool) -> JSON:
    reference = {"name": "later", "key": "k", "optional": absent_ok}
    spec = pod_spec()
    spec["containers"][0]["env"] = [{"name": "L", "valueFrom": {"secretKeyRef": reference}}]
    return spec


def env_name(obj: JSON) -> str:
    env = obj["spec"]["template"]["spec"]["containers"][0]["env"][0]
    return str(env["valueFrom"]["secretKeyRef"]["name"])


def test_c05_a_and_b_an_optional_secret_may_be_absent_and_starts_a_run_when_it_comes() -> None:
    sim = reading(spec=optional(absent_ok=True))
    sim.run(until="Initialized")
    sim.run(20)
    assert not [m for m in sim.messages() if "later" in m]
    assert env_name(sim.primary) == "later"
    sim.add("secrets", secret("later", k="v"))
    sim.run(until="Succeeded")
    sim.run(30)
    assert runs(sim) == 1
    assert env_name(sim.primary) == "later-primary"
    assert env_name(sim.target) == "later"


def test_c05_c_a_mandatory_one_that_is_absent_stops_the_bootstrap_before_the_target_goes() -> None:
    sim = reading(spec=optional(absent_ok=False))
    sim.run(60)
    assert sim.phase == "Initializing"
    assert sim.ready_pods("web") == 3
    assert sim.get("deployments", "web-primary") is None
    (said,) = [note for note in sim.notes.values() if "later" in note.message]
    assert said.severity == "Warning"
    sim.add("secrets", secret("later", k="v"))
    sim.run(until="Initialized")


# -- opting out --------------------------------------------------------------------------------------------------------------


def test_a_config_that_opts_out_is_shared_and_starts_nothing() -> None:
    sim = Sim()
    shared = configmap("c1", colour="green")
    shared["metadata"]["annotations"] = {OPT_OUT: "disabled"}
    sim.add("configmaps", shared)
    sim.add("secrets", secret("s1", k="old"))
    made = deployment()
    made["spec"]["template"]["spec"] = pod_spec()
    sim.add("deployments", made)
    sim.add("canaries", canary())
    sim.run(until="Initialized")
    assert sim.get("configmaps", "c1-primary") is None
    container = sim.primary["spec"]["template"]["spec"]["containers"][0]
    assert container["envFrom"][0]["configMapRef"]["name"] == "c1"
    recolour(sim)
    sim.run(60)
    assert (sim.phase, runs(sim)) == ("Initialized", 0)


def test_with_an_autoscaler_too_a_config_change_is_one_run() -> None:
    sim = reading(**copy.deepcopy(HPA))
    sim.add("horizontalpodautoscalers", hpa())
    sim.run(until="Initialized")
    recolour(sim)
    sim.run(until="Succeeded")
    sim.run(30)
    assert runs(sim) == 1
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(until="Succeeded")
    assert runs(sim) == 2
