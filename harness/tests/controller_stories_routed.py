"""Stories with more than a Deployment behind Services: other targets and routers, hooks, metrics, scalers, configs, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.tests.controller_sim import (
    configmap,
    daemonset,
    deployment,
    hpa,
    kservice,
    no,
    number,
    service,
    target_ref,
    with_configmap,
    yes,
)
from harness.tests.controller_stories import (
    Story,
    abort,
    delete,
    delete_mid_run,
    fail,
    fail_promotion,
    new_image,
    promote,
    promoted,
    restart_mid_run,
    roll_back,
    rolled_back,
    suspend_mid_run,
)

if TYPE_CHECKING:
    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]


def gates(sim: Sim) -> None:
    """Every gate closed at first, opened one after the other."""
    new_image(sim)
    sim.run(until="Waiting")
    sim.run(7)
    sim.script["start"] = yes()
    sim.run(until="WaitingPromotion")
    sim.run(7)
    sim.script["finish"] = yes()
    sim.run(until="Succeeded")


def traffic_gate(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(15)
    sim.script["more"] = yes()
    sim.run(until="Succeeded")


def order_rollback(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(3.5)
    sim.script["undo"] = yes()
    sim.run(until="Failed")


def fail_metric_late(sim: Sim) -> None:
    new_image(sim)
    sim.run(until="Progressing")
    sim.run(4.5)
    sim.script["request-success-rate"] = number(50)
    sim.run(until="Failed")


def change_config(sim: Sim) -> None:
    sim.edit("configmaps", "settings", {"data": {"colour": "blue"}})
    sim.run(until="Succeeded")


def change_service(sim: Sim) -> None:
    sim.edit(
        "services", "web", {"spec": {"ports": [{"name": "http", "port": 81, "protocol": "TCP"}]}}
    )
    sim.run(until="Succeeded")


def new_revision(sim: Sim) -> None:
    containers = [{"name": "c", "image": "app:2"}]
    sim.edit("kservices", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
    sim.run(until="Succeeded")


def hook(kind: str, name: str) -> JSON:
    """One entry of spec.analysis.webhooks."""
    return {"type": kind, "name": name, "url": f"http://{name}.test/"}


GATEWAY: JSON = {
    "provider": "gatewayapi:v1",
    "service": {"port": 80, "gatewayRefs": [{"name": "gateway", "namespace": "infra"}]},
}
STEPS: JSON = {"interval": "2s", "threshold": 2, "stepWeight": 20, "maxWeight": 40}
ITERATIONS: JSON = {"interval": "2s", "threshold": 2, "iterations": 2}
METRIC: JSON = {
    "name": "request-success-rate",
    "interval": "1m",
    "thresholdRange": {"min": 99},
}
MATCH: JSON = {"match": [{"headers": {"x-canary": {"exact": "insider"}}}]}


def _seen(sim: Sim, *weights: int) -> bool:
    return promoted(sim) and set(weights) <= {weight for _, weight in sim.weights}


SCALED_OBJECT: JSON = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "web", "namespace": "n"},
    "spec": {
        "scaleTargetRef": {"name": "web"},
        "minReplicaCount": 2,
        "maxReplicaCount": 6,
        "triggers": [
            {
                "type": "prometheus",
                "name": "load",
                "metadata": {"query": "load{app='web'}", "threshold": "5"},
            }
        ],
    },
}
DAEMON: JSON = {"targetRef": target_ref("DaemonSet")}
HPA: JSON = {
    "autoscalerRef": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "name": "web",
    }
}
KEDA: JSON = {
    "autoscalerRef": {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web"}
}
AFFINITY: JSON = {"sessionAffinity": {"cookieName": "flagger-cookie", "maxAge": 3600}}


def _gone(sim: Sim) -> bool:
    """The Canary went, and the target serves alone, with all its pods."""
    return not sim.has_canary and not sim.leftovers() and sim.behind("web") == 3


def _config(sim: Sim) -> bool:
    copied = sim.objects["configmaps", "settings-primary"]["data"]
    return bool(sim.phase == "Succeeded" and copied == {"colour": "blue"})


def _with_hooks(analysis: JSON, *hooks: JSON) -> JSON:
    return {"analysis": analysis | {"webhooks": list(hooks)}}


STORIES = (
    # DaemonSets
    Story("daemonset", promote, promoted, DAEMON, daemonset(), "daemonsets"),
    Story("daemonset-roll-back", roll_back, rolled_back, DAEMON, daemonset(), "daemonsets"),
    Story(
        "daemonset-restart",
        restart_mid_run,
        lambda s: s.phase == "Succeeded",
        DAEMON,
        daemonset(),
        "daemonsets",
    ),
    # weights
    Story("weights", promote, lambda s: _seen(s, 0, 20, 40), GATEWAY | {"analysis": STEPS}),
    Story(
        "weights-step-promotion",
        promote,
        lambda s: _seen(s, 0, 20, 40),
        GATEWAY | {"analysis": STEPS | {"stepWeightPromotion": 20}},
    ),
    Story(
        "step-weights",
        promote,
        lambda s: _seen(s, 5, 30),
        GATEWAY | {"analysis": {"interval": "2s", "threshold": 2, "stepWeights": [5, 30]}},
    ),
    Story(
        "weights-restart",
        restart_mid_run,
        lambda s: s.phase == "Succeeded",
        GATEWAY | {"analysis": STEPS},
    ),
    Story("weights-abort", abort, rolled_back, GATEWAY | {"analysis": STEPS}),
    Story("weights-suspend", suspend_mid_run, promoted, GATEWAY | {"analysis": STEPS}),
    Story(
        "weights-promotion-failed",
        fail_promotion,
        lambda s: s.status["canaryWeight"] == 100,
        GATEWAY | {"analysis": STEPS},
    ),
    Story(
        "weights-daemonset",
        promote,
        promoted,
        GATEWAY | DAEMON | {"analysis": STEPS},
        daemonset(),
        "daemonsets",
    ),
    Story(
        "weights-istio",
        promote,
        lambda s: _seen(s, 20, 40),
        {"provider": "istio", "analysis": STEPS},
    ),
    Story(
        "session-affinity",
        promote,
        lambda s: _seen(s, 20, 40),
        GATEWAY | {"analysis": STEPS | AFFINITY},
    ),
    Story("mirroring", promote, promoted, GATEWAY | {"analysis": STEPS | {"mirror": True}}),
    Story(
        "ab-testing", promote, lambda s: _seen(s, 100), GATEWAY | {"analysis": ITERATIONS | MATCH}
    ),
    Story("blue-green-gateway", promote, promoted, GATEWAY | {"analysis": ITERATIONS}),
    # hooks and metrics
    Story(
        "metric-fails",
        fail,
        rolled_back,
        GATEWAY | {"analysis": STEPS | {"metrics": [METRIC]}},
        answers={"request-success-rate": number(90)},
    ),
    Story(
        "metric-fails-late",
        fail_metric_late,
        rolled_back,
        GATEWAY | {"analysis": STEPS | {"maxWeight": 80, "metrics": [METRIC]}},
    ),
    Story(
        "hooks",
        promote,
        promoted,
        _with_hooks(
            ITERATIONS | {"metrics": [METRIC]},
            hook("confirm-rollout", "start"),
            hook("pre-rollout", "smoke"),
            hook("rollout", "load"),
            hook("confirm-promotion", "finish"),
            hook("post-rollout", "after"),
            hook("rollback", "undo"),
        ),
    ),
    Story(
        "gates",
        gates,
        promoted,
        _with_hooks(
            ITERATIONS, hook("confirm-rollout", "start"), hook("confirm-promotion", "finish")
        ),
        answers={"start": no(), "finish": no()},
    ),
    Story(
        "traffic-gate",
        traffic_gate,
        promoted,
        GATEWAY | _with_hooks(STEPS, hook("confirm-traffic-increase", "more")),
        answers={"more": no()},
    ),
    Story(
        "rollback-hook",
        order_rollback,
        rolled_back,
        _with_hooks(ITERATIONS | {"iterations": 9}, hook("rollback", "undo")),
    ),
    Story(
        "pre-rollout-fails",
        fail,
        rolled_back,
        _with_hooks(ITERATIONS, hook("pre-rollout", "smoke"), hook("post-rollout", "after")),
        answers={"smoke": no("answered 500")},
    ),
    # configs and scalers
    Story(
        "config-change",
        change_config,
        _config,
        target=with_configmap(deployment()),
        others={"configmaps": configmap(colour="green")},
    ),
    Story("hpa", promote, promoted, HPA, others={"horizontalpodautoscalers": hpa()}),
    Story("keda", promote, promoted, KEDA, others={"scaledobjects": SCALED_OBJECT}),
    # other targets
    Story(
        "core-service",
        change_service,
        lambda s: s.phase == "Succeeded",
        GATEWAY | {"targetRef": target_ref("Service"), "analysis": STEPS},
        service(),
        "services",
    ),
    Story(
        "knative",
        new_revision,
        lambda s: s.phase == "Succeeded" and s.traffic() == {"web-00002": 100},
        {"provider": "knative", "targetRef": target_ref("Knative"), "analysis": STEPS},
        kservice(),
        "kservices",
    ),
    # deletion
    Story("revert", delete, _gone, {"revertOnDeletion": True}, others={"services": service()}),
    Story(
        "revert-mid-run",
        delete_mid_run,
        _gone,
        {"revertOnDeletion": True},
        others={"services": service()},
    ),
    Story(
        "revert-daemonset",
        delete,
        lambda s: not s.has_canary and s.behind("web") == 2,
        DAEMON | {"revertOnDeletion": True},
        daemonset(),
        "daemonsets",
        {"services": service()},
    ),
    Story(
        "revert-weights",
        delete_mid_run,
        lambda s: not s.has_canary and s.ready_pods("web") == 3,
        GATEWAY | {"revertOnDeletion": True, "analysis": STEPS},
        others={"services": service()},
    ),
    Story(
        "revert-hpa",
        delete,
        _gone,
        HPA | {"revertOnDeletion": True},
        others={"services": service(), "horizontalpodautoscalers": hpa()},
    ),
)
