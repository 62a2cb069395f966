"""Metrics: the compatible names, ours, and that everything of a canary goes with it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from harness.controller.core.moments import stamp
from harness.controller.shell.counting import Counting
from harness.controller.shell.meter import Meter, Turns
from harness.controller.shell.metrics import Metrics
from harness.kube.client import KubeClient
from harness.kube.errors import ApiError, Conflict, Unreachable
from harness.kube.resource import CANARY, CONFIGMAP, DEPLOYMENT
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster, run_virtual

JSON = dict[str, Any]
NOW = 1_800_000_000.0
OWN = "rollout_drill_controller"


def canary(phase: str = "", name: str = "web", target: str = "app", **more: Any) -> JSON:
    status: JSON = {"phase": phase, "canaryWeight": 0, "failedChecks": 0} | more.pop("status", {})
    return {
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"targetRef": {"name": target}, "analysis": {"iterations": 3}} | more,
        "status": status,
    }


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(clock)


def value(metrics: Metrics, name: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def lines(metrics: Metrics) -> list[str]:
    text, _ = metrics.text()
    return [line for line in text.decode().splitlines() if not line.startswith("#")]


APP = {"name": "app", "namespace": "n"}
WEB = {"name": "web", "namespace": "n"}


@pytest.mark.parametrize(
    ("phase", "status"),
    [("", 1), ("Initialized", 1), ("Progressing", 0), ("Promoting", 1), ("Failed", 2)],
)
def test_status_and_weight_are_named_by_the_target(
    metrics: Metrics, phase: str, status: int
) -> None:
    metrics.saw(canary(phase, status={"canaryWeight": 30, "failedChecks": 2}))
    assert value(metrics, "flagger_canary_status", **APP) == status
    assert value(metrics, "flagger_canary_weight", workload="app", namespace="n") == 30
    assert value(metrics, "flagger_canary_weight", workload="app-primary", namespace="n") == 70
    assert value(metrics, "flagger_canary_total", namespace="n") == 1
    assert value(metrics, f"{OWN}_canary_failed_checks", **WEB) == 2
    assert value(metrics, f"{OWN}_canary_phase", **WEB, phase=phase) == (1 if phase else None)


def test_only_the_present_phase_is_there(metrics: Metrics) -> None:
    for phase in ("Initializing", "Initialized", "Progressing"):
        metrics.saw(canary(phase))
    shown = [line for line in lines(metrics) if line.startswith(f"{OWN}_canary_phase{{")]
    assert shown == [f'{OWN}_canary_phase{{name="web",namespace="n",phase="Progressing"}} 1.0']


def test_the_end_of_a_run_is_counted_once(metrics: Metrics, clock: Clock) -> None:
    began = {"type": "Promoted", "status": "Unknown", "lastTransitionTime": stamp(NOW - 40)}
    outcome = {**APP, "deployment_strategy": "blue-green", "analysis_status": "completed"}
    running = {"conditions": [began]}
    metrics.saw(canary("Succeeded"))  # what was so before this process is not counted
    assert value(metrics, "flagger_canary_successes_total", **outcome) is None
    metrics.saw(canary("Progressing", status=running))
    clock.now += 20
    metrics.saw(canary("Finalising", status=running))
    metrics.saw(canary("Succeeded"))
    metrics.saw(canary("Succeeded"))
    assert value(metrics, "flagger_canary_successes_total", **outcome) == 1
    assert value(metrics, f"{OWN}_run_duration_seconds_sum", outcome="Succeeded") == 60
    metrics.saw(canary("Progressing", status=running))
    metrics.saw(canary("Failed"))
    assert value(metrics, "flagger_canary_failures_total", **outcome) == 1
    assert value(metrics, f"{OWN}_run_duration_seconds_count", outcome="Failed") == 1


@pytest.mark.parametrize(
    ("spec", "strategy", "how"),
    [
        ({}, "blue-green", "completed"),
        ({"analysis": {"iterations": 1, "match": [{}]}}, "ab-testing", "completed"),
        ({"analysis": {"stepWeight": 10}}, "canary", "completed"),
        ({"skipAnalysis": True}, "blue-green", "skipped"),
    ],
)
def test_outcomes_say_how(metrics: Metrics, spec: JSON, strategy: str, how: str) -> None:
    metrics.saw(canary("Promoting", **spec))
    metrics.saw(canary("Succeeded", **spec))
    labels = {**APP, "deployment_strategy": strategy, "analysis_status": how}
    assert value(metrics, "flagger_canary_successes_total", **labels) == 1


def test_suspended_with_a_change_pending_and_held_by_a_gate(metrics: Metrics) -> None:
    names = {
        "ChangePending": f"{OWN}_canary_change_pending",
        "Held": f"{OWN}_canary_held",
        "Unmeasured": f"{OWN}_canary_unmeasured",
    }
    for kind, name in names.items():
        metrics.saw(
            canary("Progressing", status={"conditions": [{"type": kind, "status": "True"}]})
        )
        assert value(metrics, name, **WEB) == 1
        metrics.saw(canary("Progressing"))
        assert value(metrics, name, **WEB) == 0


def test_everything_of_a_canary_goes_with_it(metrics: Metrics) -> None:
    before = lines(metrics)
    for phase in ("Initialized", "Progressing", "Succeeded"):
        metrics.saw(canary(phase))
    metrics.measured(canary(), "latency", 17.0)
    assert value(metrics, "flagger_canary_metric_analysis", **APP, metric="latency") == 17
    metrics.passed("web", 0.1, "row")
    assert value(metrics, "flagger_canary_duration_seconds_count", **APP) == 1
    metrics.saw(canary("Initialized", name="other", target="other"))
    metrics.forget("web")
    metrics.forget("web")
    told = [line for line in lines(metrics) if '"n"' in line]
    assert told
    assert not [line for line in told if "app" in line or "web" in line]
    assert value(metrics, "flagger_canary_total", namespace="n") == 1
    metrics.leading(on=False)
    assert value(metrics, "flagger_canary_total", namespace="n") == 0
    left = [line for line in lines(metrics) if line not in before and "canary" in line]
    assert left == ['flagger_canary_total{namespace="n"} 0.0']


def test_a_canary_that_gets_another_target_leaves_nothing_under_the_old_name(
    metrics: Metrics,
) -> None:
    metrics.saw(canary("Initialized"))
    metrics.saw(canary("Initialized", target="next"))
    assert value(metrics, "flagger_canary_status", **APP) is None
    assert value(metrics, "flagger_canary_status", name="next", namespace="n") == 1
    assert value(metrics, "flagger_canary_total", namespace="n") == 1


def test_passes_calls_and_states(metrics: Metrics) -> None:
    metrics.passed("gone", 0.2, "")
    assert value(metrics, f"{OWN}_passes_total", row="none") == 1
    assert value(metrics, f"{OWN}_pass_duration_seconds_count") == 1
    metrics.called("webhook", 2.0, ok=False)
    labels = {"kind": "webhook", "result": "failed"}
    assert value(metrics, f"{OWN}_call_duration_seconds_sum", **labels) == 2
    metrics.degraded(on=True)
    assert value(metrics, f"{OWN}_degraded") == 1
    metrics.leading(on=True)
    assert value(metrics, f"{OWN}_leader") == 1
    assert any(line.startswith("flagger_info{") for line in lines(metrics))
    assert not any("_created" in line for line in lines(metrics))


def test_requests_are_counted_by_verb_resource_and_answer(metrics: Metrics) -> None:
    async def story() -> None:
        cluster = FakeCluster()
        counting = Counting(cluster, metrics, asyncio.get_running_loop().time)
        client = KubeClient(counting, user_agent="test", budget=Budget(total=0.0))
        body = {"metadata": {"name": "a"}}
        made = await client.create(CONFIGMAP, body, "n", field_manager="t")
        with contextlib.suppress(Conflict):
            await client.create(CONFIGMAP, body, "n", field_manager="t")
        await client.patch(CONFIGMAP, "a", "n", {"data": {"x": "y"}}, field_manager="t")
        with contextlib.suppress(Conflict):
            await client.replace(CONFIGMAP, made, "n", field_manager="t")
        await client.list(DEPLOYMENT, "n")
        status: JSON = {"status": {}}
        with contextlib.suppress(ApiError):
            await client.patch(CANARY, "c", "n", status, field_manager="t", subresource="status")
        cluster.fail_next(0)
        with contextlib.suppress(Unreachable):
            await client.get(CONFIGMAP, "a", "n")
        await client.version()
        stream = client.stream(CANARY.path("n"), {"watch": "true"}, silence=60)
        async with stream:
            # A watch is counted when it is answered, not when it ends.
            assert counted("watch", "canaries", "200") == 1
            await asyncio.sleep(50)
        assert counting.watches == {CANARY.path("n"): 0.0}
        await client.list(CANARY, "n")
        assert counting.watches == {CANARY.path("n"): 50.0}
        cluster.forbid("list", "canaries")
        with contextlib.suppress(ApiError):
            await client.list(CANARY, "n")
        assert counting.watches == {}

    def counted(verb: str, resource: str, code: str) -> float | None:
        labels = {"verb": verb, "resource": resource, "code": code}
        return value(metrics, f"{OWN}_api_requests_total", **labels)

    run_virtual(story())
    assert counted("create", "configmaps", "201") == 1
    assert counted("create", "configmaps", "409") == 1
    assert counted("patch", "configmaps", "200") == 1
    assert counted("update", "configmaps", "409") == 1
    assert counted("list", "deployments", "200") == 1
    assert counted("patch", "canaries/status", "404") == 1
    assert counted("get", "configmaps", "none") == 1
    assert counted("get", "other", "200") == 1
    assert counted("watch", "canaries", "200") == 1
    # A creation that found the object there is no conflict.
    assert value(metrics, f"{OWN}_conflicts_total", resource="configmaps") == 1
    assert value(metrics, f"{OWN}_api_request_duration_seconds_count", verb="watch") is None
    assert value(metrics, f"{OWN}_api_request_duration_seconds_count", verb="list") == 3


def test_the_depth_of_the_queue(metrics: Metrics) -> None:
    async def story() -> None:
        turns = Turns(1, metrics)

        async def one() -> None:
            async with turns:
                await asyncio.sleep(10)

        tasks = [asyncio.create_task(one()) for _ in "abc"]
        await asyncio.sleep(1)
        assert value(metrics, f"{OWN}_queue_depth") == 2
        tasks[2].cancel()
        await asyncio.sleep(10)
        assert value(metrics, f"{OWN}_queue_depth") == 0
        await asyncio.sleep(10)
        assert tasks[1].done()
        async with turns:
            assert value(metrics, f"{OWN}_queue_depth") == 0

    run_virtual(story())


def test_without_metrics_nothing_is_kept() -> None:
    meter = Meter()
    meter.saw(canary("Progressing"))
    meter.passed("web", 0.1, "row")
    meter.leading(on=True)
    assert not vars(meter)
    # Whatever the shell tells one, it can tell the other.
    assert {name for name in vars(Meter) if name[0] != "_"} <= {
        name for name in vars(Metrics) if name[0] != "_"
    }
