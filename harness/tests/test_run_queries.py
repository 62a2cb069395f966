"""The doorman before a drill's metrics server, and how queries get into the timeline."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest

from harness.model.standins import RETRY_AFTER
from harness.model.timeline_outside import Queries, QueriesCounted
from harness.run import queries
from harness.run.queries import QueryLog
from harness.standins.doorman import Asked, Doorman
from harness.standins.exposition import Metrics
from harness.standins.imitation import Imitation
from harness.standins.prometheus import counted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NAME = 'good{pod="web-1"}'

# The doorman


def beside_a_server(act: Callable[[Doorman, str, aiohttp.ClientSession], Awaitable[None]]) -> Any:
    """Let something happen at a doorman before a server that knows one metric; return what was told."""
    told: list[Asked] = []

    async def run() -> None:
        server, doorman = Imitation(Metrics({NAME: "99.5"}), print), Doorman(told.append)
        await server.open()
        await doorman.open()
        async with aiohttp.ClientSession(trust_env=False) as http:
            doorman.behind = server.port
            await act(doorman, f"http://127.0.0.1:{doorman.port}", http)
        await doorman.close()
        await doorman.close()
        await server.close()

    asyncio.run(run())
    return told


def test_a_query_is_passed_on_as_it_is_with_get_and_post_and_told_of() -> None:
    async def act(_doorman: Doorman, url: str, http: aiohttp.ClientSession) -> None:
        for answer in (
            await http.get(f"{url}/api/v1/query", params={"query": NAME}),
            await http.post(f"{url}/api/v1/query", data={"query": NAME}),
        ):
            body = await answer.json()
            assert body["data"]["result"][0]["value"][1] == "99.5"

    told = beside_a_server(act)
    assert [(one.status, one.passed) for one in told] == [(200, True)] * 2
    assert told[0].came < told[1].came


def test_errors_of_the_server_are_passed_back() -> None:
    async def act(_doorman: Doorman, url: str, http: aiohttp.ClientSession) -> None:
        answer = await http.get(f"{url}/api/v1/query", params={"query": "rate(good[1m])"})
        assert (answer.status, (await answer.json())["status"]) == (422, "error")

    assert [one.status for one in beside_a_server(act)] == [422]


def test_other_paths_are_passed_on_and_do_not_count() -> None:
    async def act(_doorman: Doorman, url: str, http: aiohttp.ClientSession) -> None:
        assert (await http.get(f"{url}/api/v1/status/flags")).status == 404

    assert beside_a_server(act) == []


def test_throttled_it_refuses_says_when_to_come_back_and_passes_nothing_on() -> None:
    async def act(doorman: Doorman, url: str, http: aiohttp.ClientSession) -> None:
        doorman.throttled = True
        doorman.behind = 1  # nobody listens there, so that passing on would be another answer
        answer = await http.get(f"{url}/api/v1/query", params={"query": NAME})
        assert (answer.status, answer.headers["Retry-After"]) == (429, str(RETRY_AFTER))

    assert [(one.status, one.passed) for one in beside_a_server(act)] == [(429, False)]


def test_a_server_that_is_not_there_is_a_bad_gateway() -> None:
    async def act(doorman: Doorman, url: str, http: aiohttp.ClientSession) -> None:
        for port in (0, 1):
            doorman.behind = port
            assert (await http.get(f"{url}/api/v1/query", params={"query": NAME})).status == 502

    assert [one.status for one in beside_a_server(act)] == [502, 502]


def test_a_caller_that_does_not_wait_is_told_of_with_status_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got = asyncio.Event()

    async def hang(*_: Any) -> Any:
        got.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Doorman, "_pass_on", hang)

    async def act(_doorman: Doorman, url: str, http: aiohttp.ClientSession) -> None:
        call = asyncio.ensure_future(http.get(f"{url}/api/v1/query"))
        await got.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    assert [(one.status, one.passed) for one in beside_a_server(act)] == [(0, True)]


def test_the_servers_own_count_is_read_from_its_metrics() -> None:
    text = (
        'prometheus_http_requests_total{code="200",handler="/api/v1/query"} 120\n'
        'prometheus_http_requests_total{code="422",handler="/api/v1/query"} 3\n'
        'prometheus_http_requests_total{code="200",handler="/metrics"} 1.5e+06\n'
        'prometheus_http_request_duration_seconds_count{handler="/api/v1/query"} 123\n'
    )
    assert counted(text, {"/api/v1/query", "/api/v1/query_range"}) == 123
    assert counted("", {"/api/v1/query"}) == 0


# The timeline


class Log:
    """What a Live does, as far as queries see it."""

    def __init__(self) -> None:
        self.t = 10.0
        self.seen: list[Any] = []
        self.more = asyncio.Event()

    def now(self) -> float:
        return self.t

    def observe(self, observation: Any) -> None:
        self.seen.append(observation)
        self.more.set()


class Counts:
    """A server that says how many queries it answered, one number after the other."""

    def __init__(self, log: Log, *numbers: int | None) -> None:
        self.log = log
        self.numbers = list(numbers)

    async def counted(self) -> int | None:
        self.log.t += 1.5
        return self.numbers.pop(0)


@pytest.fixture
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "TOGETHER", 0.0)
    monkeypatch.setattr("harness.run.queries.time.monotonic", lambda: 1000.0)


@pytest.mark.usefixtures("_hurried")
def test_queries_are_told_together_in_the_order_in_which_they_came() -> None:
    async def run() -> list[Any]:
        log, noted = Log(), QueryLog()
        noted.asked(Asked(998.0, 200, passed=True))
        noted.attach(cast("Any", log))
        noted.asked(Asked(999.5, 429, passed=False))
        noted.asked(Asked(999.0, 200, passed=True))
        await log.more.wait()
        await noted.close()
        noted.asked(Asked(999.9, 200, passed=True))
        noted.flush()
        return log.seen

    assert asyncio.run(run()) == [Queries(10.0, (8.0, 9.0, 9.5), (200, 200, 429), passed=2)]


def test_what_is_kept_back_is_told_in_the_end() -> None:
    async def run() -> list[Any]:
        log, noted = Log(), QueryLog()
        noted.attach(cast("Any", log))
        noted.asked(Asked(0.0, 200, passed=True))
        assert log.seen == []
        await noted.complete()
        await noted.complete()
        await noted.close()
        return log.seen

    (seen,) = asyncio.run(run())
    assert (seen.statuses, seen.passed) == ((200,), 1)


def test_the_servers_own_count_is_told_when_it_has_changed_with_the_time_since_the_look_before() -> (
    None
):
    async def run() -> list[Any]:
        log, noted = Log(), QueryLog()
        noted.attach(cast("Any", log))
        server = Counts(log, 4, 4, None, 9, 9)
        noted._server = cast("Any", server)
        for _ in range(5):
            await noted.complete()
        return log.seen

    # The look that said nothing belongs to the second in which the nine were seen.
    assert asyncio.run(run()) == [QueriesCounted(11.5, 4, 0.0), QueriesCounted(16.0, 9, 3.0)]


def test_the_count_is_looked_at_again_and_again_until_the_end() -> None:
    async def run() -> list[Any]:
        log, noted = Log(), QueryLog()
        noted.attach(cast("Any", log))
        noted.follow(cast("Any", Counts(log, 1, 2, 3)))
        await log.more.wait()
        await noted.close()
        return log.seen

    assert asyncio.run(run()) == [QueriesCounted(11.5, 1, 0.0)]
