"""How a Canary goes: with revertOnDeletion in every phase, without it, and when it cannot be reverted (A8, A9, O8, cases C19 and C20)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.controller.core.lifecycle import FINALIZER
from harness.controller.core.services import ORIGINAL
from harness.tests.controller_runs import hook, prepared
from harness.tests.controller_sim import (
    Sim,
    canary,
    daemonset,
    deployment,
    hpa,
    image,
    image_of,
    never_ready,
    no,
    service,
    target_ref,
    yes,
)
from harness.tests.controller_stories_routed import GATEWAY, HPA

JSON = dict[str, Any]
REVERT: JSON = {"revertOnDeletion": True}
GATES = (hook("confirm-rollout", "start"), hook("confirm-promotion", "finish"))
PHASES = (
    "Initializing",
    "Initialized",
    "Waiting",
    "Progressing",
    "WaitingPromotion",
    "Promoting",
    "Finalising",
    "Succeeded",
    "Failed",
)
BOUND = 20.0
"""Seconds: progressDeadlineSeconds of the Canaries here."""


def with_apex(spec: JSON | None = None, **apex: Any) -> Sim:
    """A Canary with revertOnDeletion whose apex Service was the user's before."""
    sim = Sim()
    sim.add("services", service(**apex))
    sim.add("deployments", deployment())
    analysis = {"interval": "2s", "threshold": 2, "iterations": 2, "webhooks": list(GATES)}
    sim.add("canaries", canary(**({"analysis": analysis} | REVERT | (spec or {}))))
    return sim


def reach(sim: Sim, phase: str) -> None:
    if phase == "Initializing":
        sim.run(until=phase)
        return
    sim.run(until="Initialized")
    if phase == "Initialized":
        sim.settle()
        return
    sim.script["start"] = no() if phase == "Waiting" else yes()
    sim.script["finish"] = no() if phase == "WaitingPromotion" else yes()
    if phase == "Failed":
        sim.delay = never_ready("web")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until=phase)
    if phase in ("Waiting", "WaitingPromotion"):
        sim.run(5)


def finalizers(sim: Sim) -> list[str]:
    return sim.canary["metadata"].get("finalizers") or []


# -- the finalizer -----------------------------------------------------------------------------------------------------------


def test_the_finalizer_comes_first_and_goes_with_the_field() -> None:
    sim = with_apex()
    sim.edit("canaries", "web", {"metadata": {"finalizers": ["mine.example/f"]}})
    sim.controller_pass()
    assert sim.actions == [("patch", "canaries", "web")]
    assert finalizers(sim) == ["mine.example/f", FINALIZER]
    sim.run(until="Initialized")
    sim.edit("canaries", "web", {"spec": {"revertOnDeletion": False}})
    sim.settle()
    assert finalizers(sim) == ["mine.example/f"]
    sim.edit("canaries", "web", {"spec": {"revertOnDeletion": True}})
    sim.settle()
    assert finalizers(sim) == ["mine.example/f", FINALIZER]
    assert sim.phase == "Initialized"


def test_without_the_field_there_is_none_and_the_target_stays_at_zero() -> None:
    """Deviation A8: kept as documented; the choice is the Canary's."""
    sim = prepared()
    assert not finalizers(sim)
    sim.remove("canaries", "web")
    sim.settle()
    assert not sim.has_canary
    assert sim.leftovers() == []
    assert set(sim.of("deployments")) == {"web"}
    assert sim.target["spec"]["replicas"] == 0


# -- case C20 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conflicts", [None, 2, 3], ids=["calm", "every second", "every third"])
def test_c20_the_target_serves_before_the_primary_goes(conflicts: int | None) -> None:
    """Case C20: target to the primary's count, ready, apex back by its original selector, then released."""
    selector = {"app": "web", "tier": "front"}
    target = deployment()
    target["spec"]["template"]["metadata"]["labels"] = {"app": "web", "tier": "front"}
    sim = Sim(lambda _name, _template, _index: 5.0)
    sim.add("services", service(selector=selector))
    sim.add("deployments", target)
    sim.add("canaries", canary(**REVERT))
    sim.run(until="Initialized")
    sim.settle()
    assert sim.target["spec"]["replicas"] == 0
    sim.cuts.append(sim.t)
    sim.conflict_every = conflicts
    begin, order = sim.t, len(sim.actions)
    sim.remove("canaries", "web")
    sim.run(2)
    assert sim.phase == "Terminating"
    sim.edit("services", "web", {"metadata": {"annotations": {"somebody": "else"}}})
    sim.run(until="gone")
    assert 5 <= sim.t - begin < BOUND
    sim.settle()
    assert sim.lowest()[-1][1] >= 3
    assert sim.target["spec"]["replicas"] == 3
    apex = sim.objects["services", "web"]
    assert apex["spec"]["selector"] == selector
    assert ORIGINAL not in apex["metadata"]["annotations"]
    assert apex["metadata"]["annotations"]["somebody"] == "else"
    assert set(sim.of("deployments")) == {"web"}
    assert sim.leftovers() == []
    if conflicts is None:
        assert [(verb, kind) for verb, kind, _ in sim.actions[order:]] == [
            ("status", "canaries"),
            ("patch", "deployments"),
            ("patch", "services"),
            ("status", "canaries"),
            ("patch", "canaries"),
        ]


@pytest.mark.parametrize("phase", PHASES)
def test_a_canary_is_reverted_in_every_phase(phase: str) -> None:
    sim = with_apex()
    reach(sim, phase)
    sim.delay = lambda *_: 1.0
    sim.cuts.append(sim.t)
    sim.remove("canaries", "web")
    sim.run(until="gone")
    sim.run(2)
    assert sim.behind("web") == 3
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web"}
    assert sim.ready_pods("web") == 3
    assert set(sim.of("deployments")) == {"web"}
    if phase != "Initializing":
        assert sim.lowest()[-1][1] >= 3
    assert sim.leftovers() == []


@pytest.mark.parametrize("phase", PHASES)
def test_a_canary_without_the_field_goes_at_once_in_every_phase(phase: str) -> None:
    sim = with_apex({"revertOnDeletion": False})
    reach(sim, phase)
    before = len(sim.actions)
    sim.remove("canaries", "web")
    sim.settle()
    assert not sim.has_canary
    assert len(sim.actions) == before
    assert sim.leftovers() == []


def test_after_a_promotion_that_failed_the_kept_canary_gets_the_traffic() -> None:
    sim = with_apex()
    sim.delay = never_ready("web-primary")
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.remove("canaries", "web")
    sim.run(1, until="gone")
    assert (sim.behind("web"), image_of(sim.target)) == (3, "app:2")


def test_more_pods_than_the_primary_has_are_not_taken_away() -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.edit("deployments", "web", {"spec": {"replicas": 5}})
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert sim.target["spec"]["replicas"] == 5


def test_an_autoscaler_is_not_fought_over_the_number() -> None:
    sim = Sim(lambda name, _template, index: 8.0 if name == "web" and index else 1.0)
    sim.add("horizontalpodautoscalers", hpa())
    sim.add("services", service())
    sim.add("deployments", deployment())
    sim.add("canaries", canary(**REVERT, **HPA))
    sim.run(until="Initialized")
    sim.settle()
    sim.remove("canaries", "web")
    sim.run(2)
    assert sim.target["spec"]["replicas"] == 3
    sim.edit("deployments", "web", {"spec": {"replicas": 2}}, "kube-controller-manager")
    before = len(sim.actions)
    sim.run(2)
    assert (len(sim.actions), sim.target["spec"]["replicas"]) == (before, 2)
    sim.run(until="gone")
    assert sim.behind("web") == 2


def test_a_daemonset_gets_its_nodes_back() -> None:
    sim = Sim()
    sim.add("services", service())
    sim.add("daemonsets", daemonset())
    sim.add("canaries", canary(**REVERT, targetRef=target_ref("DaemonSet")))
    sim.run(until="Initialized")
    sim.settle()
    sim.cuts.append(sim.t)
    sim.remove("canaries", "web")
    sim.run(until="gone")
    sim.settle()
    assert sim.lowest()[-1][1] >= 2
    assert sim.behind("web") == 2
    pods = sim.objects["daemonsets", "web"]["spec"]["template"]["spec"]
    assert pods.get("nodeSelector") in (None, {})


def test_a_route_is_given_back_too() -> None:
    sim = with_apex(GATEWAY | {"analysis": {"interval": "2s", "stepWeight": 20}})
    sim.run(until="Initialized")
    sim.settle()
    sim.cuts.append(sim.t)
    sim.remove("canaries", "web")
    sim.run(until="gone")
    sim.settle()
    assert sim.lowest()[-1][1] >= 3
    assert sim.behind("web") == 3


# -- case C19 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [False, True], ids=["a: target first", "b: both at once"])
def test_c19_a_canary_without_its_target_is_let_go(*, at_once: bool) -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.remove("deployments", "web")
    if not at_once:
        sim.run(5)
    sim.remove("canaries", "web")
    sim.run(1, until="gone")
    assert [m for m in sim.messages() if m == "Nothing to revert: web does not exist"]


def test_c19_a_target_that_goes_while_it_is_waited_for_ends_the_wait() -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.delay = lambda *_: None
    sim.remove("canaries", "web")
    sim.run(5)
    assert sim.phase == "Terminating"
    sim.remove("deployments", "web")
    sim.run(1, until="gone")


def test_c19_c_a_namespace_that_goes_takes_its_canary_along() -> None:
    """The namespace's controller deletes everything in any order, and nothing new may be created."""
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.admission = lambda verb, _plural, _obj: (
        "namespace n is being terminated" * (verb == "create")
    )
    for resource, name in list(sim.objects):
        sim.remove(resource, name)
    sim.run(1, until="gone")
    sim.settle()
    assert sim.objects == {}


def test_c19_without_an_apex_service_the_rest_is_reverted() -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.remove("canaries", "web")
    sim.remove("services", "web")
    sim.run(until="gone")
    assert sim.ready_pods("web") == 3


def test_c19_d_a_target_that_is_never_ready_has_a_bound_and_the_traffic_all_the_same() -> None:
    """The primary goes with the Canary, so an apex that still selected it would select nothing for ever."""
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.delay = never_ready("web", images=("app:1",), count=1)
    begin = sim.t
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert sim.t - begin == pytest.approx(BOUND, abs=0.5)
    assert sim.target["spec"]["replicas"] == 3
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web"}
    (said,) = [m for m in sim.messages() if "Reverted too early" in m]
    assert "2 of 3 pods are available" in said


def test_turning_the_field_off_lets_a_canary_go_that_is_being_reverted() -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.delay = lambda *_: None
    sim.remove("canaries", "web")
    sim.run(5)
    sim.edit("canaries", "web", {"spec": {"revertOnDeletion": False}})
    sim.run(1, until="gone")


# -- suspended, refused, not taken over yet ----------------------------------------------------------------------------------


def test_a_suspended_canary_is_reverted_like_any_other() -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.edit("canaries", "web", {"spec": {"suspend": True}})
    sim.settle()
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert sim.behind("web") == 3


@pytest.mark.parametrize(
    "spec",
    [
        {"analysis": {"webhooks": [{"name": "w"}]}},
        {"analysis": {"metrics": [{"name": "unknown"}]}},
        {"service": {"port": None}},
    ],
    ids=["webhook", "metric", "port"],
)
def test_a_canary_that_is_refused_by_now_is_reverted_too(spec: JSON) -> None:
    """Its target is at zero: to let it go would be an outage."""
    sim = with_apex()
    sim.run(until="Initialized")
    sim.settle()
    sim.edit("canaries", "web", {"spec": spec})
    sim.run(5)
    assert sim.condition("Accepted")["status"] == "False"
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert sim.behind("web") == 3


@pytest.mark.parametrize(
    "spec",
    [{"provider": "nginx"}, {"targetRef": target_ref("Deployment") | {"kind": "StatefulSet"}}],
    ids=["provider", "kind"],
)
def test_a_canary_that_nobody_could_revert_is_let_go_and_says_so(spec: JSON) -> None:
    sim = with_apex()
    sim.run(until="Initialized")
    sim.edit("canaries", "web", {"spec": spec})
    sim.run(5)
    sim.remove("canaries", "web")
    sim.run(1, until="gone")
    assert [m for m in sim.messages() if m.startswith("Nothing to revert: ")]


def test_a_bootstrap_that_has_moved_the_apex_is_reverted() -> None:
    """The gateway never accepts the route, so the Canary is not initialised, but the user's apex has moved already."""
    sim = with_apex(GATEWAY | {"analysis": {"interval": "2s", "stepWeight": 20}})
    sim.gateway_delay = None
    sim.run(60)
    assert sim.phase in ("Initializing", "Failed")
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web-primary"}
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web"}


def test_a_bootstrap_under_way_leaves_the_users_apex_untouched() -> None:
    sim = with_apex(selector={"app": "web", "tier": "front"})
    sim.run(until="Initializing")
    sim.remove("canaries", "web")
    sim.run(until="gone")
    assert sim.objects["services", "web"]["spec"]["selector"] == {"app": "web", "tier": "front"}
