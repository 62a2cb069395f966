"""What rest costs on the wire: watches that are renewed, the Lease, and nothing else, whatever kind of Canary it is."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.options import Options
from harness.controller.shell import log as logs
from harness.controller.shell.engine import SHARED_RETRY
from harness.controller.shell.kinds import RESOURCES
from harness.controller.shell.lease import Timing as LeaseTiming
from harness.controller.shell.process import serve
from harness.kube.testing import FakeCluster, run_virtual
from harness.kube.watch import Timing as WatchTiming
from harness.tests.controller_sim import (
    START,
    configmap,
    daemonset,
    deployment,
    hpa,
    kservice,
    service,
    target_ref,
    with_configmap,
)
from harness.tests.controller_stories import Story
from harness.tests.controller_stories_routed import (
    GATEWAY,
    HPA,
    ITERATIONS,
    METRIC,
    STEPS,
    change_service,
    hook,
    new_revision,
)
from harness.tests.test_controller_shell import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.tests.controller_sim import Sim

JSON = dict[str, Any]
Bill = Counter[tuple[str, str]]
MINUTES = 10
SECONDS = 60.0 * MINUTES
RENEWALS = int(SECONDS) // WatchTiming().server
"""Connections of one watch in that time."""
LEASE = int(SECONDS / LeaseTiming().renew)
ALWAYS = ("canaries", "deployments", "services")
CONFIGS = ("configmaps", "secrets")
ASKED: JSON = {
    "metrics": [METRIC],
    "webhooks": [
        hook("confirm-rollout", "start"),
        hook("pre-rollout", "smoke"),
        hook("rollout", "load"),
        hook("confirm-promotion", "finish"),
        hook("post-rollout", "after"),
        hook("rollback", "undo"),
        hook("event", "chat"),
    ],
}


def promote(sim: Sim) -> None:
    """Release another template of the same containers."""
    sim.edit(sim.plural, "web", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
    sim.run(until="Succeeded")


def done(sim: Sim) -> bool:
    return sim.phase == "Succeeded"


def secret() -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login", "namespace": "n"},
        "type": "Opaque",
        "data": {"user": "Zmlyc3Q="},
    }


def with_configs() -> JSON:
    """A Deployment with a ConfigMap and a Secret in its environment."""
    obj = with_configmap(deployment())
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"].append({"secretRef": {"name": "login"}})
    return obj


SETTLED: dict[str, tuple[Story, tuple[str, ...]]] = {
    "deployment with configs and an autoscaler": (
        Story(
            "deployment",
            promote,
            done,
            {**HPA, "analysis": ITERATIONS | ASKED},
            with_configs(),
            others={
                "configmaps": configmap(colour="green"),
                "secrets": secret(),
                "horizontalpodautoscalers": hpa(),
            },
        ),
        (*ALWAYS, *CONFIGS, "horizontalpodautoscalers"),
    ),
    "daemonset": (
        Story(
            "daemonset",
            promote,
            done,
            {"targetRef": target_ref("DaemonSet"), "analysis": ITERATIONS | ASKED},
            daemonset(),
            "daemonsets",
        ),
        (*ALWAYS, *CONFIGS, "daemonsets"),
    ),
    "core service": (
        Story(
            "core-service",
            change_service,
            done,
            GATEWAY | {"targetRef": target_ref("Service"), "analysis": STEPS | ASKED},
            service(),
            "services",
        ),
        (*ALWAYS, "httproutes"),
    ),
    "knative": (
        Story(
            "knative",
            new_revision,
            done,
            {
                "provider": "knative",
                "targetRef": target_ref("Knative"),
                "analysis": STEPS | ASKED,
            },
            kservice(),
            "kservices",
        ),
        (*ALWAYS, "kservices", "krevisions"),
    ),
    "route": (
        Story("route", promote, done, GATEWAY | {"analysis": STEPS | ASKED}),
        (*ALWAYS, *CONFIGS, "httproutes"),
    ),
    "mesh": (
        Story("mesh", promote, done, {"provider": "istio", "analysis": STEPS | ASKED}),
        (*ALWAYS, *CONFIGS, "virtualservices", "destinationrules"),
    ),
}
"""Canaries that have had a release, and the kinds that are watched for each."""


def cluster_after(story: Story) -> FakeCluster:
    """A cluster that holds everything as it is after a story, and that serves every kind."""
    sim = story.tell(story.begin())
    assert story.end(sim)
    cluster = FakeCluster(*RESOURCES.values())
    for obj in sim.objects.values():
        cluster.add(copy.deepcopy(obj))
    return cluster


@contextlib.asynccontextmanager
async def at_work(cluster: FakeCluster, **options: Any) -> AsyncIterator[io.StringIO]:
    """The whole process, but for signals, logging what it does."""
    stream, clock = io.StringIO(), asyncio.get_running_loop().time
    chosen = replace(Options("n"), **options)
    work = serve(chosen, logs.to(stream), lambda: START + 1000 + clock(), cluster)
    task = asyncio.create_task(work)
    try:
        yield stream
        assert not task.done(), stream.getvalue()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def bill(cluster: FakeCluster) -> Bill:
    """Requests by verb and path, that of a watch or a list without what it is filtered by."""
    return Counter((asked.verb, asked.path) for asked in cluster.requests)


def renewals(kinds: tuple[str, ...], times: int = RENEWALS) -> Bill:
    return Counter({("watch", RESOURCES[kind].path("n")): times for kind in kinds})


async def settle(cluster: FakeCluster) -> None:
    """Let the controller come to rest, half way through a connection, so that it does not matter on which side of a limit a renewal falls."""
    await asyncio.sleep(2.5 * WatchTiming().server)
    cluster.requests.clear()


async def rest(cluster: FakeCluster) -> Bill:
    """Let the controller come to rest, then count for ten minutes."""
    await settle(cluster)
    await asyncio.sleep(SECONDS)
    return bill(cluster)


def test_a_watch_is_renewed_twelve_times_in_ten_minutes() -> None:
    assert (RENEWALS, LEASE) == (12, 120)


@pytest.mark.parametrize("name", SETTLED)
def test_a_settled_canary_costs_watch_renewals_and_nothing_else(name: str) -> None:
    story, kinds = SETTLED[name]
    cluster = cluster_after(story)

    async def told() -> tuple[Bill, list[Any], str]:
        async with at_work(cluster) as log:
            await settle(cluster)
            before = cluster.objects("Canary", "n")
            cost = await rest(cluster)
            assert cluster.objects("Canary", "n") == before
            return cost, cluster.objects("Event", "n"), log.getvalue()

    cost, events, log = run_virtual(told())
    assert cost == renewals(kinds)
    assert not events, "nothing was left to say either"
    assert '"row": "idle"' in log or '"row": "unchanged"' in log, "it was looked at"


def test_with_leader_election_the_lease_is_renewed_as_well() -> None:
    story, kinds = SETTLED["deployment with configs and an autoscaler"]
    cluster = cluster_after(story)

    async def told() -> Bill:
        async with at_work(cluster, leader_elect=True):
            return await rest(cluster)

    lease = "/apis/coordination.k8s.io/v1/namespaces/n/leases/rollout-drill-controller"
    assert run_virtual(told()) == renewals(kinds) + Counter({("update", lease): LEASE})


def test_who_stands_by_looks_at_the_lease_and_watches_nothing() -> None:
    cluster = cluster_after(SETTLED["route"][0])

    async def told() -> Bill:
        async with at_work(cluster, leader_elect=True):
            await asyncio.sleep(1)
            async with at_work(cluster, leader_elect=True):
                both = await rest(cluster)
        return both

    lease = "/apis/coordination.k8s.io/v1/namespaces/n/leases/rollout-drill-controller"
    kinds = SETTLED["route"][1]
    looks = int(SECONDS / LeaseTiming().poll)
    expected = Counter({("update", lease): LEASE, ("get", lease): looks})
    assert run_virtual(told()) == renewals(kinds) + expected


def test_a_watch_that_has_to_start_over_lists_once() -> None:
    story, kinds = SETTLED["deployment with configs and an autoscaler"]
    cluster = cluster_after(story)

    async def told() -> Bill:
        async with at_work(cluster):
            await settle(cluster)
            cluster.expire_watches()
            await asyncio.sleep(20)
            return bill(cluster)

    lists = Counter({("list", RESOURCES[kind].path("n")): 1 for kind in kinds})
    assert run_virtual(told()) == renewals(kinds, 1) + lists


def test_secrets_that_may_not_be_read_are_asked_for_every_five_minutes() -> None:
    story, kinds = SETTLED["deployment with configs and an autoscaler"]
    cluster = cluster_after(story)
    cluster.forbid("list", "secrets")

    async def told() -> Bill:
        async with at_work(cluster):
            await asyncio.sleep(600)
            return await rest(cluster)

    secrets = RESOURCES["secrets"].path("n")
    others = tuple(kind for kind in kinds if kind != "secrets")
    assert SHARED_RETRY == 300
    assert run_virtual(told()) == renewals(others) + Counter({("list", secrets): 2})


# -- the count itself --------------------------------------------------------------------------------------------------------


async def _get_now_and_then(cluster: FakeCluster) -> None:
    client = cluster.client()
    while True:
        await asyncio.sleep(299)
        await client.get(RESOURCES["deployments"], "web", "n")


async def _list_now_and_then(cluster: FakeCluster) -> None:
    client = cluster.client()
    while True:
        await asyncio.sleep(299)
        await client.list(RESOURCES["services"], "n")


async def _write_once(cluster: FakeCluster) -> None:
    await asyncio.sleep(300)
    patch = {"metadata": {"annotations": {"seen": "yes"}}}
    await cluster.client().patch(RESOURCES["canaries"], "web", "n", patch, field_manager="x")


@pytest.mark.parametrize("habit", [_get_now_and_then, _list_now_and_then, _write_once])
def test_a_poll_would_be_seen(habit: Callable[[FakeCluster], Any]) -> None:
    story, kinds = SETTLED["route"]
    cluster = cluster_after(story)

    async def told() -> Bill:
        async with at_work(cluster):
            poll = asyncio.create_task(habit(cluster))
            try:
                return await rest(cluster)
            finally:
                poll.cancel()

    assert run_virtual(told()) != renewals(kinds)


# -- one promotion -------------------------------------------------------------------------------------------------------------


def test_a_promotion_reads_nothing_and_writes_each_thing_once() -> None:
    async def told() -> Bill:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            await asyncio.sleep(2)
            stage.cluster.requests.clear()
            stage.change("app:2")
            await stage.reaches("Succeeded")
            await asyncio.sleep(30)
        asked = (one for one in stage.cluster.requests if one.verb != "watch")
        return Counter((one.verb, one.path.split("/n/", 1)[1]) for one in asked)

    # Begin, ready, an iteration, promotion, and its end: a status each, and what people are told of it.
    assert run_virtual(told()) == {
        ("create", "events"): 6,
        ("patch", "canaries/web/status"): 6,
        ("patch", "deployments/web"): 2,
        ("update", "deployments/web-primary"): 1,
    }
