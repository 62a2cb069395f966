"""The shell against an API server in memory: watches, order of writes, preconditions, refusals, restarts."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from typing import TYPE_CHECKING, Any

from harness.controller.core.names import MANAGER
from harness.controller.core.pruned import ANNOTATION
from harness.controller.options import Options
from harness.controller.shell import log as logs
from harness.controller.shell.cache import CANARIES, DEPLOYMENTS, Cache
from harness.controller.shell.engine import Engine
from harness.controller.shell.writer import Writer
from harness.kube.errors import Forbidden
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster, run_virtual
from harness.tests.controller_rolling import rolling
from harness.tests.controller_sim import START, canary, deployment, image, image_of, merge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.kube.resource import Resource

JSON = dict[str, Any]


class Stage:
    """A fake cluster, something that plays the Deployment controller, and the controller on top."""

    def __init__(self, *resources: Resource) -> None:
        self.cluster = FakeCluster(*resources)
        self.stream = io.StringIO()
        self._seen: dict[tuple[str, int], float] = {}

    @property
    def logged(self) -> list[JSON]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def events(self, name: str) -> list[JSON]:
        return [line for line in self.logged if line["event"] == name]

    @property
    def phase(self) -> str:
        found = self.cluster.get("Canary", "web", "n") or {}
        return str((found.get("status") or {}).get("phase") or "")

    @property
    def canary(self) -> JSON:
        return self.cluster.get("Canary", "web", "n") or {}

    @property
    def status(self) -> JSON:
        return self.canary.get("status") or {}

    @property
    def annotation(self) -> str:
        """The fence that is kept outside the status."""
        return str((self.canary["metadata"].get("annotations") or {}).get(ANNOTATION) or "")

    @property
    def looks(self) -> list[str]:
        return [line["row"] for line in self.events("looked")]

    def hand_over(self, *, lost: bool = False) -> None:
        """Let status and primary be another controller's; with `lost` the primary lacks a field of the target."""
        status = {"lastAppliedSpec": "6849403941", "lastPromotedSpec": "6849403941"}
        change = {"status": status | {"lastTrackedRevision": None}}
        self.cluster.update("Canary", "web", "n", change)
        template: JSON = {"metadata": {"annotations": {"flagger-id": "0b24c2de"}}}
        self.cluster.update("Deployment", "web-primary", "n", {"spec": {"template": template}})
        if lost:
            spec = {"spec": {"template": {"spec": {"hostname": "web"}}}}
            self.cluster.update("Deployment", "web", "n", spec)

    def image(self, name: str) -> str:
        return image_of(self.cluster.get("Deployment", name, "n") or {})

    @contextlib.asynccontextmanager
    async def controller(self, **options: Any) -> AsyncIterator[None]:
        """A controller process, ended the hard way."""
        loop = asyncio.get_running_loop()
        client = self.cluster.client(Budget(total=1.0))
        log = logs.to(self.stream)
        engine = Engine(client, Options("n", **options), log, lambda: START + loop.time())
        rolls = rolling(self.cluster, self._seen, pause=0.05)
        tasks = [asyncio.create_task(engine.run()), asyncio.create_task(rolls)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def apply(self, **spec: Any) -> None:
        for obj in (deployment(), canary(**spec)):
            self.cluster.add(merge(obj, {"metadata": {"generation": 1}}))

    def change(self, name: str) -> None:
        found = self.cluster.get("Deployment", "web", "n") or {}
        generation = {"metadata": {"generation": found["metadata"]["generation"] + 1}}
        self.cluster.update("Deployment", "web", "n", merge(image(name), generation))

    async def until(self, holds: Callable[[], bool], within: float = 60.0) -> None:
        try:
            async with asyncio.timeout(within):
                while not holds():  # noqa: ASYNC110 - a virtual clock does not wait
                    await asyncio.sleep(0.05)
        except TimeoutError:
            msg = f"still {self.phase!r} after {within} s: {self.logged[-5:]}"
            raise AssertionError(msg) from None

    async def reaches(self, phase: str, within: float = 60.0) -> None:
        await self.until(lambda: self.phase == phase, within)


def test_a_release_from_apply_to_succeeded() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            await stage.until(lambda: bool(stage.events("ready")), 1)
            stage.apply()
            await stage.reaches("Initialized", 3)
            stage.change("app:2")
            await stage.reaches("Succeeded", 10)
        return stage

    stage = run_virtual(story())
    assert stage.image("web-primary") == "app:2"
    writes = [asked for asked in stage.cluster.requests if asked.method != "GET"]
    assert {asked.params["fieldManager"] for asked in writes} == {MANAGER}
    for asked in writes:
        if asked.verb in ("patch", "update"):
            assert asked.body["metadata"]["resourceVersion"], asked.path
    events = stage.cluster.objects("Event", "n")
    assert {event["source"]["component"] for event in events} == {"rollout-drill"}
    assert {event["reason"] for event in events} == {"Synced"}
    assert all(event["involvedObject"]["uid"] for event in events)
    assert not stage.events("forbidden")


def test_an_idle_controller_only_watches() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            await asyncio.sleep(2)
            stage.cluster.requests.clear()
            await asyncio.sleep(300)
        return stage

    stage = run_virtual(story())
    assert {asked.verb for asked in stage.cluster.requests} == {"watch"}


def test_what_is_forbidden_is_logged_with_verb_and_path() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.forbid("create", "services")
        async with stage.controller():
            stage.apply()
            await asyncio.sleep(5)
        return stage

    stage = run_virtual(story())
    refusals = stage.events("forbidden")
    assert refusals[0]["verb"] == "create"
    assert refusals[0]["path"] == "/api/v1/namespaces/n/services"
    assert 2 <= len(refusals) <= 8, "it backs off"
    assert stage.phase == "Initializing"


def test_a_namespace_that_goes_away_is_no_missing_permission() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
            error = Forbidden(403, "Forbidden", "being terminated", {"causes": [cause]})
            writer = Writer(stage.cluster.client(), "n", Cache(), logs.to(stage.stream), lambda: 0)
            writer.log_refusal(error, "create", "/api/v1/namespaces/n/services")
        return stage

    stage = run_virtual(story())
    assert not stage.events("forbidden")
    assert stage.events("refused")


def test_events_that_are_forbidden_hold_nothing_up() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.forbid("create", "events")
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
        return stage

    assert run_virtual(story()).events("forbidden")


def test_conflicts_lost_answers_and_expired_watches_change_nothing() -> None:
    async def story() -> Stage:
        stage = Stage()
        cluster = stage.cluster
        async with stage.controller():
            stage.apply()
            cluster.fail_next(-1, match=lambda a: a.verb == "create")
            cluster.fail_next(409, match=lambda a: a.path.endswith("/status"))
            await stage.reaches("Initialized")
            cluster.expire_watches()
            stage.change("app:2")
            await stage.reaches("Progressing")
            cluster.break_watches()
            await stage.reaches("Succeeded")
        return stage

    stage = run_virtual(story())
    assert stage.image("web-primary") == "app:2"
    messages = [e["message"] for e in stage.cluster.objects("Event", "n")]
    assert len([m for m in messages if m.startswith("New revision")]) == 1


def test_a_controller_killed_again_and_again_still_arrives() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.apply()
        for _ in range(200):
            async with stage.controller():
                await asyncio.sleep(0.3)
            if stage.phase == "Initialized":
                break
        stage.change("app:2")
        for _ in range(200):
            async with stage.controller():
                await asyncio.sleep(0.3)
            if stage.phase == "Succeeded":
                return stage
        raise AssertionError(stage.phase)

    stage = run_virtual(story())
    assert stage.image("web-primary") == "app:2"
    replaced = stage.cluster.asked("update", "deployments")
    assert len(replaced) == 1, "the primary was rolled more than once"


def test_a_canary_made_again_is_served_again() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.cluster.remove("Canary", "web", "n")
            await asyncio.sleep(1)  # what it owned is collected
            assert stage.cluster.get("Deployment", "web-primary", "n") is None
            stage.cluster.add(canary())
            await stage.reaches("Initialized")
        return stage

    run_virtual(story())


def test_one_canary_that_cannot_be_read_does_not_stop_the_others() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            broken = merge(canary(), {"metadata": {"name": "broken"}})
            broken["spec"]["targetRef"]["name"] = "other"
            broken["spec"]["analysis"]["iterations"] = "many"
            stage.cluster.add(broken)
            stage.apply()
            await stage.reaches("Initialized")
        return stage

    failed = run_virtual(story()).events("pass failed")
    assert {line["canary"] for line in failed} == {"broken"}


# -- the cache ---------------------------------------------------------------------------------------------------------------


def versioned(obj: JSON, version: int, uid: str = "u") -> JSON:
    result: JSON = merge(obj, {"metadata": {"resourceVersion": str(version), "uid": uid}})
    return result


def test_the_cache_keeps_the_newer_state_and_knows_whom_it_concerns() -> None:
    cache = Cache()
    assert cache.put(CANARIES, versioned(canary(), 1)) == {"web"}
    assert cache.put(DEPLOYMENTS, versioned(deployment(), 5)) == {"web"}
    assert cache.put(DEPLOYMENTS, versioned(deployment(image="old"), 4)) == set()
    held = cache.get(DEPLOYMENTS, "web")
    assert held is not None
    assert image_of(held) == "app:1"
    assert cache.put(DEPLOYMENTS, versioned(deployment("other"), 6)) == set()
    assert cache.remove(DEPLOYMENTS, versioned(deployment(), 7, uid="another")) == set()
    assert cache.remove(DEPLOYMENTS, versioned(deployment(), 7)) == {"web"}
    assert cache.get(DEPLOYMENTS, "web") is None
