"""Looking up names: what hangs there holds up nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from harness.controller.shell.http import Ask, Http, NoAnswerError
from harness.controller.shell.resolver import Resolver
from harness.tests.outside_server import PROXIES, running, served


def local(_host: str, port: int, **_: Any) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


def test_a_name_leads_to_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)

    async def story() -> None:
        async with served(200) as server:
            http = Http(user_agent="test", resolver=Resolver(local))
            port = server.url.rpartition(":")[2]
            reply = await http.ask(Ask("GET", f"http://gate.test:{port}/", 5.0))
            await http.close()
            assert reply.status == 200
            assert server.seen[0].headers["host"] == f"gate.test:{port}"

    running(story)


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("too long")])
def test_a_name_that_nobody_knows_is_a_failure(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)

    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise error

    async def story() -> None:
        http = Http(user_agent="test", resolver=Resolver(unknown))
        with pytest.raises(NoAnswerError, match=r"the name of gate\.test cannot be resolved"):
            await http.ask(Ask("GET", "http://gate.test/", 5.0))
        await http.close()

    running(story)


def test_many_names_that_hang_hold_up_neither_another_one_nor_the_end() -> None:
    answered = threading.Event()

    def lookup(host: str, port: int, **_: Any) -> list[Any]:
        if host == "slow.test":
            answered.wait(30)
        return local(host, port)

    async def story() -> None:
        resolver = Resolver(lookup)
        slow = [asyncio.create_task(resolver.resolve("slow.test", 80)) for _ in range(50)]
        found = await resolver.resolve("fast.test", 80)
        assert [one["host"] for one in found] == ["127.0.0.1"]
        assert not any(task.done() for task in slow)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    running(story)
    # The loop is closed while all fifty are still being looked up; their late answers find nobody, and break nothing.
    left = [thread for thread in threading.enumerate() if thread.name == "resolve"]
    assert len(left) >= 50
    # Nor does the process wait for them at its end.
    assert all(thread.daemon for thread in left)
    answered.set()
    for thread in left:
        thread.join(10)
