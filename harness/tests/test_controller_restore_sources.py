"""`analysis.restore: revert`: where the promoted template comes from, and writes that do not go as they should."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from harness.tests.controller_restore import (
    BROKEN,
    REVERT,
    events,
    fail,
    forget_sets,
    kill_after_replace,
    runs,
    settled,
    starting,
    told,
)
from harness.tests.controller_sim import (
    Sim,
    canary,
    configmap,
    daemonset,
    deployment,
    image,
    image_of,
    merge,
    never_ready,
    target_ref,
    with_configmap,
)

if TYPE_CHECKING:
    from collections.abc import Callable


JSON = dict[str, Any]


# -- where the template comes from -------------------------------------------------------------------------------------------


def test_without_a_history_it_comes_from_the_primary_with_every_rewriting_undone() -> None:
    target = with_configmap(deployment(revisionHistoryLimit=0))
    pod = target["spec"]["template"]["spec"]
    selector = {"matchLabels": {"app": "web"}}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    pod["topologySpreadConstraints"] = [{**spread, "labelSelector": selector}]
    pod["volumes"] = [
        {"name": "v", "secret": {"secretName": "postgres-primary"}},
        {"name": "c", "configMap": {"name": "settings"}},
    ]
    target["spec"]["template"]["metadata"] |= {
        "annotations": {"a": "b", "kustomize.toolkit.fluxcd.io/x": "1"},
        "labels": {"app": "web", "kustomize.toolkit.fluxcd.io/name": "apps"},
    }
    # A Secret that has the ending of a copy, and is no copy.
    secret = {**configmap("postgres-primary"), "kind": "Secret", "type": "example.com/other"}
    sim = starting(target, ("configmaps", configmap()), ("secrets", secret))
    before = copy.deepcopy(sim.target["spec"]["template"])
    assert sim.primary["spec"]["template"]["spec"]["volumes"][1]["configMap"] == {
        "name": "settings-primary"
    }
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(until="Failed")
    forget_sets(sim)
    held = [image_of(s) for name, s in sim.of("replicasets").items() if "primary" not in name]
    assert held == ["app:2"]
    sim.run(20)
    assert told(sim) == ("True", "Reverted")
    assert sim.target["spec"]["template"] == before


def test_a_template_that_nobody_has_is_said_once_and_the_target_stays_at_zero() -> None:
    sim = starting(deployment(revisionHistoryLimit=0))
    # Somebody works on the primary itself, so that it is no source either.
    sim.edit("deployments", "web-primary", image("app:9"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(until="Failed")
    forget_sets(sim)
    sim.run(20)
    assert told(sim) == ("False", "NoTemplate")
    assert (image_of(sim.target), sim.target["spec"]["replicas"]) == ("app:2", 0)
    assert len(events(sim, "Not restored: ")) == 1
    assert sim.status.get("lastFailedSpec") is None
    settled(sim)
    sim.edit("deployments", "web", image("app:1"))
    sim.run(20)
    assert told(sim) == ("True", "PutBack")
    assert runs(sim) == 1


def test_a_replicaset_of_somebody_else_is_no_source() -> None:
    sim = starting()
    sim.edit("deployments", "web-primary", image("app:9"))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.run(until="Failed")
    sets = [s for s in sim.of("replicasets").values() if "primary" not in s["metadata"]["name"]]
    foreign = copy.deepcopy(next(s for s in sets if image_of(s) == "app:1"))
    forget_sets(sim)
    foreign["metadata"] |= {
        "name": "other",
        "ownerReferences": [{"kind": "Deployment", "name": "o", "uid": "o", "controller": True}],
    }
    sim.add("replicasets", foreign)
    sim.run(20)
    assert told(sim) == ("False", "NoTemplate")


def test_a_daemonset_gets_its_template_back_and_stays_at_zero_by_the_same_key() -> None:
    target = daemonset()
    target["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    sim = Sim(BROKEN)
    for node in sim.nodes.values():
        node.labels["disk"] = "ssd"
    sim.add("daemonsets", target)
    sim.add("canaries", canary(analysis=REVERT, targetRef=target_ref("DaemonSet")))
    sim.run(until="Initialized")
    sim.run(5)
    before = copy.deepcopy(sim.target["spec"])
    fail(sim)
    assert told(sim) == ("True", "Reverted")
    assert sim.target["spec"] == before
    assert sim.ready_pods("web") == 0
    assert runs(sim) == 1
    settled(sim)


# -- writes that do not go as they should --------------------------------------------------------------------------------------


def rewriting(sim: Sim, change: Callable[[JSON], None]) -> None:
    """An admission webhook changes what the controller replaces."""
    carry_out = sim.carry_out

    def changed(write: Any) -> JSON:
        if write.verb == "replace" and write.name == "web":
            change(write.body)
        return carry_out(write)

    sim.carry_out = changed  # type: ignore[method-assign]


def to_image(name: str) -> Callable[[JSON], None]:
    def change(body: JSON) -> None:
        body["spec"] = merge(body["spec"], image(name)["spec"])

    return change


@pytest.mark.parametrize("name", ["app:1-patched", "app:2"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_webhook_that_changes_the_template_is_not_argued_with(name: str, killed: bool) -> None:  # noqa: FBT001 - a parameter
    sim = starting()
    rewriting(sim, to_image(name))
    if killed:
        kill_after_replace(sim)
    fail(sim)
    assert told(sim) == ("False", "NotKept")
    assert image_of(sim.target) == name
    assert (runs(sim), sim.restarts) == (1, int(killed))
    assert len(events(sim, "Not restored: ")) == 1
    writes = [verb for verb, _, target in sim.actions if (verb, target) == ("replace", "web")]
    assert len(writes) == 1 + (killed and name == "app:2")
    settled(sim)
    sim.edit("deployments", "web", image("app:4"))
    sim.run(until="Succeeded")


@pytest.mark.parametrize(
    "change",
    [
        image("app:4"),
        # Another field than those that were written back.
        {"spec": {"template": {"metadata": {"annotations": {"note": "mine"}}}}},
    ],
    ids=["image", "annotation"],
)
def test_a_users_next_version_is_not_taken_for_a_webhooks_work(change: JSON) -> None:
    sim = starting()
    kill_after_replace(sim)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    inner = sim.restart

    def restart() -> None:
        # While nobody watches, in the same second.
        sim.edit("deployments", "web", change)
        inner()

    sim.restart = restart  # type: ignore[method-assign]
    sim.run(until="Succeeded")
    assert (sim.restarts, runs(sim)) == (1, 2)


def test_a_write_that_the_api_server_refuses_is_said_and_tried_again() -> None:
    sim = starting()
    refused = ["policy: templates are frozen"]
    sim.admission = lambda verb, _plural, _obj: refused[0] if refused and verb == "replace" else ""
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.run(60)
    assert told(sim) == ("Unknown", "Pending")
    assert any("policy: templates are frozen" in message for message in sim.messages())
    refused.clear()
    sim.run(60)
    assert (image_of(sim.target), told(sim)) == ("app:1", ("True", "Reverted"))


def test_a_paused_target_and_one_whose_autoscaler_rests_are_no_obstacle() -> None:
    sim = starting()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")
    sim.edit("deployments", "web", {"spec": {"paused": True}})
    sim.run(until="Failed")
    sim.run(20)
    assert (image_of(sim.target), told(sim)) == ("app:1", ("True", "Reverted"))
    assert sim.target["spec"]["paused"] is True
    assert runs(sim) == 1


# -- configs -------------------------------------------------------------------------------------------------------------------


def test_configs_that_changed_with_the_template_stay_and_start_nothing() -> None:
    sim = starting(with_configmap(deployment()), ("configmaps", configmap(a="1")))
    sim.edit("configmaps", "settings", {"data": {"a": "2"}})
    sim.edit("deployments", "web", with_image("app:2"))
    sim.run(until="Failed")
    sim.run(60)
    assert (image_of(sim.target), told(sim)) == ("app:1", ("True", "Reverted"))
    assert "ConfigMaps and Secrets stay" in sim.condition("Restored")["message"]
    assert runs(sim) == 1
    settled(sim)


def with_image(name: str) -> JSON:
    obj = with_configmap(deployment(image=name))
    return {"spec": {"template": obj["spec"]["template"]}}


def test_other_configs_than_the_failed_revisions_are_those_that_are_remembered() -> None:
    other = configmap("other", a="2")
    sim = starting(
        with_configmap(deployment()), ("configmaps", configmap(a="1")), ("configmaps", other)
    )
    template = with_configmap(deployment(image="app:2"), "other")["spec"]["template"]
    sim.edit("deployments", "web", {"spec": {"template": template}})
    sim.run(until="Failed")
    sim.run(60)
    assert told(sim) == ("True", "Reverted")
    assert list(sim.status["trackedConfigs"]) == ["configmap/settings"]
    assert runs(sim) == 1


def test_configs_alone_cannot_be_taken_back_and_that_is_said() -> None:
    sim = starting(with_configmap(deployment()), ("configmaps", configmap(a="1")))
    sim.delay = never_ready("web", images=("app:1",))
    sim.edit("configmaps", "settings", {"data": {"a": "2"}})
    sim.run(until="Failed")
    sim.run(60)
    assert told(sim) == ("False", "ConfigsOnly")
    assert runs(sim) == 1
    settled(sim)


def test_configs_that_change_before_the_write_are_a_revision_of_their_own() -> None:
    sim = starting(with_configmap(deployment()), ("configmaps", configmap(a="1")))
    refusing = [True]
    sim.admission = lambda verb, _plural, _obj: "no" if refusing and verb == "replace" else ""
    sim.edit("deployments", "web", with_image("app:2"))
    sim.run(until="Failed")
    sim.run(5)
    sim.delay = never_ready()
    sim.edit("configmaps", "settings", {"data": {"a": "2"}})
    sim.run(until="Progressing")
    refusing.clear()
    sim.run(until="Succeeded")
    assert image_of(sim.primary) == "app:2"
