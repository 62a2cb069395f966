"""Leader election on a virtual clock: never two leaders, and who takes over when."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.shell import log as logs
from harness.controller.shell.guarded import Guarded
from harness.controller.shell.lease import LEASE_NAME, Election, StuckError, Timing
from harness.kube.client import KubeClient
from harness.kube.errors import Unreachable
from harness.kube.resource import CONFIGMAP
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster, run_virtual

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from harness.kube.testing import Asked
    from harness.kube.transport import Request, Response

JSON = dict[str, Any]
TIMING = Timing()
WALL = 1_800_000_000.0


def now() -> float:
    return asyncio.get_running_loop().time()


class Net:
    """A candidate's own way to the cluster: can be cut, and can be slow."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.cut = False
        self.delay = 0.0

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Response]:
        if self.cut:
            msg = "no connection: cut"
            raise Unreachable(msg, sent=False)
        async with self._cluster.open(request) as response:
            await asyncio.sleep(self.delay)
            if self.cut:
                msg = "the connection broke: cut"
                raise Unreachable(msg)
            yield response

    async def renew(self) -> bool:
        return False

    async def close(self) -> None:
        """There is nothing to close."""


class World:
    """A cluster, candidates, and who works when."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.working: set[str] = set()
        self.turns: list[tuple[float, str]] = []
        self.most = 0
        self.stream = io.StringIO()

    def candidate(self, name: str, skew: float = 0.0) -> Candidate:
        return Candidate(self, name, skew)

    @property
    def lease(self) -> JSON:
        return self.cluster.get("Lease", LEASE_NAME, "n") or {}

    @property
    def holder(self) -> str:
        return str((self.lease.get("spec") or {}).get("holderIdentity") or "")

    def events(self, name: str) -> list[JSON]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == name]

    @contextlib.contextmanager
    def at_work(self, name: str) -> Iterator[None]:
        self.working.add(name)
        self.turns.append((now(), name))
        self.most = max(self.most, len(self.working))
        try:
            yield
        finally:
            self.working.discard(name)

    async def until(self, holds: Callable[[], bool], within: float) -> float:
        """Wait; return how long it took."""
        began = now()
        try:
            async with asyncio.timeout(within):
                while not holds():  # noqa: ASYNC110 - a virtual clock does not wait
                    await asyncio.sleep(0.05)
        except TimeoutError:
            msg = f"not within {within} s; working: {self.working}, lease: {self.lease}"
            raise AssertionError(msg) from None
        return now() - began


class Candidate:
    def __init__(self, world: World, name: str, skew: float) -> None:
        self.net = Net(world.cluster)
        self.name = name
        self.ending = 0.0
        """Seconds that its work takes to end."""
        self._world = world
        client = KubeClient(self.net, user_agent="test", budget=Budget(total=0.0))
        log = logs.to(world.stream)
        wall = WALL + skew
        self.election = Election(client, "n", log, lambda: wall + now(), me=name)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> Candidate:
        self.task = asyncio.create_task(self.election.run(self._work))
        return self

    async def _work(self) -> None:
        with self._world.at_work(self.name):
            try:
                await asyncio.sleep(1e9)
            finally:
                await asyncio.sleep(self.ending)

    async def stop(self) -> None:
        """As SIGTERM does."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait({self.task})

    async def kill(self) -> None:
        """As SIGKILL does: nothing more is sent, and the work is gone at once."""
        self.net.cut = True
        await self.stop()


def test_one_leads_and_the_other_stands_by() -> None:
    async def story() -> World:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        second = world.candidate("b").start()
        await asyncio.sleep(600)
        assert world.working == {"a"}
        assert world.lease["spec"]["leaseTransitions"] == 0
        renewals = world.cluster.asked("update", "leases")
        assert 600 / TIMING.duration * 3 - 2 <= len(renewals) <= 600 / TIMING.duration * 3 + 1
        # A renewal is one request, without a look before it.
        await first.stop()
        await second.stop()
        return world

    world = run_virtual(story())
    assert [name for _, name in world.turns] == ["a"]
    assert [line["holder"] for line in world.events("standby")] == ["a"]


def test_who_gives_the_lease_back_is_followed_at_once() -> None:
    async def story() -> None:
        world = World()
        first = world.candidate("a").start()
        second = world.candidate("b").start()
        await world.until(lambda: bool(world.working), 1)
        await asyncio.sleep(7)
        (leader,) = world.working
        leaving, staying = (first, second) if leader == "a" else (second, first)
        await leaving.stop()
        assert world.holder in ("", staying.name)
        took = await world.until(lambda: world.working == {staying.name}, TIMING.poll + 0.2)
        assert took <= TIMING.poll + 0.1
        assert world.lease["spec"]["leaseTransitions"] == 1
        await staying.stop()
        assert not world.holder

    run_virtual(story())


def test_the_work_has_ended_before_the_lease_is_given_back() -> None:
    async def story() -> World:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        # Longer than the lease: renewals go on until the work is over.
        first.ending = 40.0
        second = world.candidate("b").start()
        await asyncio.sleep(3)
        await first.stop()
        await world.until(lambda: world.working == {"b"}, TIMING.poll + 0.2)
        await second.stop()
        return world

    assert run_virtual(story()).most == 1


@pytest.mark.parametrize("skew", [-7200.0, 0.0, 7200.0])
def test_a_killed_leader_is_followed_when_its_time_is_up_whatever_the_clocks_say(
    skew: float,
) -> None:
    async def story() -> tuple[float, World]:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        second = world.candidate("b", skew).start()
        await asyncio.sleep(33)
        await first.kill()
        took = await world.until(lambda: world.working == {"b"}, 60)
        await second.stop()
        return took, world

    took, world = run_virtual(story())
    assert TIMING.duration - TIMING.renew <= took <= TIMING.duration + TIMING.poll
    assert world.most == 1


def test_a_leader_that_is_cut_off_stops_before_another_may_begin() -> None:
    async def story() -> World:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        second = world.candidate("b").start()
        await asyncio.sleep(31)
        first.net.cut = True
        stopped = await world.until(lambda: "a" not in world.working, TIMING.give_up + 0.1)
        assert stopped >= TIMING.give_up - TIMING.renew - 0.1
        assert not first.election.holds()
        waited = await world.until(lambda: world.working == {"b"}, 60)
        # The third between is for work that takes its time to end.
        assert waited >= TIMING.duration - TIMING.give_up - 0.1
        first.net.cut = False
        await asyncio.sleep(120)
        assert world.working == {"b"}
        (lost,) = world.events("lease lost")
        assert "not renewed for 10.0 s" in lost["why"]
        assert "cut" in lost["why"]
        # Crash-only: it stands by again, and takes over when it is its turn.
        await second.stop()
        await world.until(lambda: world.working == {"a"}, TIMING.poll + 0.2)
        await first.stop()
        return world

    world = run_virtual(story())
    assert world.most == 1
    assert [name for _, name in world.turns] == ["a", "b", "a"]


def test_the_time_of_a_renewal_is_when_it_was_sent_not_when_it_was_answered() -> None:
    async def story() -> World:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        second = world.candidate("b").start()
        first.net.delay, first.ending = TIMING.renew - 0.1, 3.0
        await world.until(lambda: len(world.cluster.asked("update", "leases")) == 1, 6)
        await asyncio.sleep(TIMING.renew)
        assert first.election.holds()
        first.net.cut = True
        await world.until(lambda: world.working == {"b"}, 60)
        await first.stop()
        await second.stop()
        return world

    assert run_virtual(story()).most == 1


def test_a_short_outage_costs_nothing() -> None:
    async def story() -> None:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        world.cluster.fail_next(503, times=3, match=lambda asked: asked.verb == "update")
        await asyncio.sleep(60)
        # An answer that got lost: the renewal took effect, and the version is no longer the known one.
        world.cluster.fail_next(-1, times=1, match=lambda asked: asked.verb == "update")
        await asyncio.sleep(60)
        # Somebody touches the object.
        world.cluster.update("Lease", LEASE_NAME, "n", {"metadata": {"labels": {"seen": "by-me"}}})
        await asyncio.sleep(60)
        assert len(world.turns) == 1
        assert world.lease["metadata"]["labels"] == {"seen": "by-me"}
        await first.stop()

    run_virtual(story())


def test_a_lease_that_somebody_takes_or_deletes_by_hand() -> None:
    async def story() -> World:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        second = world.candidate("b").start()
        await asyncio.sleep(21)
        world.cluster.remove("Lease", LEASE_NAME, "n")
        await asyncio.sleep(60)
        # The others let the holder's time run out, and it has made the Lease again long before.
        assert world.holder == "a"
        assert len(world.turns) == 1
        world.cluster.update("Lease", LEASE_NAME, "n", {"spec": {"holderIdentity": "somebody"}})
        await world.until(lambda: not world.working, TIMING.renew + 1)
        await world.until(lambda: bool(world.working), TIMING.duration + TIMING.poll)
        await first.stop()
        await second.stop()
        return world

    world = run_virtual(story())
    assert world.most == 1
    assert world.events("lease lost")[0]["why"] == "somebody holds it"


def test_an_answer_that_comes_too_late_makes_no_leader() -> None:
    async def story() -> None:
        world = World()
        slow = world.candidate("a")
        slow.net.delay = TIMING.give_up - 0.5
        slow.start()
        await asyncio.sleep(120)
        assert not world.turns
        await slow.stop()

    run_virtual(story())


def test_what_the_holder_wrote_down_counts_not_what_others_think() -> None:
    async def story() -> None:
        world = World()
        spec = {"holderIdentity": "old", "leaseDurationSeconds": 60}
        lease = {"kind": "Lease", "metadata": {"name": LEASE_NAME, "namespace": "n"}}
        world.cluster.add({"apiVersion": "coordination.k8s.io/v1", **lease, "spec": spec})
        first = world.candidate("a").start()
        took = await world.until(lambda: world.working == {"a"}, 120)
        assert took >= 60
        assert world.lease["spec"]["leaseDurationSeconds"] == TIMING.duration
        await first.stop()

    run_virtual(story())


def test_a_process_that_was_frozen_writes_nothing_when_it_wakes_up() -> None:
    async def story() -> None:
        world = World()
        first = world.candidate("a")
        client = KubeClient(
            Guarded(first.net, first.election.holds), user_agent="test", budget=Budget(total=0.0)
        )
        outcomes: list[str] = []

        async def work() -> None:
            body = {"metadata": {"name": "c"}}
            await client.create(CONFIGMAP, body, "n", field_manager="t")
            outcomes.append("wrote")
            _freeze(60)
            try:
                await client.delete(CONFIGMAP, "c", "n")
            except Unreachable as error:
                outcomes.append(str(error))
            # Reading does no harm.
            assert await client.exists(CONFIGMAP, "c", "n")
            await asyncio.sleep(1e9)

        task = asyncio.create_task(first.election.run(work))
        await world.until(lambda: len(outcomes) == 2, 100)
        task.cancel()
        await asyncio.wait({task})
        assert outcomes[0] == "wrote"
        assert "does not hold the lease" in outcomes[1]
        assert world.cluster.get("ConfigMap", "c", "n")

    run_virtual(story())


def _freeze(seconds: float) -> None:
    """Let time pass in which not one task runs, as SIGSTOP would."""
    loop: Any = asyncio.get_running_loop()
    loop._virtual.now += seconds


def test_work_that_does_not_end_ends_the_process() -> None:
    async def story() -> None:
        world = World()
        first = world.candidate("a").start()
        await world.until(lambda: world.working == {"a"}, 1)
        first.ending = 1e6
        first.net.cut = True
        assert first.task is not None
        await asyncio.wait({first.task}, timeout=60)
        assert isinstance(first.task.exception(), StuckError)

    run_virtual(story())


def test_an_error_of_the_work_is_raised_and_the_lease_given_back() -> None:
    async def story() -> None:
        world = World()

        async def work() -> None:
            await asyncio.sleep(1)
            msg = "a bug"
            raise RuntimeError(msg)

        with pytest.raises(RuntimeError, match="a bug"):
            await world.candidate("a").election.run(work)
        assert world.lease["spec"]["holderIdentity"] == ""

    run_virtual(story())


def test_a_permission_that_is_missing_is_said_once() -> None:
    async def story() -> World:
        world = World()
        for verb in ("get", "create"):
            world.cluster.forbid(verb, "leases")
        first = world.candidate("a").start()
        await asyncio.sleep(60)
        assert not world.turns
        await first.stop()
        return world

    (line,) = run_virtual(story()).events("lease not reached")
    assert "cannot get resource 'leases'" in line["message"]


@pytest.mark.parametrize("seed", range(10))
def test_never_two_at_once_whatever_happens(seed: int) -> None:
    """Three candidates that are cut off, slow, stopped, killed and started, in any order, for half an hour."""

    async def story() -> World:
        chance = random.Random(seed)  # noqa: S311 - a seeded test
        world = World()
        names = iter(f"c{number}" for number in range(10_000))
        alive = [world.candidate(next(names), chance.uniform(-3600, 3600)).start() for _ in "123"]
        began = now()
        while now() < began + 1800:
            await asyncio.sleep(chance.uniform(0.1, 20))
            index = chance.randrange(len(alive))
            one = alive[index]
            match chance.randrange(6):
                case 0:
                    one.net.cut = not one.net.cut
                case 1:
                    one.net.delay = chance.choice([0.0, 0.3, 3.0, 6.0, 12.0])
                case 2:
                    one.ending = chance.uniform(0.0, 3.0)
                case 3:
                    await one.stop()
                    alive[index] = world.candidate(next(names)).start()
                case 4:
                    one.ending = 0.0
                    await one.kill()
                    alive[index] = world.candidate(next(names)).start()
                case _:
                    status = chance.choice([0, -1, 500, 409])
                    world.cluster.fail_next(status, times=chance.randrange(4), match=_leases)
        for one in alive:
            one.net.cut, one.net.delay = False, 0.0
        await world.until(lambda: bool(world.working), 60)
        for one in alive:
            await one.stop()
        return world

    world = run_virtual(story())
    assert world.most == 1
    assert len(world.turns) > 5


def _leases(asked: Asked) -> bool:
    return "/leases" in asked.path
