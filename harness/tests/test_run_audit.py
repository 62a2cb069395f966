"""Counting a subject's requests: the fold over the log's events, the file as it grows, and what is told of it."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.testing import run_virtual
from harness.model.timeline import Requests, RolloutKind
from harness.run.audit import AuditTrail, Counts, Tail, names_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ME = "system:serviceaccount:drill-x:flagger"
NAMES = {"web": "web", "web-primary": "web", "web-canary": "web", "api": "api"}


def event(verb: str = "get", name: str = "web", **more: Any) -> dict[str, Any]:
    return {
        "verb": verb,
        "stage": "ResponseComplete",
        "user": {"username": ME},
        "objectRef": {"resource": "deployments", "namespace": "drill-x", "name": name},
        "responseStatus": {"code": 200},
        **more,
    }


def line(user: str = ME, **more: Any) -> bytes:
    return json.dumps(event(**more) | {"user": {"username": user}}).encode() + b"\n"


def counted(*events: dict[str, Any]) -> Counts:
    counts = Counts()
    for one in events:
        counts.add(one, NAMES)
    return counts


@pytest.mark.parametrize("verb", ["get", "list"])
def test_a_read_that_names_a_rollouts_object_counts_for_it(verb: str) -> None:
    assert counted(event(verb, "web-primary")).rollouts == {"web": (1, 0)}


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
def test_everything_else_is_a_write(verb: str) -> None:
    assert counted(event(verb, "api")).rollouts == {"api": (0, 1)}


def test_what_names_no_rollout_counts_in_the_total_only() -> None:
    counts = counted(event(name="flagger-leader"), event("list", ""), event(objectRef=None))
    assert (counts.total, counts.rollouts) == (3, {})


def test_a_watch_counts_when_it_begins_and_one_that_was_refused_too() -> None:
    began = event("watch", "", stage="ResponseStarted")
    ended = event("watch", "")
    refused = event("watch", "", responseStatus={"code": 403})
    assert counted(began, ended).watches == 1
    assert counted(refused).watches == 1
    assert counted(began, ended, refused).total == 0


def test_a_request_counts_once_though_its_reception_may_be_logged_as_well() -> None:
    assert counted(event(stage="RequestReceived"), event()).total == 1


def rollout(name: str, target: str) -> dict[str, Any]:
    return {"kind": "Canary", "metadata": {"name": name}, "spec": {"targetRef": {"name": target}}}


def test_the_names_of_a_rollout_are_its_own_its_targets_and_what_is_made_of_that() -> None:
    names = names_of([rollout("shop", "web")], RolloutKind())
    assert names == dict.fromkeys(("shop", "web", "web-primary", "web-canary"), "shop")


def test_a_rollout_that_is_called_like_a_part_of_another_keeps_its_name() -> None:
    rollouts = [rollout("web-primary", "web-primary"), rollout("web", "web")]
    assert names_of(rollouts, RolloutKind())["web-primary"] == "web-primary"


# ---- the file


def test_the_file_may_come_later_and_lines_come_whole(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    tail = Tail(path)
    assert list(tail.lines()) == []
    path.write_bytes(b"one\ntw")
    assert list(tail.lines()) == [b"one"]
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert list(tail.lines()) == [b"two", b"three"]
    tail.close()


def test_what_was_appended_before_the_file_was_put_aside_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"one\n")
    tail = Tail(path)
    assert list(tail.lines()) == [b"one"]
    with path.open("ab") as file:
        file.write(b"two\n")
    path.rename(tmp_path / "audit-2.log")
    assert list(tail.lines()) == [b"two"]
    path.write_bytes(b"three\n")
    assert list(tail.lines()) == [b"three"]
    tail.close()


def test_skipping_passes_over_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    tail = Tail(path)
    tail.skip()
    path.write_bytes(b"one\n")
    tail.skip()
    with path.open("ab") as file:
        file.write(b"two\n")
    assert list(tail.lines()) == [b"two"]
    path.unlink()
    path.write_bytes(b"three\n")
    tail.skip()
    assert list(tail.lines()) == []
    tail.close()


# ---- what is told


class Log:
    """An audit log that grows, and what is told of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: list[Requests] = []
        loop = asyncio.get_running_loop()
        self.trail = AuditTrail(path, NAMES, self.told.append, loop.time)

    def grows(self, *lines: bytes) -> None:
        with self.path.open("ab") as file:
            file.writelines(lines)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Any], None]:
    def start(story: Any) -> None:
        async def scenario() -> None:
            log = Log(tmp_path / "audit.log")
            task = asyncio.create_task(log.trail.run())
            try:
                await story(log)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                log.trail.close()

        run_virtual(scenario())

    return start


def test_only_the_subjects_own_requests_since_its_start_count(
    run: Callable[[Any], None],
) -> None:
    async def story(log: Log) -> None:
        log.grows(line())
        log.trail.begin("drill-x", "flagger")
        log.grows(line(), line(user="system:serviceaccount:drill-y:flagger"), line(user=f"{ME}-2"))
        await asyncio.sleep(1)
        assert [(seen.total, seen.rollouts) for seen in log.told] == [(0, {}), (1, {"web": (1, 0)})]
        assert log.told[-1].source == "audit log"

    run(story)


def test_it_is_told_when_something_changed_and_at_most_twice_a_second(
    run: Callable[[Any], None],
) -> None:
    async def story(log: Log) -> None:
        log.trail.begin("drill-x", "flagger")
        await asyncio.sleep(10)
        assert len(log.told) == 1
        for _ in range(40):
            log.grows(line())
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert log.told[-1].total == 40
        times = [seen.t for seen in log.told]
        assert 4 <= len(times) <= 6
        assert all(later - earlier >= 0.49 for earlier, later in itertools.pairwise(times))

    run(story)


def test_with_many_rollouts_it_is_told_less_often(tmp_path: Path) -> None:
    async def scenario() -> None:
        names = {f"app-{number}": f"app-{number}" for number in range(1000)}
        log = Log(tmp_path / "audit.log")
        log.trail = AuditTrail(log.path, names, log.told.append, asyncio.get_running_loop().time)
        task = asyncio.create_task(log.trail.run())
        log.trail.begin("drill-x", "flagger")
        log.grows(*(line(name=name) for name in names))
        await asyncio.sleep(1)
        assert len(log.told) == 2
        log.grows(line(name="app-0"))
        await asyncio.sleep(4)
        assert len(log.told) == 2
        await asyncio.sleep(2)
        assert log.told[-1].rollouts["app-0"] == (2, 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.trail.close()

    run_virtual(scenario())


def test_the_next_subject_begins_at_nothing_and_the_last_count_of_the_first_is_told(
    run: Callable[[Any], None],
) -> None:
    async def story(log: Log) -> None:
        log.trail.begin("drill-x", "flagger")
        log.grows(line(verb="create", name="api"))
        log.trail.begin("drill-x", "rollout-drill-controller")
        log.grows(line(), line(user="system:serviceaccount:drill-x:rollout-drill-controller"))
        log.trail.flush()
        assert [seen.total for seen in log.told] == [0, 1, 0, 1]

    run(story)
