"""Servers on loopback that have too much to do: what the real HTTP client makes of 429, Retry-After and time-outs (case C16: the rest fails)."""

from __future__ import annotations

import asyncio
import errno
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from harness.controller.core.analysis import metrics
from harness.controller.shell.http import NoAnswerError, _explained
from harness.controller.shell.metrics import Metrics
from harness.tests.outside_server import NOW, PROXIES, World, canary, refused, running, served

if TYPE_CHECKING:
    from harness.controller.core.calls import Answer

JSON = dict[str, Any]
GOOD = (200, {"status": "success", "data": {"resultType": "scalar", "result": [NOW, "2.5"]}})
LATE = {"status": "error", "errorType": "timeout", "error": "query timed out in query execution"}
CANCELLED = {"status": "error", "errorType": "canceled", "error": "context canceled"}
QUERIES = "rollout_drill_controller_metric_queries_total"
WAITS = "rollout_drill_controller_metric_query_wait_seconds_count"


@pytest.fixture(autouse=True)
def _proxies_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")


async def ask(world: World, name: str = "m", server: str = "") -> Answer:
    given = canary(metrics=[{"name": name, "query": "up"}])
    given["metadata"]["name"] = f"canary-{name}"
    if server:
        given["spec"]["metricsServer"] = server
    (entry,) = metrics.entries(given)
    return await world.calls.carry_out(metrics.call(given, entry, "o"), given)


def after(value: str) -> JSON:
    return {"Retry-After": value}


@pytest.mark.parametrize(
    ("reply", "reason", "again"),
    [
        ((429, "slow down"), "TooManyRequests", None),
        ((429, "slow down", after("7")), "TooManyRequests", 7.0),
        ((429, "slow down", after(formatdate(NOW + 9, usegmt=True))), "TooManyRequests", 9.0),
        ((429, "slow down", after(formatdate(NOW - 9, usegmt=True))), "TooManyRequests", 1.0),
        ((429, "slow down", after("99999999")), "TooManyRequests", 300.0),
        ((429, "slow down", after("soon")), "TooManyRequests", None),
        ((503, "restarting", after("30")), "TooManyRequests", 30.0),
        ((503, LATE), "TimedOut", None),
        ((504, "<html>gateway</html>"), "TimedOut", None),
        ("hang", "TimedOut", None),
    ],
)
def test_a_provider_with_too_much_to_do_gives_no_verdict(
    reply: Any, reason: str, again: float | None
) -> None:
    async def story() -> None:
        async with served(reply) as server:
            world = World(server.url, timeout=0.05 if reply == "hang" else 5.0)
            answer = await ask(world)
            assert (answer.ok, answer.value, answer.undecided) == (False, None, reason)
            assert answer.retry_after == again
            assert server.url.removeprefix("http://") in answer.message
            (line,) = [line for line in world.log.lines if line["event"] == "called"]
            assert line["undecided"] == reason
            await world.http.close()

    running(story)


@pytest.mark.parametrize(
    "reply",
    [
        (503, "down"),
        (503, "down", after("soon")),
        (503, CANCELLED),
        (500, "boom", after("7")),
        (200, "<html>login</html>"),
        (404, "nothing here"),
        "break",
    ],
)
def test_a_server_that_is_broken_is_a_failed_check(reply: Any) -> None:
    async def story() -> None:
        async with served(reply) as server:
            world = World(server.url)
            answer = await ask(world)
            assert (answer.ok, answer.undecided, answer.retry_after) == (False, "", None)
            assert answer.message.startswith("query failed: ")
            assert not [line for line in world.log.lines if line["event"] == "provider paused"]
            await world.http.close()

    running(story)


def test_nobody_there_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name)

    async def story() -> None:
        world = World(refused())
        answer = await ask(world)
        assert (answer.ok, answer.undecided) == (False, "")
        await world.http.close()

    running(story)


@pytest.mark.parametrize(("number", "late"), [(errno.ETIMEDOUT, True), (errno.EHOSTUNREACH, False)])
def test_a_connection_that_the_system_gives_up_has_timed_out(number: int, *, late: bool) -> None:
    where: Any = type("Key", (), {"host": "h", "port": 80, "ssl": None})()
    with pytest.raises(NoAnswerError) as caught, _explained("http://h", 5.0):
        raise aiohttp.ClientConnectorError(where, OSError(number, "x"))
    assert caught.value.timed_out == late


def test_retry_after_holds_for_the_whole_server_and_for_nobody_else() -> None:
    async def story() -> None:
        async with served((429, "slow down", after("7"))) as server, served(GOOD) as other:
            world = World(server.url)
            first = await ask(world, "a")
            second = await ask(world, "b", server.url + "/prom/")
            third = await ask(world, "c", other.url)
            host = server.url.removeprefix("http://")
            assert len(server.seen) == 1
            assert (first.undecided, second.undecided) == ("TooManyRequests", "TooManyRequests")
            assert second.message == (
                f"query failed: {host} has asked to be left alone for a while (Retry-After)"
            )
            assert second.retry_after == pytest.approx(7.0, abs=0.5)
            assert third.value == 2.5
            (line,) = [line for line in world.log.lines if line["event"] == "provider paused"]
            assert (line["provider"], line["seconds"]) == (host, 7.0)
            await world.http.close()

    running(story)


def test_credentials_are_in_no_message_and_no_line_of_the_log() -> None:
    async def story() -> None:
        text = "user u with hunter22 asks for /token-4711 too often"
        async with served((429, text, after("7"))) as server:
            url = server.url.replace("http://", "http://u:hunter22@") + "/token-4711"
            meter = Metrics(lambda: NOW)
            world = World(url, meter=meter)
            texts = [(await ask(world)).message for _ in range(2)]
            assert "asks for" in texts[0]
            for said in (*texts, world.log.text, meter.text()[0].decode()):
                assert "hunter22" not in said
                assert "4711" not in said
            await world.http.close()

    running(story)


def test_what_was_sent_is_counted_by_provider_and_result() -> None:
    async def story() -> None:
        async with served(GOOD, (500, "boom"), (504, "late"), GOOD) as server:
            meter = Metrics(lambda: NOW)
            world = World(server.url, meter=meter, metrics_rate=1000.0)
            for _ in range(4):
                await ask(world)
            await world.http.close()
            host = server.url.removeprefix("http://")

            def counted(name: str, **labels: str) -> float | None:
                return meter.registry.get_sample_value(name, {"provider": host, **labels})

            found = {name: counted(QUERIES, result=name) for name in ("ok", "failed", "undecided")}
            assert found == {"ok": 2, "failed": 1, "undecided": 1}
            assert counted(WAITS) == 4

    running(story)


@pytest.mark.parametrize(("rate", "requests"), [(None, 2), (1000.0, 1)])
def test_where_queries_are_counted_a_broken_connection_does_not_make_two_of_one(
    rate: float | None, requests: int
) -> None:
    async def story() -> None:
        async with served("break") as server:
            world = World(server.url, metrics_rate=rate)
            answer = await ask(world)
            assert "broke off" in answer.message
            assert answer.undecided == ""
            assert len(server.seen) == requests
            await world.http.close()

    running(story)


def test_a_limited_rate_is_what_the_server_sees() -> None:
    """With the real client: the second query is sent a turn later, although its time-out is shorter than its wait."""

    async def story() -> None:
        async with served(GOOD) as server:
            world = World(server.url, timeout=0.15, metrics_rate=5.0)
            begin = asyncio.get_running_loop().time()
            answers = await asyncio.gather(ask(world, "a"), ask(world, "b"))
            assert asyncio.get_running_loop().time() - begin >= 0.2
            assert [answer.value for answer in answers] == [2.5, 2.5]
            await world.http.close()

    running(story)
