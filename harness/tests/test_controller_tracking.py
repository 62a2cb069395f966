"""Tracking on an API server: one write, never over somebody else's, never in the way of a rollout (B5, D10, hand-over)."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.controller.core.names import MANAGER
from harness.controller.core.pruned import ANNOTATION
from harness.controller.shell.fence_field import RECHECK
from harness.controller.shell.schema import published
from harness.kube.resource import CANARY
from harness.kube.testing import run_virtual
from harness.tests.test_controller_shell import Stage

JSON = dict[str, Any]


async def settled(stage: Stage) -> None:
    """Let a release come to rest, and forget what was asked on the way."""
    await asyncio.sleep(5)
    stage.cluster.requests.clear()
    stage.stream.truncate(0)
    stage.stream.seek(0)


def status_writes(stage: Stage) -> list[JSON]:
    """The status patches since then."""
    return [asked.body["status"] for asked in stage.cluster.asked("patch", "canaries/web/status")]


def conditions(stage: Stage) -> dict[str, JSON]:
    return {entry["type"]: entry for entry in stage.status.get("conditions", [])}


async def prepared() -> Stage:
    """A Stage whose Canary is Initialized, and nobody runs."""
    stage = Stage()
    async with stage.controller():
        stage.apply()
        await stage.reaches("Initialized")
        await settled(stage)
    return stage


# -- a status of another controller ------------------------------------------------------------------------------------------


def test_a_hand_over_is_one_status_write_with_the_tracking_fields_alone() -> None:
    async def story() -> Stage:
        stage = await prepared()
        stage.hand_over()
        configs = {"configmap/web": "241889ca0604e333"}
        stage.cluster.update("Canary", "web", "n", {"status": {"trackedConfigs": configs}})
        async with stage.controller():
            await asyncio.sleep(300)
        return stage

    stage = run_virtual(story())
    (write,) = status_writes(stage)
    tracked = {"lastAppliedSpec", "lastPromotedSpec", "lastTrackedRevision", "trackedConfigs"}
    assert set(write) == tracked
    # The template refers to no ConfigMap any more.
    assert stage.status["trackedConfigs"] == {}
    assert stage.phase == "Initialized"
    assert stage.status["lastAppliedSpec"].startswith("v2:")


def test_replica_sets_are_read_only_when_they_can_tell_something() -> None:
    async def story(*, lost: bool) -> Stage:
        stage = await prepared()
        stage.hand_over(lost=lost)
        stage.cluster.requests.clear()
        async with stage.controller():
            await asyncio.sleep(30)
        return stage

    equal, lost = run_virtual(story(lost=False)), run_virtual(story(lost=True))
    assert [
        asked.params["labelSelector"] for asked in lost.cluster.asked("list", "replicasets")
    ] == ["app=web"]
    assert not equal.cluster.asked("list", "replicasets")
    for stage in (equal, lost):
        (write,) = status_writes(stage)
        assert set(write) == {"lastAppliedSpec", "lastPromotedSpec", "lastTrackedRevision"}
        assert stage.phase == "Initialized"
        assert stage.looks[:1] == ["migration-adopted"]


def test_replica_sets_that_may_not_be_read_are_done_without() -> None:
    async def story() -> Stage:
        stage = await prepared()
        stage.hand_over(lost=True)
        stage.cluster.forbid("list", "replicasets")
        async with stage.controller():
            await asyncio.sleep(30)
        return stage

    stage = run_virtual(story())
    assert stage.status["lastAppliedSpec"].startswith("v2:")
    assert [line["path"] for line in stage.events("forbidden")] == [
        "/apis/apps/v1/namespaces/n/replicasets"
    ]


def test_another_writer_is_not_overwritten() -> None:
    """It writes between our decision and our write: ours is refused, and the next pass decides on what it left."""

    async def story() -> Stage:
        stage = await prepared()
        stage.hand_over()
        once = [True]

        def other(asked: Any) -> bool:
            if once and asked.path.endswith("/status"):
                once.clear()
                theirs = {"lastAppliedSpec": "7777777777", "lastPromotedSpec": "7777777777"}
                stage.cluster.update("Canary", "web", "n", {"status": theirs})
            return False

        stage.cluster.fail_next(500, match=other)
        stage.cluster.requests.clear()
        async with stage.controller():
            await asyncio.sleep(30)
        return stage

    stage = run_virtual(story())
    assert len(stage.events("conflict")) == 1
    assert len(status_writes(stage)) == 2
    assert stage.status["lastAppliedSpec"].startswith("v2:")
    assert not [line for line in stage.events("pass") if line["row"] in ("start", "restart")]


def test_a_refused_tracking_write_holds_no_rollout_up() -> None:
    """Only writes that carry nothing but tracking are refused here; the run goes on, and tracking is tried again."""

    def only_tracking(asked: Any) -> bool:
        fields = (
            set((asked.body or {}).get("status") or {}) if isinstance(asked.body, dict) else set()
        )
        tracking = {"lastAppliedSpec", "lastPromotedSpec", "lastTrackedRevision"}
        return bool(fields) and fields <= tracking

    async def story() -> tuple[Stage, int]:
        stage = await prepared()
        stage.cluster.fail_next(403, "Forbidden", times=10_000, match=only_tracking)
        async with stage.controller():
            await settled(stage)
            stage.cluster.update("Deployment", "web", "n", {"spec": {"replicas": 5}})
            await asyncio.sleep(2)
            stage.change("app:2")
            await stage.reaches("Succeeded", 30)
            stage.cluster.update("Deployment", "web", "n", {"spec": {"replicas": 4}})
            await asyncio.sleep(600)
            tried = len(stage.events("tracking not written"))
            stage.cluster._failures.clear()
            await asyncio.sleep(60)
            return stage, tried

    stage, tried = run_virtual(story())
    assert 1 <= tried <= 40, "it backs off"
    generation = (stage.cluster.get("Deployment", "web", "n") or {})["metadata"]["generation"]
    assert stage.status["lastTrackedRevision"].split("/")[1] == str(generation)


def test_scaling_by_somebody_else_costs_one_write_for_each_time() -> None:
    async def story() -> Stage:
        stage = await prepared()
        async with stage.controller():
            await settled(stage)
            for count in (4, 2):
                stage.cluster.update("Deployment", "web", "n", {"spec": {"replicas": count}})
                await asyncio.sleep(10)
        return stage

    stage = run_virtual(story())
    assert [set(write) for write in status_writes(stage)] == [{"lastTrackedRevision"}] * 2


def test_a_whole_release_costs_no_tracking_write_of_its_own() -> None:
    """The fence comes with the answer to our own scaling (B6)."""

    async def story() -> Stage:
        stage = await prepared()
        async with stage.controller():
            stage.change("app:2")
            await stage.reaches("Succeeded")
            await asyncio.sleep(10)
        return stage

    stage = run_virtual(story())
    writes = status_writes(stage)
    assert all(
        "phase" in write or "iterations" in write or "conditions" in write for write in writes
    )
    assert [set(write) >= {"lastTrackedRevision"} for write in (writes[0], writes[-1])] == [
        True
    ] * 2


# -- what the log says -------------------------------------------------------------------------------------------------------


def test_every_state_is_looked_at_and_said_once() -> None:
    async def story() -> Stage:
        stage = Stage()
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.change("app:2")
            await stage.reaches("Succeeded")
            await asyncio.sleep(60)
            stage.cluster.update("Canary", "web", "n", {"spec": {"suspend": True}})
            await asyncio.sleep(60)
        return stage

    stage = run_virtual(story())
    looked = stage.events("looked")
    assert {line["canary"] for line in looked} == {"web"}
    order = list(dict.fromkeys(stage.looks))
    assert order[0] == "initializing"
    assert {"unchanged", "changed", "promoting"} <= set(order)
    assert stage.looks[-2:] == ["unchanged", "suspended"]


def test_restarts_over_a_settled_canary_look_and_write_nothing() -> None:
    async def story() -> Stage:
        stage = await prepared()
        for _ in range(20):
            async with stage.controller():
                await asyncio.sleep(1)
        return stage

    stage = run_virtual(story())
    asked = [asked for asked in stage.cluster.requests if asked.path != published(CANARY)]
    assert {asked.verb for asked in asked} == {"list", "watch"}
    assert stage.looks == ["unchanged"] * 20


# -- a CRD that prunes the fence (D10) ---------------------------------------------------------------------------------------


def test_a_crd_without_the_field_degrades_visibly_and_heals() -> None:
    async def story() -> tuple[Stage, JSON]:
        stage = Stage()
        cluster = stage.cluster
        cluster.prune("Canary", "status", "lastTrackedRevision")
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            await settled(stage)
            await asyncio.sleep(RECHECK * 3 + 1)
            degraded = {
                "requests": [(asked.verb, dict(asked.params)) for asked in cluster.requests],
                "status": dict(stage.status),
                "annotation": stage.annotation,
                "condition": conditions(stage)["Degraded"],
            }
            stage.change("app:2")
            await stage.reaches("Succeeded")
            await asyncio.sleep(3)
            assert stage.annotation.split(" ")[0] == stage.status["lastAppliedSpec"]
            cluster.unprune("Canary")
            await asyncio.sleep(RECHECK * 2)
            await settled(stage)
            await asyncio.sleep(300)
        return stage, degraded

    stage, degraded = run_virtual(story())
    assert "lastTrackedRevision" not in degraded["status"]
    applied, fence = degraded["annotation"].split(" ")
    assert applied == degraded["status"]["lastAppliedSpec"]
    assert fence.count("/") == 1
    assert degraded["condition"]["status"] == "True"
    assert "fixtures/crds/canaries.yaml" in degraded["condition"]["message"]
    # Nothing but a look for a better CRD now and then, and that writes nothing.
    asked = [params for verb, params in degraded["requests"] if verb != "watch"]
    assert asked == [{"dryRun": "All", "fieldManager": MANAGER}] * 3
    warnings = [e for e in stage.cluster.objects("Event", "n") if e["type"] == "Warning"]
    assert len([e for e in warnings if "lastTrackedRevision" in e["message"]]) == 1
    # Healed: the fence is where it belongs, condition and annotation are gone, and nobody asks any more.
    assert stage.annotation == ""
    assert "Degraded" not in conditions(stage)
    assert stage.status["lastTrackedRevision"] == "/".join(
        [fence.split("/")[0], _generation(stage)]
    )
    assert {asked.verb for asked in stage.cluster.requests} == {"watch"}


def _generation(stage: Stage) -> str:
    return str((stage.cluster.get("Deployment", "web", "n") or {})["metadata"]["generation"])


def test_degrading_and_healing_are_said_once_with_a_gauge() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.prune("Canary", "status", "lastTrackedRevision")
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            await asyncio.sleep(60)
            stage.cluster.unprune("Canary")
            await asyncio.sleep(60)
        return stage

    stage = run_virtual(story())
    (degraded,), (healed,) = stage.events("degraded"), stage.events("healed")
    assert (degraded["value"], healed["value"]) == (1, 0)
    assert degraded["gauge"] == healed["gauge"]
    assert not stage.events("not settling")


def test_while_degraded_drift_is_absorbed_and_a_change_is_found() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.prune("Canary", "status", "lastTrackedRevision")
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            await settled(stage)
        # As after an upgrade that hashes in another way: everything moved but the fence.
        drifted = {
            "lastAppliedSpec": "v2:0000000000000000",
            "lastPromotedSpec": "v2:0000000000000000",
        }
        fence = stage.annotation.split(" ")[1]
        note = {"annotations": {ANNOTATION: f"v2:0000000000000000 {fence}"}}
        stage.cluster.update("Canary", "web", "n", {"status": drifted, "metadata": note})
        async with stage.controller():
            await settled(stage)
            assert stage.phase == "Initialized"
            stage.change("app:2")
            await stage.reaches("Succeeded")
        return stage

    stage = run_virtual(story())
    assert stage.looks.count("changed") == 1


def test_a_start_over_degraded_canaries_writes_nothing() -> None:
    async def story() -> Stage:
        stage = Stage()
        stage.cluster.prune("Canary", "status", "lastTrackedRevision")
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            await settled(stage)
        stage.cluster.requests.clear()
        for _ in range(5):
            async with stage.controller():
                await asyncio.sleep(2)
        return stage

    stage = run_virtual(story())
    real = [a for a in stage.cluster.requests if a.verb == "patch" and "dryRun" not in a.params]
    assert real == []
    assert len([a for a in stage.cluster.requests if a.verb == "patch"]) == 5


def test_without_the_right_to_annotate_it_goes_on_by_hashes() -> None:
    """The roles of an older version: nothing crashes, a change is found, scaling starts nothing."""

    async def story() -> Stage:
        stage = Stage()
        stage.cluster.prune("Canary", "status", "lastTrackedRevision")
        stage.cluster.fail_next(
            403,
            "Forbidden",
            times=10_000,
            match=lambda a: a.verb == "patch" and a.path.endswith("/canaries/web"),
        )
        async with stage.controller():
            stage.apply()
            await stage.reaches("Initialized")
            stage.cluster.update("Deployment", "web", "n", {"spec": {"replicas": 4}})
            await asyncio.sleep(60)
            assert stage.phase == "Initialized"
            stage.change("app:2")
            await stage.reaches("Succeeded", 30)
        return stage

    stage = run_virtual(story())
    assert stage.annotation == ""
    assert stage.looks.count("no-fence-changed") == 1


def test_a_field_lost_while_running_is_noticed_with_the_next_fence() -> None:
    async def story() -> Stage:
        stage = await prepared()
        async with stage.controller():
            await settled(stage)
            stage.cluster.prune("Canary", "status", "lastTrackedRevision")
            stage.change("app:2")
            await stage.reaches("Succeeded", 30)
            await asyncio.sleep(3)
        return stage

    stage = run_virtual(story())
    assert stage.annotation
    assert len(stage.events("degraded")) == 1
