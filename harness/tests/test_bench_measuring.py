"""The instruments of a benchmark on real processes of the test: CPU and memory, profiles, waiting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harness.bench.following import Following
from harness.bench.machine import Machine
from harness.bench.meter import Meter
from harness.bench.model import HARNESS, OTHERS
from harness.bench.profiles import ProfiledBundled
from harness.kube.resource import CANARY
from harness.kube.testing import FakeCluster, run_virtual
from harness.model.timeline import RolloutKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUSY = "t = sum(range(4_000_000)); print(flush=True); input()"


@pytest.fixture
def busy() -> Iterator[type[Busy]]:
    yield Busy
    for process in Busy.started:
        process.kill()
        process.communicate()
    Busy.started.clear()


class Busy:
    """A child that uses some CPU time, says so, and then waits."""

    started: list[subprocess.Popen[str]] = []  # noqa: RUF012 - emptied by the fixture

    @classmethod
    def start(cls) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", BUSY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process


def test_only_what_was_started_in_between_is_measured(busy: type[Busy]) -> None:
    busy.start()
    meter = Meter()
    meter.expect()
    mine = busy.start()
    meter.adopt()
    busy.start()
    assert meter.processes == [mine.pid]
    assert meter.usage().rss_end > 1 << 20


def test_cpu_counts_from_the_begin_of_the_stage_across_a_restart(busy: type[Busy]) -> None:
    meter = Meter()
    meter.expect()
    first = busy.start()
    meter.adopt()
    meter.reset()
    assert meter.usage().cpu < 0.05
    meter.dismiss()
    first.kill()
    first.wait()
    assert meter.usage().rss_end == 0
    meter.expect()
    busy.start()
    meter.adopt()
    used = meter.usage()
    assert used.cpu > 0.02
    assert used.rss_most >= used.rss_end > 0
    meter.reset()
    assert meter.usage().cpu < 0.05


def test_a_process_that_has_ended_does_no_harm(busy: type[Busy]) -> None:
    meter = Meter()
    meter.expect()
    process = busy.start()
    meter.adopt()
    meter.reset()
    machine = Machine({"child": process.pid})
    process.kill()
    process.wait()
    assert meter.usage().rss_end == 0
    assert "child" not in machine.used(0.0)
    assert "nobody" not in Machine({"nobody": process.pid}).used(0.0)


def test_the_machine_knows_who_used_it(busy: type[Busy]) -> None:
    child = busy.start()
    machine = Machine({"child": child.pid})
    sum(range(4_000_000))
    used = machine.used(0.0)
    assert set(used) == {HARNESS, "child", OTHERS}
    assert used[HARNESS] > 0.02
    assert min(used.values()) >= 0
    machine.reset()
    assert machine.used(0.0)[HARNESS] < used[HARNESS]
    # What the subject used is nobody else's.
    assert machine.used(1e6)[OTHERS] == 0


PROFILED = """
import sys, time
import harness.controller.__main__ as program
program.main = lambda arguments: print(arguments, flush=True) or [input() for _ in range(2)] and 0
from harness.bench import profiled
profiled.main = program.main
sys.exit(profiled.Profiler(profiled.Path(sys.argv[1])).run(["--from-stdin"]))
"""


def test_a_profile_is_taken_in_pieces_from_a_running_process(tmp_path: Path) -> None:
    subject = ProfiledBundled()
    subject.folder = tmp_path
    assert subject._module() == ["harness.bench.profiled", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", PROFILED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "['--from-stdin']"
        first = asyncio.run(subject.take([process.pid], "idle"))
        second = asyncio.run(subject.take([process.pid], "promote all"))
        assert (first.stage, second.stage) == ("idle", "promote all")
        assert any("print" in row.function for row in first.own)
        assert not any("print" in row.function for row in second.own)
        assert list(tmp_path.iterdir()) == []
        process.communicate("\n\n", timeout=20)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


# ---- waiting


def canary(name: str, phase: str) -> dict[str, object]:
    meta = {"name": name, "namespace": "ns"}
    return {
        "apiVersion": CANARY.api_version,
        "kind": "Canary",
        "metadata": meta,
        "status": {"phase": phase},
    }


def test_a_wait_ends_with_the_event_that_fulfils_it() -> None:
    async def scenario() -> float:
        cluster = FakeCluster()
        cluster.add(canary("a", ""))
        following = Following(RolloutKind())
        async with following.watching(cluster.client(), "ns"):
            loop = asyncio.get_running_loop()
            loop.call_later(
                7.25, lambda: cluster.update("Canary", "a", "ns", {"status": {"phase": "X"}})
            )
            told: list[float] = []
            assert await following.until(
                lambda: following.board.inside("X") == 1, 60.0, lambda: told.append(loop.time())
            )
            assert len(told) == 1
            return loop.time()

    assert run_virtual(scenario()) == pytest.approx(7.25)


def test_a_wait_that_is_not_fulfilled_ends_in_time() -> None:
    async def scenario() -> float:
        following = Following(RolloutKind())
        assert not await following.until(lambda: False, 12.0, lambda: None)
        return asyncio.get_running_loop().time()

    assert run_virtual(scenario()) == pytest.approx(12.0)


def test_rest_ends_early_when_all_is_calm_and_in_time_when_it_never_is() -> None:
    async def scenario(every: float) -> float:
        cluster = FakeCluster()
        cluster.add(canary("a", ""))
        loop = asyncio.get_running_loop()

        def move(number: int) -> None:
            cluster.update("Canary", "a", "ns", {"status": {"iterations": number}})

        following = Following(RolloutKind())
        async with following.watching(cluster.client(), "ns"):
            for number in range(1, 4):
                loop.call_later(every * number, move, number)
            await following.rest(10.0, calm=2.0)
            return loop.time()

    assert run_virtual(scenario(1.0)) == pytest.approx(5.0, abs=0.1)
    assert run_virtual(scenario(1.9)) == pytest.approx(3 * 1.9 + 2.0, abs=0.1)
    assert run_virtual(scenario(5.0)) == pytest.approx(2.0, abs=0.1)


def test_a_gap_in_the_watch_is_noted() -> None:
    async def scenario() -> int:
        cluster = FakeCluster()
        cluster.add(canary("a", ""))
        following = Following(RolloutKind())
        async with following.watching(cluster.client(), "ns"):
            await following.until(lambda: bool(following.board.objects), 5.0, lambda: None)
            await asyncio.sleep(1.0)
            cluster.expire_watches()
            await asyncio.sleep(10.0)
            return len(following.board.gaps)

    assert run_virtual(scenario()) == 1


def test_what_ends_the_watch_ends_the_wait() -> None:
    async def scenario() -> None:
        following = Following(RolloutKind())
        asyncio.get_running_loop().call_later(1.0, following.fail, ValueError("first"))
        asyncio.get_running_loop().call_later(1.0, following.fail, ValueError("second"))
        with pytest.raises(ValueError, match="first"):
            await following.until(lambda: False, 60.0, lambda: None)

    run_virtual(scenario())
