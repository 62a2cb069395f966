"""The bundled controller as a Deployment: started, ended and followed through the API alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.errors import Forbidden, NotFound
from harness.kube.resource import DEPLOYMENT
from harness.kube.testing import FakeCluster, run_virtual
from harness.subjects.base import SUBJECT_LABEL, Access, SubjectError
from harness.subjects.bundled_objects import CONTROLLER, deployment
from harness.subjects.in_cluster import READY_WITHIN, InCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from harness.kube.transport import Request

NS = "drill-x"
IMAGE = "registry.example/controller:1"
READY = {"event": "ready"}


class Kubelet(FakeCluster):
    """A cluster that runs one pod for the Deployment while it wants one, and serves that pod's log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = [READY]
        self.state: dict[str, Any] = {"running": {}}
        self.number = 0
        self.ended = asyncio.Event()
        self.cut_after: int | None = None
        """Lines behind which the log's connection breaks, once."""
        self.since: list[str] = []
        self.log_is_secret = False

    async def work(self) -> None:
        """Follow what the Deployment wants, as controllers and kubelet would."""
        while True:
            await asyncio.sleep(0.1)
            wanted = (self.get("Deployment", CONTROLLER, NS) or {"spec": {}})["spec"].get(
                "replicas", 0
            )
            there = self.objects("Pod", NS)
            for pod in there:
                if not wanted or pod["metadata"].get("deletionTimestamp"):
                    self.stop_pod(pod["metadata"]["name"], 0)
                    self.remove("Pod", pod["metadata"]["name"], NS)
            if wanted and not there:
                self.number += 1
                self.ended = asyncio.Event()
                self.add_pod(f"{CONTROLLER}-{self.number}")

    def add_pod(self, name: str) -> None:
        status = {"state": self.state, "restartCount": 0}
        self.add(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": NS,
                    "labels": {"app.kubernetes.io/name": CONTROLLER},
                },
                "spec": {"containers": [{"name": "controller", "image": IMAGE}]},
                "status": {"phase": "Running", "containerStatuses": [status]},
            }
        )

    def stop_pod(self, name: str, code: int) -> None:
        row = {"state": {"terminated": {"exitCode": code}}, "restartCount": 0}
        self.update("Pod", name, NS, {"status": {"containerStatuses": [row]}})
        self.ended.set()

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Any]:
        path = request.path.partition("?")[0]
        if not path.endswith("/log"):
            async with super().open(request) as answer:
                yield answer
            return
        self._record(request)
        self.since.append("sinceTime" if "sinceTime" in request.path else "all")
        if self.log_is_secret:
            raise Forbidden(403, "Forbidden", "pods/log is forbidden")
        name = path.split("/")[-2]
        if self.get("Pod", name, NS) is None:
            raise NotFound(404, "NotFound", "no such pod")
        yield Log(self)


class Log:
    """The answer to a request for a log."""

    status = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - read only

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet

    async def read(self) -> bytes:
        return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        kubelet = self._kubelet
        for number, line in enumerate(kubelet.lines):
            if kubelet.cut_after == number:
                kubelet.cut_after = None
                return
            yield f"2026-12-01T05:00:{number:02}.000000000Z {json.dumps(line)}\n".encode()
        await kubelet.ended.wait()


Told = list[tuple[str, str]]


def drilled(
    tmp_path: Path,
    act: Callable[[InCluster, Callable[[], Awaitable[None]], Kubelet], Awaitable[None]],
    kubelet: Kubelet | None = None,
    **flags: str | bool,
) -> tuple[Kubelet, Told]:
    """Run `act(subject, start, kubelet)` beside a kubelet; return that and what the subject told."""
    told: Told = []

    async def run() -> Kubelet:
        cluster = kubelet or Kubelet()
        cluster.ended = asyncio.Event()
        subject = InCluster(IMAGE)
        await subject.obtain(print)
        client = cluster.client()
        await subject.look(client)
        for obj in subject.namespace_objects(NS):
            if obj["kind"] == "Deployment":
                await client.create(DEPLOYMENT, obj, NS, field_manager="test")
        working = asyncio.create_task(cluster.work())
        access = Access(tmp_path / "none", NS, tmp_path / "log", flags=flags)

        async def start() -> None:
            await subject.start(access, lambda event, detail: told.append((event, detail)))

        try:
            await act(subject, start, cluster)
        finally:
            working.cancel()
        return cluster

    return run_virtual(run()), told


def arguments(cluster: Kubelet) -> list[str]:
    found = cluster.get("Deployment", CONTROLLER, NS)
    assert found is not None
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    return list(container["args"])


def test_the_deployment_is_made_without_a_pod_and_can_be_told_from_the_drills_own() -> None:
    obj = deployment(NS, IMAGE)
    assert obj["spec"]["replicas"] == 0
    assert obj["spec"]["strategy"] == {"type": "Recreate"}
    assert SUBJECT_LABEL in obj["metadata"]["labels"]
    assert SUBJECT_LABEL in obj["spec"]["template"]["metadata"]["labels"]
    (container,) = obj["spec"]["template"]["spec"]["containers"]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert "--no-leader-elect" in container["args"]
    assert not any("{{" in text for text in json.dumps(obj).split())


def test_started_told_followed_and_ended(tmp_path: Path) -> None:
    kubelet = Kubelet()
    looked = {"event": "looked", "canary": "web", "row": "steady"}
    kubelet.lines = [{"event": "forbidden", "verb": "GET", "path": "/x"}, READY, looked]

    async def act(
        subject: InCluster, start: Callable[[], Awaitable[None]], cluster: Kubelet
    ) -> None:
        await start()
        assert len(cluster.objects("Pod", NS)) == 1
        await asyncio.sleep(1)
        await subject.stop()
        assert cluster.objects("Pod", NS) == []
        await subject.stop()

    cluster, told = drilled(tmp_path, act, kubelet, max_concurrent_analyses="3")
    assert told == [
        ("started", "bundled@in-cluster 0.1.0"),
        ("forbidden", "GET /x"),
        ("looked", "web steady"),
        ("stopped", "exit status 0"),
    ]
    assert [
        json.loads(line) for line in (tmp_path / "log").read_text().splitlines()
    ] == kubelet.lines
    assert arguments(cluster)[0] == "--max-concurrent-analyses=3"
    assert "--no-leader-elect" in arguments(cluster)


def test_a_log_that_breaks_off_goes_on_where_it_was(tmp_path: Path) -> None:
    kubelet = Kubelet()
    kubelet.lines = [{"event": str(number)} for number in range(4)] + [READY]
    kubelet.cut_after = 2

    async def act(subject: InCluster, start: Callable[[], Awaitable[None]], _: Kubelet) -> None:
        await start()
        await subject.stop()

    drilled(tmp_path, act, kubelet)
    rows = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert rows == ["0", "1", "2", "3", "ready"]
    assert kubelet.since[:2] == ["all", "sinceTime"]


def test_killed_it_is_deleted_at_once_and_not_made_again_until_it_is_started(
    tmp_path: Path,
) -> None:
    async def act(
        subject: InCluster, start: Callable[[], Awaitable[None]], cluster: Kubelet
    ) -> None:
        await start()
        await subject.kill()
        (deleted,) = cluster.asked("delete", "pods")
        assert deleted.body["gracePeriodSeconds"] == 1
        await asyncio.sleep(2)
        assert cluster.objects("Pod", NS) == []
        await start()
        assert [pod["metadata"]["name"] for pod in cluster.objects("Pod", NS)] == [
            f"{CONTROLLER}-2"
        ]
        await subject.stop()

    _, told = drilled(tmp_path, act)
    assert [event for event, _ in told] == ["started", "killed", "started", "stopped"]


def test_an_end_that_nobody_of_us_made_is_told_once(tmp_path: Path) -> None:
    async def act(
        subject: InCluster, start: Callable[[], Awaitable[None]], cluster: Kubelet
    ) -> None:
        await start()
        cluster.stop_pod(f"{CONTROLLER}-1", 3)
        await asyncio.sleep(1)
        cluster.update("Pod", f"{CONTROLLER}-1", NS, {"metadata": {"labels": {"x": "y"}}})
        await asyncio.sleep(1)
        await subject.stop()

    _, told = drilled(tmp_path, act)
    assert [(event, detail) for event, detail in told if event == "exited"] == [
        ("exited", "exit status 3")
    ]


def test_an_image_that_cannot_be_pulled_is_told_at_once_and_nothing_is_left_running(
    tmp_path: Path,
) -> None:
    kubelet = Kubelet()
    kubelet.state = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}

    async def act(_: InCluster, start: Callable[[], Awaitable[None]], cluster: Kubelet) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(
            SubjectError,
            match=rf"the bundled controller does not start: pod {CONTROLLER}-1: ImagePullBackOff of image '{IMAGE}': Back-off",
        ):
            await start()
        assert loop.time() - began < READY_WITHIN / 2
        assert cluster.objects("Pod", NS) == []

    drilled(tmp_path, act, kubelet)


def test_one_that_says_nothing_is_given_up_with_how_it_stands(tmp_path: Path) -> None:
    kubelet = Kubelet()
    kubelet.lines = [{"event": "starting"}]

    async def act(_: InCluster, start: Callable[[], Awaitable[None]], _cluster: Kubelet) -> None:
        with pytest.raises(
            SubjectError,
            match=r"was not ready within 120 s: pod .* runs, not ready yet; its log ends with: .*starting",
        ):
            await start()

    drilled(tmp_path, act, kubelet)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            'pods "x" is forbidden: exceeded quota',
            r'does not start: no pod could be made: pods "x"',
        ),
        (
            "webhook timed out",
            "was not ready within 120 s: no pod could be made: webhook timed out",
        ),
    ],
)
def test_a_pod_that_is_refused_is_told(tmp_path: Path, message: str, told: str) -> None:
    kubelet = Kubelet()
    kubelet.add_pod = lambda _: kubelet.update(  # type: ignore[method-assign, assignment]
        "Deployment",
        CONTROLLER,
        NS,
        {
            "status": {
                "conditions": [{"type": "ReplicaFailure", "status": "True", "message": message}]
            }
        },
    )

    async def act(_: InCluster, start: Callable[[], Awaitable[None]], _cluster: Kubelet) -> None:
        with pytest.raises(SubjectError, match=told):
            await start()

    drilled(tmp_path, act, kubelet)


def test_without_the_right_to_read_logs_it_is_given_up_with_that_reason(tmp_path: Path) -> None:
    kubelet = Kubelet()
    kubelet.log_is_secret = True

    async def act(_: InCluster, start: Callable[[], Awaitable[None]], _cluster: Kubelet) -> None:
        with pytest.raises(SubjectError, match="its log cannot be read: 403 Forbidden: pods/log"):
            await start()

    drilled(tmp_path, act, kubelet)


def test_where_its_namespace_is_gone_stopping_is_no_error(tmp_path: Path) -> None:
    async def act(
        subject: InCluster, start: Callable[[], Awaitable[None]], cluster: Kubelet
    ) -> None:
        await start()
        cluster.remove("Deployment", CONTROLLER, NS)
        await subject.stop()

    _, told = drilled(tmp_path, act)
    assert told[-1][0] == "stopped"


def test_one_that_never_started_is_stopped_and_killed_without_a_request() -> None:
    subject = InCluster(IMAGE)

    async def act() -> None:
        await subject.stop()
        await subject.kill()

    run_virtual(act())
