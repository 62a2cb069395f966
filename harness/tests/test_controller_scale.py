"""Many Canaries: what one costs does not depend on how many there are, all get their turn, and an idle controller asks nothing."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from harness.controller.options import Options
from harness.controller.shell import log as logs
from harness.controller.shell.cache import CANARIES, DEPLOYMENTS, SERVICES, Cache
from harness.controller.shell.engine import Engine
from harness.controller.shell.slim import slim
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_handover import LEGACY
from harness.tests.controller_sim import START, canary, deployment, image, merge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from harness.kube.transport import Request, Response

AT_ONCE = Options("n").workers
JSON = dict[str, Any]
MANY = 120
LATENCY = 0.01
"""Seconds for one request."""


def named(obj: JSON, name: str, **status: Any) -> JSON:
    change = {"metadata": {"name": name, "generation": 1}, "status": status}
    result: JSON = merge(obj, change)
    return result


def settled(number: int) -> list[JSON]:
    """A target, its primary and a Canary, as another controller leaves them."""
    name = f"web{number}"
    ready = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    target = named(deployment(replicas=0), name, observedGeneration=1)
    primary = named(deployment(), f"{name}-primary", **ready)
    for obj, value in ((target, name), (primary, f"{name}-primary")):
        obj["spec"]["selector"]["matchLabels"]["app"] = value
        obj["spec"]["template"]["metadata"]["labels"]["app"] = value
    status = {"phase": "Initialized", "lastAppliedSpec": LEGACY, "lastPromotedSpec": LEGACY}
    rollout = named(canary(), name, **status)
    rollout["spec"]["targetRef"]["name"] = name
    rollout["metadata"]["uid"] = f"canary-{number}"
    owner = {"kind": "Canary", "name": name, "uid": f"canary-{number}", "controller": True}
    primary["metadata"]["ownerReferences"] = [owner]
    return [target, primary, rollout]


class Slow:
    """A transport that takes its time, and counts how many requests are under way."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.now = self.most = 0

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Response]:
        if "watch=true" in request.path:
            async with self.cluster.open(request) as response:
                yield response
            return
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(LATENCY)
            async with self.cluster.open(request) as response:
                yield response
        finally:
            self.now -= 1

    async def renew(self) -> bool:
        return False

    async def close(self) -> None:
        pass


class Crowd:
    """Many Canaries under one controller."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.slow = Slow(self.cluster)
        self.stream = io.StringIO()
        for number in range(MANY):
            for obj in settled(number):
                self.cluster.add(obj)

    @contextlib.asynccontextmanager
    async def controller(self) -> AsyncIterator[None]:
        client = self.cluster.client(Budget(total=1.0))
        client._transport = self.slow
        clock = asyncio.get_running_loop().time
        engine = Engine(client, Options("n"), logs.to(self.stream), lambda: START + clock())
        task = asyncio.create_task(engine.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def phases(self) -> Counter[str]:
        return Counter(obj["status"]["phase"] for obj in self.cluster.objects("Canary", "n"))

    def status_writes(self) -> Counter[str]:
        found = self.cluster.asked("patch", "canaries/")
        return Counter(asked.path.split("/")[-2] for asked in found)

    async def quiet(self) -> None:
        await asyncio.sleep(10)
        self.cluster.requests.clear()


def test_many_are_taken_over_with_one_write_each_and_then_nothing_is_asked() -> None:
    async def story() -> tuple[Crowd, Counter[str]]:
        crowd = Crowd()
        async with crowd.controller():
            await asyncio.sleep(10)
            written = crowd.status_writes()
            await crowd.quiet()
            await asyncio.sleep(300)
        return crowd, written

    crowd, written = run_virtual(story())
    assert written == {f"web{number}": 1 for number in range(MANY)}
    assert crowd.phases() == {"Initialized": MANY}
    assert {asked.verb for asked in crowd.cluster.requests} == {"watch"}
    looked = Counter(
        line["canary"]
        for line in map(json.loads, crowd.stream.getvalue().splitlines())
        if line["event"] == "looked"
    )
    assert len(looked) == MANY
    assert max(looked.values()) <= 3


def test_when_all_change_at_once_all_start_soon_and_in_turn() -> None:
    async def story() -> tuple[Crowd, list[float]]:
        crowd = Crowd()
        clock = asyncio.get_running_loop().time
        async with crowd.controller():
            await crowd.quiet()
            crowd.slow.most = 0
            for number in range(MANY):
                crowd.cluster.update("Deployment", f"web{number}", "n", image("app:2"))
            began, seen = clock(), dict[str, float]()
            while len(seen) < MANY and clock() - began < 60:
                await asyncio.sleep(LATENCY)
                for obj in crowd.cluster.objects("Canary", "n"):
                    if obj["status"]["phase"] == "Progressing":
                        seen.setdefault(obj["metadata"]["name"], clock() - began)
        return crowd, sorted(seen.values())

    crowd, latencies = run_virtual(story())
    assert len(latencies) == MANY, "nobody starves"
    assert crowd.slow.most <= AT_ONCE
    # Three requests each (scale, event, status), AT_ONCE at a time, and as much again for what follows a start.
    ideal = MANY / AT_ONCE * 3 * LATENCY
    assert latencies[MANY // 2] <= ideal
    assert latencies[-1] <= 2 * ideal + 5 * LATENCY


# -- what one event costs ----------------------------------------------------------------------------------------------------


class NoScan(dict[Any, Any]):
    """A dict that may be asked for a key and for nothing else."""

    def _scanned(self, *_: object) -> NoReturn:
        msg = "scanned: what this costs depends on how many there are"
        raise AssertionError(msg)

    __iter__ = keys = values = items = _scanned


def test_an_event_and_a_pass_look_up_and_never_scan() -> None:
    cache = Cache()
    for number in range(3):
        target, primary, rollout = settled(number)
        for plural, obj in ((DEPLOYMENTS, target), (DEPLOYMENTS, primary), (CANARIES, rollout)):
            obj["metadata"]["resourceVersion"] = "1"
            cache.put(plural, obj)
    cache._objects = {plural: NoScan(held) for plural, held in cache._objects.items()}
    cache._interest = NoScan(cache._interest)
    cache._keys = NoScan(cache._keys)
    target, _, rollout = settled(1)
    for plural, obj in ((DEPLOYMENTS, target), (CANARIES, rollout)):
        obj["metadata"]["resourceVersion"] = "2"
        assert cache.put(plural, obj) == {"web1"}
    rollout["metadata"]["resourceVersion"] = "3"
    rollout["spec"]["targetRef"]["name"] = "web2"
    cache.put(CANARIES, rollout)
    assert cache.world(rollout).target is not None
    assert cache.put(DEPLOYMENTS, merge(target, {"metadata": {"resourceVersion": "4"}})) == set()
    # The one with the same target has been waiting for this.
    assert cache.remove(CANARIES, rollout) == {"web1", "web2"}


# -- what is kept ------------------------------------------------------------------------------------------------------------


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


@pytest.mark.parametrize("plural", [CANARIES, DEPLOYMENTS, SERVICES])
def test_field_names_are_shared_and_nothing_that_is_decided_on_is_lost(plural: str) -> None:
    one, other = (slim(plural, json.loads(json.dumps(deployment(name)))) for name in ("a", "b"))
    for mine, theirs in zip(_strings(one), _strings(other), strict=True):
        assert mine is theirs
    assert one == deployment("a")


def test_what_is_long_and_unread_is_not_kept() -> None:
    fields: JSON = {"f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}}}}
    entries = [{"manager": "user", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}]
    status = {"replicas": 3, "conditions": [{"type": "Available", "message": "long"}]}
    obj = merge(deployment(), {"metadata": {"managedFields": entries}, "status": status})
    kept = slim(DEPLOYMENTS, obj)
    assert kept["status"] == {"replicas": 3}
    assert kept["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert obj["metadata"]["managedFields"] == entries, "the argument stays as it is"
    rollout = slim(CANARIES, {**canary(), "status": status})
    assert rollout["status"] == status
