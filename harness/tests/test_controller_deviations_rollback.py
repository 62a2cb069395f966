"""Faults of rollback, promotion and readiness that this controller must not have (P rows of known-deviations).

Here stands what no test of a concern shows yet; which test shows which row is in the controller's README.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.tests.controller_sim import (
    Sim,
    canary,
    daemonset,
    deployment,
    image,
    image_of,
    kservice,
    never_ready,
    no,
    number,
    running,
    target_ref,
    yes,
)

JSON = dict[str, Any]
ITERATIONS = {"interval": "2s", "threshold": 2, "iterations": 2}
METRIC = {"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 99}}
ROUTED = {
    "provider": "gatewayapi:v1",
    "service": {"port": 80, "gatewayRefs": [{"name": "gateway"}]},
}
WEIGHTS = {"interval": "2s", "threshold": 2, "stepWeight": 20, "maxWeight": 40}


def hook(kind: str, name: str) -> JSON:
    return {"type": kind, "name": name, "url": f"http://{name}.test/"}


def gated(analysis: JSON, *hooks: JSON, **spec: Any) -> Sim:
    """A Canary with hooks, initialised, with a new revision."""
    sim = Sim()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(analysis={**analysis, "webhooks": list(hooks)}, **spec))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    return sim


def asked(sim: Sim, name: str) -> int:
    return sum(called == name for _, called in sim.calls)


def told(sim: Sim) -> list[tuple[str, str]]:
    """Severity and text of every alert, in order."""
    return [(alert.severity, alert.message) for _, alert in sim.alerts]


# -- P3: an unhealthy primary blocks nothing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["blue-green", "weights"])
def test_p3_a_new_revision_repairs_a_primary_whose_pods_broke(strategy: str) -> None:
    sim = Sim()
    sim.add("deployments", deployment())
    routed = ROUTED | {"analysis": WEIGHTS} if strategy == "weights" else {}
    sim.add("canaries", canary(**routed))
    sim.run(until="Initialized")
    sim.settle()
    sim.delay = never_ready("web-primary", images=("app:1",))
    sim.pods["web-primary"].clear()
    sim.run(30)
    assert (sim.phase, sim.ready_pods("web-primary")) == ("Initialized", 0)
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Succeeded")
    assert sim.ready_pods("web-primary") == 3


# -- P4: whoever wants to be told is told why ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        ("web", "Rolling back web: not ready within 20 s (web: 0 of 3 pods are available"),
        ("web-primary", "Promotion failed: Deployment web-primary was not ready within 20 s"),
    ],
)
def test_p4_what_missed_its_deadline_is_alerted_once_with_the_cause(
    broken: str, cause: str
) -> None:
    sim = running(never_ready(broken))
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Failed")
    sim.run(1000)
    errors = [text for severity, text in told(sim) if severity == "error"]
    assert len(errors) == 1
    assert errors[0].startswith(cause)


def test_p4_a_bootstrap_that_fails_is_alerted_too() -> None:
    sim = Sim(never_ready("web-primary", images=("app:1",)))
    sim.add("deployments", deployment())
    sim.add("canaries", canary())
    sim.run(until="Failed")
    ((severity, text),) = told(sim)
    assert (severity, text.partition(":")[0]) == ("error", "Initialisation failed")


# -- P5: a rollback hook is asked while a gate before the run is closed --------------------------------------------------------


def test_p5_a_rollback_hook_ends_the_wait_and_only_another_change_starts_a_run() -> None:
    sim = Sim()
    sim.script |= {"start": no(), "undo": no()}
    sim.add("deployments", deployment())
    hooks = [hook("confirm-rollout", "start"), hook("rollback", "undo")]
    sim.add("canaries", canary(analysis={**ITERATIONS, "webhooks": hooks}))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Waiting")
    sim.run(10)
    assert asked(sim, "undo") >= 3
    sim.script["undo"] = yes()
    sim.run(until="Failed")
    assert sim.condition("Promoted")["reason"] == "RollbackHook"
    assert image_of(sim.primary) == "app:1"
    sim.script |= {"start": yes(), "undo": no()}
    sim.run(100)
    assert (sim.phase, sim.target["spec"]["replicas"]) == ("Failed", 0)
    sim.edit("deployments", "web", image("app:3"))
    sim.run(until="Succeeded")


# -- P6: a closed gate before more traffic -------------------------------------------------------------------------------------


def more_traffic(**analysis: Any) -> Sim:
    sim = Sim()
    sim.add("deployments", deployment())
    hooks = [hook("confirm-traffic-increase", "more")]
    sim.add("canaries", canary(**ROUTED, analysis={**WEIGHTS, **analysis, "webhooks": hooks}))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    while sim.status.get("canaryWeight") != 20:
        sim.run(0.5)
    sim.script["more"] = no()
    return sim


def test_p6_a_closed_gate_is_a_condition_and_one_alert_and_keeps_the_weight() -> None:
    sim = more_traffic()
    sim.run(5)
    assert sim.condition("Held")["reason"] == "ConfirmTrafficIncrease"
    before = len(sim.actions)
    sim.run(100)
    assert (sim.phase, sim.status["canaryWeight"]) == ("Progressing", 20)
    assert len([text for _, text in told(sim) if "more traffic" in text]) == 1
    assert len(sim.actions) == before
    assert asked(sim, "more") >= 40
    sim.script["more"] = yes()
    sim.run(until="Succeeded")
    assert sim.condition("Held") == {}


def test_p6_checks_that_fail_behind_a_closed_gate_count_and_roll_back() -> None:
    sim = more_traffic(metrics=[METRIC])
    sim.run(5)
    sim.script["request-success-rate"] = number(50)
    sim.run(10, until="Failed")
    assert sim.status["failedChecks"] == 2
    assert sim.traffic()["web-canary"] == 0


# -- P7: a closed gate before the promotion --------------------------------------------------------------------------------------


def test_p7_waiting_for_the_promotion_keeps_weight_and_traffic_and_asks_every_interval() -> None:
    sim = Sim()
    sim.script["finish"] = no()
    sim.add("deployments", deployment())
    hooks = [hook("confirm-promotion", "finish")]
    sim.add("canaries", canary(**ROUTED, analysis={**WEIGHTS, "webhooks": hooks}))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="WaitingPromotion")
    sim.settle()
    began, before = asked(sim, "finish"), len(sim.actions)
    sim.run(20)
    assert (sim.status["canaryWeight"], sim.traffic()["web-canary"]) == (40, 40)
    assert sim.status["iterations"] == 0
    assert asked(sim, "finish") - began == pytest.approx(10, abs=1)
    assert len(sim.actions) == before
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")


def test_p7_with_one_iteration_the_hooks_before_the_analysis_are_called_once() -> None:
    hooks = [
        hook("pre-rollout", "smoke"),
        hook("rollout", "load"),
        hook("confirm-promotion", "finish"),
    ]
    sim = Sim()
    sim.script["finish"] = no()
    sim.add("deployments", deployment())
    sim.add("canaries", canary(analysis={**ITERATIONS, "iterations": 1, "webhooks": hooks}))
    sim.run(until="Initialized")
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="WaitingPromotion")
    sim.run(10)
    assert asked(sim, "smoke") == 1
    assert asked(sim, "load") >= 5
    assert sim.status["iterations"] == 1


# -- P9: a promotion that is repeated changes nothing ----------------------------------------------------------------------------


def test_p9_killed_between_promotion_and_status_the_primary_rolls_once() -> None:
    sim = running()
    sim.edit("deployments", "web", image("app:2"))
    sim.run(until="Progressing")

    def kill(patch: JSON) -> None:
        if patch.get("phase") == "Promoting":
            sim.before_status = None
            sim.kill_after = 1
            raise_after.append(patch)

    raise_after: list[JSON] = []
    before = sim.primary["metadata"]["generation"]
    sim.before_status = kill
    sim.run(until="Succeeded")
    assert raise_after
    assert sim.restarts == 1
    assert sim.primary["metadata"]["generation"] == before + 1


# -- P11: one clock, whatever the target is ----------------------------------------------------------------------------------------

KINDS = {"Deployment": deployment, "DaemonSet": daemonset}


@pytest.mark.parametrize("kind", KINDS)
def test_p11_the_deadline_counts_from_the_scale_up_whatever_else_is_written(kind: str) -> None:
    sim = Sim(never_ready("web"))
    plural = f"{kind.lower()}s"
    sim.add(plural, KINDS[kind]())
    sim.add("canaries", canary(targetRef=target_ref(kind)))
    sim.run(until="Initialized")
    sim.settle()
    sim.edit(plural, "web", image("app:2"))
    began = sim.now
    for _ in range(4):
        sim.run(4)
        # Somebody else writes to the status: that is no progress.
        sim.edit_status({"trackedConfigs": {"configmap/x": str(sim.now)}})
    sim.run(until="Failed")
    assert sim.now - began == pytest.approx(20.0, abs=0.05)


def test_p11_a_knative_revision_has_a_deadline_too() -> None:
    sim = Sim(never_ready("web-00002"))
    sim.add("kservices", kservice())
    ready = {"provider": "knative", "targetRef": target_ref("Knative")}
    analysis = {"interval": "2s", "threshold": 2, "stepWeight": 50}
    sim.add("canaries", canary(**ready, analysis=analysis))
    sim.run(until="Initialized")
    sim.settle()
    containers = [{"name": "c", "image": "app:2"}]
    sim.edit("kservices", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
    began = sim.now
    sim.run(until="Failed")
    assert sim.now - began == pytest.approx(20.0, abs=0.3)
    assert "not ready within 20 s" in sim.condition("Promoted")["message"]
