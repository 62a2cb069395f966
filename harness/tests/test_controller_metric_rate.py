"""How fast metrics providers are asked, in virtual time; and a whole run against one that has too much to do."""

from __future__ import annotations

import asyncio
import bisect
import functools
import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

from harness.controller.core.calls import Answer
from harness.controller.shell import posting
from harness.controller.shell.engine import Engine
from harness.controller.shell.meter import Meter
from harness.controller.shell.metric_sources import providers
from harness.controller.shell.metric_sources.base import Query, QueryFailedError, UndecidedError
from harness.controller.shell.metric_sources.bucket import EASE_RATE, Bucket, PausedError
from harness.controller.shell.wording import host_of
from harness.kube.testing import run_virtual
from harness.tests.controller_runs import metric
from harness.tests.outside_server import Log
from harness.tests.test_controller_shell import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JSON = dict[str, Any]


def now() -> float:
    return asyncio.get_running_loop().time()


def most_within(times: Sequence[float], window: float = 1.0) -> int:
    """The most of these times that lie in any half-open window of that length."""
    ordered = sorted(times)
    return max(bisect.bisect_left(ordered, t + window - 1e-6) - at for at, t in enumerate(ordered))


async def passing(bucket: Bucket, arrivals: Sequence[float]) -> list[tuple[int, float]]:
    """Let queries arrive at these times; which one passed, in the order in which they came, and when."""
    passed: list[tuple[int, float]] = []
    came = itertools.count()

    async def one(at: float) -> None:
        await asyncio.sleep(at)
        number = next(came)
        await bucket.turn()
        passed.append((number, now()))

    await asyncio.gather(*(one(at) for at in arrivals))
    return passed


# -- the bucket --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.5, 3.0, 7.3, 10.0, 100.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_in_no_second_do_more_pass_than_the_rate_and_nobody_is_overtaken(
    rate: float, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - arrivals, no secrets
    arrivals = sorted(dice.choice([0.0, 0.0, 1.0, dice.uniform(0, 30)]) for _ in range(60))
    passed = run_virtual(passing(Bucket(rate), arrivals))
    assert [number for number, _ in passed] == list(range(60))
    times = [t for _, t in passed]
    assert most_within(times) <= -(-rate // 1)
    assert all(b - a >= 1 / rate * 0.999 for a, b in itertools.pairwise(times))
    # And no slower than that while somebody waits.
    assert times[-1] <= max(arrivals) + 60 / rate


def test_without_a_rate_nobody_waits() -> None:
    passed = run_virtual(passing(Bucket(None), [0.0] * 300))
    assert {t for _, t in passed} == {0.0}


def test_after_a_rest_a_burst_goes_at_once() -> None:
    passed = run_virtual(passing(Bucket(2.0, 4), [0.0] * 6 + [100.0] * 6))
    assert [round(t, 3) for _, t in passed] == [0, 0, 0, 0, 0.5, 1, 100, 100, 100, 100, 100.5, 101]


def test_who_gives_up_gives_the_place_back() -> None:
    async def story() -> list[float]:
        bucket, passed = Bucket(1.0), []

        async def one() -> None:
            await bucket.turn()
            passed.append(now())

        tasks = [asyncio.create_task(one()) for _ in range(6)]
        await asyncio.sleep(0.5)
        # The one whose turn is next, and two who wait behind it.
        for given_up in (tasks[1], tasks[2], tasks[4]):
            given_up.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return passed

    assert run_virtual(story()) == pytest.approx([0.0, 1.0, 2.0])


def test_a_pause_turns_back_those_who_wait_and_those_who_come() -> None:
    async def story() -> tuple[list[float], list[float], list[float]]:
        bucket, passed, rests, back = Bucket(1.0), [], [], []

        async def one(at: float) -> None:
            await asyncio.sleep(at)
            try:
                await bucket.turn()
            except PausedError as paused:
                back.append(now())
                rests.append(now() + paused.rest)
            else:
                passed.append(now())

        tasks = [asyncio.create_task(one(at)) for at in (0.0, 0.0, 0.0, 0.7, 20.0, 30.6, 30.6)]
        await asyncio.sleep(0.5)
        assert bucket.pause(30.0)
        assert not bucket.pause(10.0)  # shorter than what lasts
        await asyncio.gather(*tasks)
        return passed, rests, back

    passed, rests, back = run_virtual(story())
    assert passed == pytest.approx([0.0, 30.6, 31.6])
    assert rests == pytest.approx([30.5] * 4)
    # Those who wait, with the next turn; who comes later, at once.
    assert back == pytest.approx([0.7, 1.0, 1.0, 20.0])


def test_without_a_rate_those_who_come_back_after_a_pause_do_not_come_all_at_once() -> None:
    async def story() -> tuple[list[float], list[float]]:
        bucket = Bucket(None)
        bucket.pause(5.0)
        back = await passing(bucket, [5.0] * 100)
        later = await passing(bucket, [100.0] * 100)
        return [t for _, t in back], [t for _, t in later]

    back, later = run_virtual(story())
    assert most_within(back) <= EASE_RATE
    assert max(back) == pytest.approx(5.0 + 99 / EASE_RATE)
    assert len(set(later)) == 1


# -- providers ---------------------------------------------------------------------------------------------------------------


class Counts(Meter):
    def __init__(self) -> None:
        self.queries: list[tuple[str, str]] = []
        self.waits: list[tuple[str, float]] = []

    def queried(self, provider: str, result: str) -> None:
        self.queries.append((provider, result))

    def queued(self, provider: str, seconds: float) -> None:
        self.waits.append((provider, round(seconds, 3)))


class Backend:
    """Answers queries after a while, or says that it has too much to do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times: list[float] = []
        self.asked: list[Query] = []
        self.takes = 0.0
        self.refuses: Callable[[], str | None] = lambda: None
        """Returns Retry-After, empty without one; None: it answers."""
        monkeypatch.setattr(providers, "SOURCES", {"prometheus": self.ask})

    async def ask(self, _: object, query: Query) -> float:
        self.times.append(now())
        self.asked.append(query)
        wait = self.refuses()
        try:
            async with asyncio.timeout(query.timeout):
                await asyncio.sleep(self.takes)
        except TimeoutError as error:
            msg = "no answer from h within a while"
            raise UndecidedError(msg, "TimedOut") from error
        if wait is not None:
            msg = f"{host_of(str(query.provider['address']))} answered 429"
            raise UndecidedError(msg, "TooManyRequests", {"retry-after": wait} if wait else {})
        return 5.0


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    return Backend(monkeypatch)


class Crew:
    """Providers, and what they told."""

    def __init__(self, **limits: Any) -> None:
        self.log, self.counts = Log(), Counts()
        self.all = providers.Providers(object(), self.log.to, now, self.counts, **limits)  # type: ignore[arg-type]

    async def ask(self, address: str = "http://h:9090", within: float = 10.0) -> Any:
        query = Query("q", {"address": address}, timeout=within)
        try:
            return await self.all.ask("prometheus", query)
        except QueryFailedError as error:
            return error


def test_one_server_has_one_bucket_however_its_address_is_written(backend: Backend) -> None:
    same = ("http://h/", "http://h:80/prom", "http://me:pw4711@H/?x=1", "http://h/other#a")
    other = ("https://h/", "http://h:9090", "http://other", "", "http://[::1")

    async def story() -> tuple[Crew, list[float]]:
        crew = Crew(rate=1.0)
        await asyncio.gather(*(crew.ask(address) for address in same))
        first = list(backend.times)
        await asyncio.sleep(10)
        backend.times.clear()
        await asyncio.gather(*(crew.ask(address) for address in other[:3]))
        return crew, first

    crew, first = run_virtual(story())
    assert first == pytest.approx([0.0, 1.0, 2.0, 3.0])
    assert len(set(backend.times)) == 1
    assert [name for name, _ in crew.counts.waits][:4] == ["h", "h:80", "H", "h"]
    assert "4711" not in str(crew.counts.waits) + str(crew.counts.queries)


def test_a_time_out_counts_from_when_the_query_is_sent(backend: Backend) -> None:
    async def story() -> tuple[Crew, tuple[Any, ...]]:
        backend.takes = 0.4
        crew = Crew(rate=0.1)
        found = await asyncio.gather(
            crew.ask(within=0.5), crew.ask(within=0.5), crew.ask(within=0.3)
        )
        return crew, tuple(found)

    crew, found = run_virtual(story())
    assert found[:2] == (5.0, 5.0)
    assert (found[2].reason, found[2].retry_after) == ("TimedOut", None)
    assert crew.counts.queries == [("h:9090", "ok")] * 2 + [("h:9090", "undecided")]
    assert crew.counts.waits == [("h:9090", 0.0), ("h:9090", 10.0), ("h:9090", 20.0)]
    # One that fails is not tried again behind the counter's back.
    assert all(query.once for query in backend.asked)


def test_without_a_rate_all_go_at_once_as_ever(backend: Backend) -> None:
    async def story() -> Crew:
        crew = Crew()
        await asyncio.gather(*(crew.ask() for _ in range(50)))
        return crew

    crew = run_virtual(story())
    assert set(backend.times) == {0.0}
    assert (len(crew.counts.queries), crew.counts.waits) == (50, [])
    assert not any(query.once for query in backend.asked)


@pytest.mark.parametrize(
    ("asked", "given"), [("7", 7.0), ("0", 1.0), ("86400", 300.0), ("soon", None), ("", None)]
)
def test_retry_after_is_kept_within_bounds(
    backend: Backend, asked: str, given: float | None
) -> None:
    async def story() -> tuple[Any, Any, Any]:
        crew = Crew()
        backend.refuses = lambda: asked
        first = await crew.ask()
        backend.refuses = lambda: None
        elsewhere = await crew.ask("http://other")
        return first, await crew.ask(), elsewhere

    first, second, elsewhere = run_virtual(story())
    assert (first.reason, first.retry_after) == ("TooManyRequests", given)
    assert elsewhere == 5.0
    if given is None:
        assert second == 5.0
    else:
        assert (second.reason, second.retry_after) == ("TooManyRequests", given)
        assert "h:9090 has asked to be left alone" in str(second)
        assert len(backend.times) == 2


@pytest.mark.parametrize("rate", [5.0, None])
def test_hundreds_do_not_all_ask_again_at_once(backend: Backend, rate: float | None) -> None:
    """Each one that is turned back asks again when it is told to, until it gets a number."""

    async def story() -> tuple[Crew, list[int]]:
        crew = Crew(rate=rate)
        backend.takes = 0.02
        backend.refuses = lambda: "10" if now() < 60 else None
        rounds = []

        async def one() -> None:
            count = 0
            while isinstance(answer := await crew.ask(), QueryFailedError):
                assert isinstance(answer, UndecidedError)
                assert answer.retry_after is not None
                count += 1
                await asyncio.sleep(answer.retry_after)
            rounds.append(count)

        await asyncio.gather(*(one() for _ in range(200)))
        return crew, rounds

    crew, rounds = run_virtual(story())
    assert len(rounds) == 200
    again = [t for t in backend.times if t > 0.0]
    assert most_within(again) <= (rate or EASE_RATE)
    # While it refuses, next to nobody asks: one to find out, each time.
    assert len([t for t in again if t < 60]) < 10
    paused = [line for line in crew.log.lines if line["event"] == "provider paused"]
    assert 5 <= len(paused) <= 7
    assert paused[0]["provider"] == "h:9090"


# -- a whole run -------------------------------------------------------------------------------------------------------------


def test_a_run_outlives_a_minute_of_429_and_asks_no_more_than_it_is_told(backend: Backend) -> None:
    """The shell as a whole: an answer that counts for nothing stays, or it would be asked for again at once."""

    async def story() -> tuple[Stage, list[float]]:
        stage = Stage()
        analysis = {"interval": "2s", "threshold": 2, "iterations": 3, "metrics": [metric("m")]}
        stage.apply(analysis=analysis, service={"port": 80})
        async with stage.controller(metrics_rate=5.0):
            await stage.reaches("Initialized")
            stage.change("app:2")
            await stage.until(lambda: bool(backend.times))
            begin = now()
            backend.refuses = lambda: "10" if now() < begin + 60 else None
            await asyncio.sleep(50)
            assert stage.phase == "Progressing"
            (shown,) = [c for c in stage.status["conditions"] if c["type"] == "Unmeasured"]
            assert "prometheus:9090" in shown["message"]
            asked = [t - begin for t in backend.times if t > begin]
            events = [e["message"] for e in stage.cluster.objects("Event", "n")]
            assert len([e for e in events if e.startswith("No verdict")]) == 1
            await stage.reaches("Succeeded")
        return stage, asked

    stage, asked = run_virtual(story())
    assert len(asked) == 5
    assert stage.image("web-primary") == "app:2"
    assert stage.status["failedChecks"] == 0
    assert not [c for c in stage.status["conditions"] if c["type"] == "Unmeasured"]


@pytest.mark.parametrize("refusal", ["", None], ids=["429 without a time", "time-out"])
def test_without_a_time_a_run_asks_once_an_interval(backend: Backend, refusal: str | None) -> None:
    """Nothing else would keep it from asking at once: an answer that counted for nothing stays when the condition is written."""

    async def story() -> list[float]:
        stage = Stage()
        backend.takes, backend.refuses = (0.0 if refusal == "" else 30.0), lambda: refusal
        analysis = {"interval": "2s", "threshold": 2, "iterations": 3, "metrics": [metric("m")]}
        stage.apply(analysis=analysis, service={"port": 80})
        async with stage.controller():
            await stage.reaches("Initialized")
            stage.change("app:2")
            await stage.until(lambda: len(backend.times) >= 5, 120)
        return backend.times

    times = run_virtual(story())
    gap = 2.0 if refusal == "" else 12.0
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == pytest.approx([gap] * (len(times) - 1), abs=0.2)


def test_the_flags_reach_the_bucket_and_the_meter(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts()
    counting = functools.partial(Engine, meter=counts)
    monkeypatch.setattr("harness.tests.test_controller_shell.Engine", counting)

    async def story() -> Stage:
        stage = Stage()
        several = [metric(name) for name in "abc"]
        analysis = {"interval": "2s", "threshold": 2, "iterations": 1, "metrics": several}
        stage.apply(analysis=analysis, service={"port": 80})
        async with stage.controller(metrics_rate=0.05, metrics_burst=2):
            await stage.reaches("Initialized")
            stage.change("app:2")
            await stage.reaches("Succeeded")
        return stage

    run_virtual(story())
    first = backend.times[0]
    assert [t - first for t in backend.times] == pytest.approx([0.0, 0.0, 20.0], abs=0.2)
    assert counts.queries == [("prometheus:9090", "ok")] * 3
    assert [seconds > 10 for _, seconds in counts.waits] == [False, False, True]


def test_digits_of_other_scripts_are_no_number() -> None:
    assert posting.retry_after({"retry-after": "²"}, 0.0) is None
    assert Answer(0.0, ok=False).retry_after is None
