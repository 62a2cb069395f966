"""The storm against a server in memory and a subject that is a task of the test, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from harness.bench.audit import user_of
from harness.bench.parallel import AT_A_TIME, each
from harness.bench.plan import StormPlan
from harness.bench.scene import Scene
from harness.bench.storm import Storm
from harness.kube.errors import KubeError
from harness.kube.testing import FakeCluster, run_virtual
from harness.model.timeline import SubjectFacts
from harness.subjects.base import SubjectError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.bench.model import SubjectFigures
    from harness.kube.client import KubeClient
    from harness.model.timeline import JSON
    from harness.subjects.base import Access, SubjectEvent

NS = "storm"
ACCOUNT = "subject"


class Polling:
    """A subject that looks at everything once a second, and needs two seconds for an analysis."""

    service_account = ACCOUNT
    facts = SubjectFacts("polling", "1.2.3")

    def __init__(self, cluster: FakeCluster, audit_log: Path) -> None:
        self._cluster = cluster
        self._audit_log = audit_log
        self._task: asyncio.Task[None] | None = None
        self._notify: Callable[[SubjectEvent, str], None] = lambda *_: None
        self._known: dict[str, str] = {}
        self.starts = 0

    # ---- what the storm calls

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        assert access.namespace == NS
        self.starts += 1
        self._notify = notify
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def kill(self) -> None:
        await self.stop()

    async def obtain(self, progress: Callable[[str], None]) -> None: ...
    async def look(self, client: KubeClient) -> None: ...
    async def warm_up(self) -> None: ...

    def cluster_objects(self) -> list[JSON]:
        return []

    def namespace_objects(self, _namespace: str) -> list[JSON]:
        return []

    # ---- what it does

    def asks(self, verb: str, resource: str, name: str) -> None:
        now = datetime.now(UTC).isoformat()
        event = {
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user_of(NS, ACCOUNT)},
            "objectRef": {"resource": resource, "name": name},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": now,
            "stageTimestamp": now,
        }
        with self._audit_log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def phase(self, name: str, phase: str, iterations: int = 0) -> None:
        self.asks("patch", "canaries", name)
        status = {"status": {"phase": phase, "iterations": iterations}}
        self._cluster.update("Canary", name, NS, status)

    def steps(self, name: str, phase: str, revision: str) -> None:
        if phase == "":
            self._known[name] = revision
            self.phase(name, "Initialized")
        elif phase == "Progressing":
            self.phase(name, "Succeeded")
        elif self._known[name] != revision:
            self._known[name] = revision
            self.phase(name, "Progressing", 1)

    def looks(self, name: str) -> None:
        self.asks("get", "canaries", name)

    async def _run(self) -> None:
        while True:
            for canary in self._cluster.objects("Canary", NS):
                name = canary["metadata"]["name"]
                self.looks(name)
                target = self._cluster.get("Deployment", name, NS)
                assert target is not None
                phase = (canary.get("status") or {}).get("phase", "")
                template = target["spec"]["template"]["metadata"]
                self.steps(name, phase, json.dumps(template))
            await asyncio.sleep(1.0)


class Lazy(Polling):
    """Never gets to one of them."""

    left_out: ClassVar[str] = "app-0001"
    in_phase: ClassVar[str] = ""

    def steps(self, name: str, phase: str, revision: str) -> None:
        if (name, phase) != (self.left_out, self.in_phase):
            super().steps(name, phase, revision)


class LazyAtTheEnd(Lazy):
    in_phase = "Progressing"


class Endless(Lazy):
    """Never comes to an end with one of them, but never stands still either."""

    in_phase = "Progressing"

    def looks(self, name: str) -> None:
        super().looks(name)
        canary = self._cluster.get("Canary", name, NS)
        assert canary is not None
        status = canary.get("status") or {}
        if (name, status.get("phase")) == (self.left_out, self.in_phase):
            self.phase(name, "Progressing", status["iterations"] + 1)


class Eager(Polling):
    """Begins an analysis of everything when it is started again, three seconds later."""

    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        await super().start(access, notify)
        if self.starts > 1:
            asyncio.get_running_loop().call_later(3.0, self._begin)

    def _begin(self) -> None:
        for canary in self._cluster.objects("Canary", NS):
            self.phase(canary["metadata"]["name"], "Progressing", 1)


class Blind(Polling):
    """Looks at two only, once it was started again; a second start makes it see."""

    def looks(self, name: str) -> None:
        if self.starts != 2 or name < "app-0002":
            super().looks(name)

    async def stop(self) -> None:
        await super().stop()
        # The last it did before it went, which says nothing about what it does when it is back.
        for canary in self._cluster.objects("Canary", NS):
            self.asks("get", "canaries", canary["metadata"]["name"])


class SaysSo(Blind):
    """Looks without asking the API server, and says that it did."""

    def looks(self, name: str) -> None:
        self._notify("looked", f"{name} settled")


class Dying(Polling):
    """Ends by itself in the middle of the promotions."""

    def steps(self, name: str, phase: str, revision: str) -> None:
        super().steps(name, phase, revision)
        if phase == "Progressing":
            self._notify("exited", "exit status 2")


class Refused(Polling):
    def steps(self, name: str, phase: str, revision: str) -> None:
        super().steps(name, phase, revision)
        self._notify("forbidden", "list secrets")


class Stillborn(Polling):
    async def start(self, access: Access, notify: Callable[[SubjectEvent, str], None]) -> None:
        del access, notify
        msg = "it was not ready within 20 s"
        raise SubjectError(msg)


class Recording:
    """A storm of three rollouts, what it said and what it found."""

    def __init__(self, folder: Path, kind: type[Polling]) -> None:
        self.cluster = FakeCluster()
        self.subject = kind(self.cluster, folder / "audit.log")
        self.said: list[str] = []
        self.folder = folder

    def run(self, **plan: Any) -> SubjectFigures:
        async def alone() -> SubjectFigures:
            try:
                return await self.storm(**plan)
            finally:
                left = asyncio.all_tasks() - {asyncio.current_task()}
                assert left == set()

        return run_virtual(alone())

    async def storm(self, **plan: Any) -> SubjectFigures:
        wanted = StormPlan(3, ("polling",), self.folder, idle=5.0, **plan)
        scene = Scene(
            cluster=None,  # type: ignore[arg-type] # the storm itself needs only what is below
            client=self.cluster.client(),
            namespace=NS,
            kubeconfig=self.folder / "kubeconfig",
            token="t",
            private=self.folder,
            audit_log=self.folder / "audit.log",
            user=user_of(NS, ACCOUNT),
            parts={},
        )
        return await Storm(scene, self.subject, wanted, self.said.append).run()


def storm(folder: Path, kind: type[Polling], **plan: Any) -> SubjectFigures:
    return Recording(folder, kind).run(**plan)


def test_every_stage_has_its_time_its_requests_and_its_latencies(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)
    figures = recording.run(upgrade=True, restarts=2)
    assert (figures.name, figures.version, figures.problems) == ("polling", "1.2.3", ())
    names = [stage.name for stage in figures.stages]
    assert names == ["initialise all", "idle", "promote all", "upgrade", "restart loop"]
    assert [stage.ended for stage in figures.stages] == [3] * 5
    assert [stage.unasked for stage in figures.stages] == [0] * 5
    initialise, idle, promote, upgrade, loop = figures.stages
    assert initialise.requests.writes == 3
    assert initialise.changed is not None
    assert idle.seconds == pytest.approx(5.0)
    assert (idle.requests.writes, idle.changed, idle.detection) == (0, None, None)
    assert idle.requests.reads in range(15, 19)
    assert promote.detection is not None
    assert promote.detection.count == 3
    assert 0 < promote.detection.largest <= 1.0
    assert promote.finish is not None
    assert promote.finish.median == pytest.approx(promote.detection.median + 1.0)
    assert [(row.phase, row.spread.median) for row in promote.phases] == [("Progressing", 1.0)]
    assert promote.requests.writes == 6
    assert (upgrade.starts, upgrade.looked, upgrade.writes_by_start) == (1, 3, (0,))
    assert (loop.starts, loop.looked, loop.writes_by_start) == (2, 3, (0, 0))
    assert len(loop.looked_after) == 2
    assert recording.subject.starts == 4
    assert any(line.startswith("polling: promote all: took ") for line in recording.said)


def test_without_being_asked_nothing_is_restarted(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)
    assert [stage.name for stage in recording.run().stages][-1] == "promote all"
    assert recording.subject.starts == 1


@pytest.mark.parametrize(
    ("kind", "stages", "told"),
    [
        (Lazy, 1, "initialise all: 1 of 3 did not get to Initialized (nothing moved for 300 s"),
        (LazyAtTheEnd, 3, "promote all: 1 of 3 did not get to Succeeded (nothing moved for 300 s"),
        (Endless, 3, "promote all: 1 of 3 did not get to Succeeded (after 612 s; seen last: 1 Pro"),
    ],
)
def test_what_starves_is_named_and_ends_the_storm(
    tmp_path: Path, kind: type[Polling], stages: int, told: str
) -> None:
    figures = storm(tmp_path, kind, upgrade=True)
    (problem,) = figures.problems
    assert problem.startswith(told)
    assert problem.endswith("for example app-0001)")
    assert len(figures.stages) == stages
    assert figures.stages[-1].ended == 2


def test_analyses_that_begin_after_a_restart_are_counted_even_when_they_come_late(
    tmp_path: Path,
) -> None:
    figures = storm(tmp_path, Eager, upgrade=True)
    upgrade = figures.stages[-1]
    assert (upgrade.name, upgrade.unasked) == ("upgrade", 3)
    assert figures.problems == ("upgrade: 3 analyses began although nothing had changed",)


def test_a_restarted_subject_that_does_not_look_proves_nothing(tmp_path: Path) -> None:
    figures = storm(tmp_path, Blind, upgrade=True)
    assert figures.problems == ("upgrade: after a start only 2 of 3 were provably looked at",)
    assert figures.stages[-1].looked == 2


def test_looks_before_the_restart_do_not_count_and_those_it_tells_of_do(tmp_path: Path) -> None:
    figures = storm(tmp_path, SaysSo, upgrade=True)
    assert figures.problems == ()
    assert figures.stages[-1].looked == 3


def test_a_subject_that_ends_by_itself_ends_the_storm_with_what_was_measured(
    tmp_path: Path,
) -> None:
    figures = storm(tmp_path, Dying)
    assert figures.problems == ("the subject ended by itself (exit status 2)",)
    assert [stage.name for stage in figures.stages] == ["initialise all", "idle"]


def test_a_refusal_is_told_once(tmp_path: Path) -> None:
    assert storm(tmp_path, Refused).problems == ("the subject was refused: list secrets",)


def test_a_subject_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match="not ready within 20 s"):
        storm(tmp_path, Stillborn)


def test_a_watch_that_is_refused_ends_the_storm(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)
    recording.cluster.forbid("watch", "canaries")
    with pytest.raises(KubeError, match="canaries is forbidden"):
        recording.run()


def test_a_storm_begins_when_its_watch_has_begun(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)
    recording.cluster.fail_next(
        429, times=4, headers={"retry-after": "5"}, match=lambda asked: asked.verb == "list"
    )
    first, *_ = recording.run().stages
    verbs = [asked.verb for asked in recording.cluster.requests]
    assert verbs.index("create") > verbs.index("watch") > 4
    assert first.seconds < 5.0


def test_a_watch_that_does_not_begin_in_time_is_an_error(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)
    recording.cluster.fail_next(
        429, times=1, headers={"retry-after": "29"}, match=lambda asked: asked.verb == "list"
    )
    recording.cluster.fail_next(0, times=500, match=lambda asked: asked.verb == "list")
    with pytest.raises(KubeError):
        recording.run()


def test_a_change_that_is_refused_ends_the_storm_as_itself(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)
    recording.cluster.forbid("patch", "deployments")
    with pytest.raises(KubeError, match="deployments is forbidden"):
        recording.run()


def test_a_cancelled_storm_stops_its_subject(tmp_path: Path) -> None:
    recording = Recording(tmp_path, Polling)

    async def interrupted() -> None:
        task = asyncio.create_task(recording.storm())
        await asyncio.sleep(3.0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert recording.subject._task is not None
        assert recording.subject._task.done()

    run_virtual(interrupted())


def test_many_changes_go_out_side_by_side_and_no_more_than_so_many() -> None:
    under_way: list[int] = []
    now = 0

    async def act(_name: str) -> None:
        nonlocal now
        now += 1
        under_way.append(now)
        await asyncio.sleep(1.0)
        now -= 1

    async def run() -> float:
        await each([str(number) for number in range(2 * AT_A_TIME)], act)
        return asyncio.get_running_loop().time()

    assert run_virtual(run()) == pytest.approx(2.0)
    assert (len(under_way), max(under_way)) == (2 * AT_A_TIME, AT_A_TIME)
