"""The recorder, against a fake API server on virtual time, and the timeline it writes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import TYPE_CHECKING

import pytest

from harness.kube.testing import FakeCluster, run_virtual
from harness.model.timeline import (
    ClusterFacts,
    HarnessError,
    Header,
    ObjectSeen,
    Observation,
    StepState,
    SubjectFacts,
    WatchState,
    parse,
)
from harness.run.belonging import Belonging
from harness.run.identity import labels
from harness.run.recorder import WHERE_SERVED, Recorder, WatchDied, served
from harness.run.redact import Redactor
from harness.run.timeline_file import TimelineFile
from harness.subjects.base import SUBJECT_LABEL
from harness.subjects.bundled_objects import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from harness.kube.resource import Resource
    from harness.model.timeline import JSON

HEADER = Header(
    run_id="r",
    drill_id="d",
    namespace="ns",
    started_at="2024-01-01T00:00:00Z",
    harness="1",
    scenario={"name": "s"},
    subject=SubjectFacts("bundled", "1"),
    cluster=ClusterFacts("embedded", "c", "v1.35.4", ("n1",)),
    reproduce="drill run s",
)


def row(kind: str, name: str, namespace: str | None = "ns", **body: object) -> JSON:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"kind": kind, "metadata": metadata, **body}


class Recording:
    def __init__(
        self,
        cluster: FakeCluster,
        others: Sequence[Resource] = (),
        belonging: Belonging | None = None,
    ) -> None:
        self.cluster = cluster
        self.seen: list[Observation] = []
        loop = asyncio.get_running_loop()
        self.redactor = Redactor("salt")
        self.recorder = Recorder(
            cluster.client(),
            HEADER,
            self.seen.append,
            self.redactor,
            loop.time,
            others=others,
            belonging=belonging,
        )

    def objects(self, kind: str) -> list[str]:
        return [
            f"{o.change} {o.object['metadata']['name']}"
            for o in self.seen
            if isinstance(o, ObjectSeen) and o.object["kind"] == kind
        ]


@contextlib.asynccontextmanager
async def recording(
    cluster: FakeCluster,
    watches: int = 12,
    others: Sequence[Resource] = (),
    belonging: Belonging | None = None,
) -> AsyncIterator[Recording]:
    recorded = Recording(cluster, others, belonging)
    task = asyncio.create_task(recorded.recorder.run())
    try:
        await recorded.recorder.synced()
        async with asyncio.timeout(600):
            while cluster.server.watching < watches:  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
        yield recorded
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert cluster.server.watching == 0


def test_everything_in_the_namespace_is_recorded_in_order_with_apiversion_and_time() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.add(row("Deployment", "web", spec={}))
        cluster.add(row("Pod", "foreign", "elsewhere"))
        async with recording(cluster) as recorded:
            await asyncio.sleep(5)
            for kind in ("ReplicaSet", "DaemonSet", "Service", "Event", "ResourceQuota", "Canary"):
                cluster.add(row(kind, "x"))
            cluster.add(row("Pod", "p", spec={}))
            cluster.update("Pod", "p", "ns", {"status": {"phase": "Running"}})
            cluster.remove("Pod", "p", "ns")
            await asyncio.sleep(1)
        synced = [o.kind for o in recorded.seen if isinstance(o, WatchState)]
        assert len(synced) == 12
        assert recorded.objects("Pod") == ["ADDED p", "MODIFIED p", "DELETED p"]
        assert recorded.objects("Deployment") == ["ADDED web"]
        for kind in ("ReplicaSet", "DaemonSet", "Service", "Event", "ResourceQuota", "Canary"):
            assert recorded.objects(kind) == ["ADDED x"]
        times = [o.t for o in recorded.seen]
        assert times == sorted(times)
        assert all(o.object["apiVersion"] for o in recorded.seen if isinstance(o, ObjectSeen))

    run_virtual(scenario())


def test_gap_is_recorded_with_its_bounds_and_what_vanished_in_it_as_deleted() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.add(row("Pod", "stays"))
        cluster.add(row("Pod", "goes"))
        async with recording(cluster) as recorded:
            await asyncio.sleep(20)
            cluster.silence_watches()
            cluster.remove("Pod", "goes", "ns")
            cluster.add(row("Pod", "comes"))
            cluster.update("Pod", "stays", "ns", {"status": {"phase": "Running"}})
            cluster.forget()
            await asyncio.sleep(100)
        gaps = [o for o in recorded.seen if isinstance(o, WatchState) and o.state == "gap"]
        assert {gap.kind for gap in gaps} >= {"Pod", "Node", "Canary"}
        gap = next(gap for gap in gaps if gap.kind == "Pod")
        assert gap.since == pytest.approx(0, abs=0.5)
        assert gap.t > 20
        assert "too old" in gap.reason
        after = recorded.objects("Pod")[2:]
        assert sorted(after) == ["ADDED comes", "DELETED goes", "MODIFIED stays"]

    run_virtual(scenario())


def test_broken_connections_leave_no_gap() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with recording(cluster) as recorded:
            cluster.break_watches()
            cluster.add(row("Pod", "p"))
            await asyncio.sleep(10)
        assert recorded.objects("Pod") == ["ADDED p"]
        assert not [o for o in recorded.seen if isinstance(o, WatchState) and o.state == "gap"]

    run_virtual(scenario())


def test_a_node_is_recorded_when_pods_can_no_longer_run_there_and_not_at_each_heartbeat() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        ready: JSON = {"type": "Ready", "status": "True"}
        cluster.add(row("Node", "n", None, spec={}, status={"conditions": [ready], "images": [1]}))
        async with recording(cluster) as recorded:
            for beat in range(3):
                beating = {**ready, "lastHeartbeatTime": str(beat)}
                cluster.update("Node", "n", None, {"status": {"conditions": [beating]}})
            await asyncio.sleep(1)
            assert recorded.objects("Node") == ["ADDED n"]
            for change in (
                {"status": {"conditions": [{**ready, "status": "False"}]}},
                {"spec": {"unschedulable": True}},
                {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
                {"metadata": {"labels": {"zone": "a"}}},
            ):
                cluster.update("Node", "n", None, change)
            await asyncio.sleep(1)
        assert recorded.objects("Node") == ["ADDED n"] + ["MODIFIED n"] * 4
        node = next(o for o in recorded.seen if isinstance(o, ObjectSeen))
        assert "images" not in node.object["status"]

    run_virtual(scenario())


def test_nodes_that_may_not_be_listed_are_done_without() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.forbid("list", "nodes")
        async with recording(cluster, 10) as recorded:
            cluster.add(row("Pod", "p"))
            await asyncio.sleep(1)
            assert await recorded.recorder.complete()
        assert not [o for o in recorded.seen if isinstance(o, HarnessError)]
        assert recorded.objects("Pod") == ["ADDED p"]

    run_virtual(scenario())


def test_a_dead_watch_is_an_error_in_the_recording_and_the_others_go_on() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.forbid("list", "pods")
        recorded = Recording(cluster)
        task = asyncio.create_task(recorded.recorder.run())
        with pytest.raises(WatchDied, match=r"the watch of pods died: .*403 Forbidden"):
            await recorded.recorder.synced()
        with pytest.raises(WatchDied):
            await recorded.recorder.died()
        await asyncio.sleep(1)
        cluster.add(row("Service", "s"))
        await asyncio.sleep(1)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert [o.message for o in recorded.seen if isinstance(o, HarnessError)]
        assert recorded.objects("Service") == ["ADDED s"]

    run_virtual(scenario())


def test_a_subject_that_runs_in_the_namespace_is_no_part_of_what_is_drilled() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with recording(cluster) as recorded:
            mine = {"name": f"{CONTROLLER}-1", "namespace": "ns", "labels": {SUBJECT_LABEL: "x"}}
            cluster.add({"kind": "Pod", "metadata": mine, "spec": {}})
            about = {"kind": "Pod", "name": f"{CONTROLLER}-1", "uid": "u"}
            cluster.add(row("Event", "pulled", involvedObject=about))
            cluster.add(row("Pod", "web-1", spec={}))
            cluster.update("Pod", f"{CONTROLLER}-1", "ns", {"status": {"phase": "Running"}})
            await asyncio.sleep(1)
            # It is followed all the same: whatever was not seen would look like a gap.
            assert await recorded.recorder.complete()
            cluster.remove("Pod", f"{CONTROLLER}-1", "ns")
            await asyncio.sleep(1)
            assert await recorded.recorder.complete()
        assert recorded.objects("Pod") == ["ADDED web-1"]
        assert recorded.objects("Event") == []

    run_virtual(scenario())


def test_a_watch_that_fell_silently_behind_is_a_gap_at_the_end() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with recording(cluster) as recorded:
            assert await recorded.recorder.complete()
            cluster.silence_watches()
            cluster.add(row("Pod", "unseen"))
            assert not await recorded.recorder.complete(within=5)
            gaps = [o for o in recorded.seen if isinstance(o, WatchState) and o.state == "gap"]
            assert [gap.kind for gap in gaps] == ["Pod"]
            assert "behind the server" in gaps[0].reason

    run_virtual(scenario())


def test_planted_secrets_are_nowhere_in_the_lines_that_are_written(tmp_path: Path) -> None:
    secret, token, hook = (
        "pl4nted-S3cret-1",
        "tok_9f8a77c2d1e0",
        "https://h.example/T0/zz99secret88",
    )
    encoded = base64.b64encode(secret.encode()).decode()
    path = tmp_path / "deep" / "timeline.jsonl"

    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.add(row("Secret", "s", data={"k": encoded}))
        container = {
            "name": "c",
            "env": [{"name": "T", "value": token}],
            "args": [f"--token={token}"],
        }
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": f'{{"x": "{token}"}}'}
        pod = row("Pod", "p", spec={"containers": [container]})
        pod["metadata"]["annotations"] = annotations
        cluster.add(pod)
        cluster.add(
            row("Canary", "c", spec={"analysis": {"webhooks": [{"name": "w", "url": hook}]}})
        )
        loop = asyncio.get_running_loop()
        redactor = Redactor("salt")
        with TimelineFile(path, HEADER, redactor) as timeline:
            recorder = Recorder(cluster.client(), HEADER, timeline.append, redactor, loop.time)
            task = asyncio.create_task(recorder.run())
            await recorder.synced()
            cluster.add(row("Event", "e", message=f"failed: {token} {secret} {encoded} {hook}"))
            await recorder.complete()
            timeline.append(StepState(1.0, "s", "failed", f"could not post to {hook}"))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    run_virtual(scenario())
    text = path.read_text(encoding="utf-8")
    for value in (secret, encoded, token, hook, "zz99secret88"):
        assert value not in text
    timeline = parse(text.splitlines())
    assert len(timeline.of(ObjectSeen)) == 4
    assert timeline.of(StepState)[0].detail == "could not post to [redacted]"


def test_every_line_is_on_disk_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TimelineFile(path, HEADER, Redactor("salt")) as timeline:
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1
        timeline.append(HarnessError(1.0, "x"))
        assert parse(path.read_text(encoding="utf-8").splitlines()).of(HarnessError)
    with pytest.raises(FileExistsError):
        TimelineFile(path, HEADER, Redactor("salt"))


def test_types_of_other_projects_are_watched_where_they_are_served_each_in_one_version() -> None:
    route, istio, older, *_, knative, _, _, _ = WHERE_SERVED

    async def scenario() -> None:
        cluster = FakeCluster(route, istio, older, knative)
        found = await served(cluster.client())
        assert found == [route, istio, knative]
        async with recording(cluster, 15, found) as recorded:
            cluster.add(row("HTTPRoute", "web"))
            cluster.add(row("HorizontalPodAutoscaler", "web"))
            await asyncio.sleep(1)
        assert recorded.objects("HTTPRoute") == ["ADDED web"]
        assert recorded.objects("HorizontalPodAutoscaler") == ["ADDED web"]
        synced = {o.kind for o in recorded.seen if isinstance(o, WatchState)}
        # Of the two kinds that are called Service each has a name of its own.
        assert {"Service", "KnativeService", "HTTPRoute", "VirtualService"} <= synced

    run_virtual(scenario())


def test_without_them_one_request_is_enough_to_know() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        assert await served(cluster.client()) == []
        assert len(cluster.requests) == 1

    run_virtual(scenario())


def test_in_a_namespace_of_others_only_the_drills_own_is_recorded_and_some_types_may_be_refused() -> (
    None
):
    async def scenario() -> None:
        cluster = FakeCluster()
        for plural in ("secrets", "events"):
            cluster.forbid("list", plural)
        theirs = row("Deployment", "theirs")
        cluster.add(theirs)
        ours = row("Deployment", "web")
        ours["metadata"]["labels"] = labels("r", "d")
        uid = cluster.add(ours)["metadata"]["uid"]
        async with recording(cluster, watches=10, belonging=Belonging("r", "d")) as recorded:
            own = row("ReplicaSet", "web-1")
            own["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web", "uid": uid}]
            cluster.add(own)
            cluster.update("Deployment", "theirs", "ns", {"status": {"replicas": 1}})
            # What is theirs is followed, so that nothing of it seems to be missing.
            assert await recorded.recorder.complete()
        assert recorded.objects("Deployment") == ["ADDED web"]
        assert recorded.objects("ReplicaSet") == ["ADDED web-1"]
        assert not [one for one in recorded.seen if isinstance(one, HarnessError)]

    run_virtual(scenario())


def test_an_autoscaler_that_may_not_be_read_is_no_error() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.forbid("list", "horizontalpodautoscalers")
        async with recording(cluster, 11) as recorded:
            await asyncio.sleep(1)
            assert await recorded.recorder.complete()
        assert not [o for o in recorded.seen if isinstance(o, HarnessError)]
        synced = {o.kind for o in recorded.seen if isinstance(o, WatchState)}
        assert "HorizontalPodAutoscaler" not in synced

    run_virtual(scenario())
