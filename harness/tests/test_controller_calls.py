"""Webhooks carried out, against servers on loopback: what each way to fail becomes, and what no message may hold."""

from __future__ import annotations

import asyncio
import base64
import json
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from harness.controller.shell.http import REDIRECTS
from harness.controller.shell.posting import retry_after
from harness.controller.shell.wording import LONGEST, cleaned
from harness.tests.outside_server import (
    NOW,
    PROXIES,
    World,
    own_certificate,
    refused,
    running,
    served,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _proxies_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("status", [200, 202, 204, 206])
def test_every_2xx_is_a_success(status: int) -> None:
    async def story() -> None:
        async with served(status) as server:
            answer = await World().hook(server.url + "/gate", metadata={"a": "b"})
            assert (answer.ok, answer.message, answer.at) == (True, "", NOW)
            (seen,) = server.seen
            assert (seen.method, seen.path) == ("POST", "/gate")
            assert seen.headers["content-type"] == "application/json"
            assert seen.body["metadata"] == {"a": "b"}
            assert set(seen.body) == {"name", "namespace", "phase", "checksum", "metadata"}

    running(story)


def test_a_refusal_is_not_repeated_and_its_text_is_told_on_one_line() -> None:
    async def story() -> None:
        async with served((403, "closed\n\x1b[31m by\tops " + "x" * 999)) as server:
            world = World()
            answer = await world.hook(server.url, retries=3)
            host = server.url.removeprefix("http://")
            assert not answer.ok
            assert answer.message.startswith(f"{host} answered 403: closed [31m by ops xxx")
            assert len(answer.message) < LONGEST + 50
            assert (len(server.seen), world.sleeps) == (1, [])

    running(story)


@pytest.mark.parametrize(("status", "attempts"), [(500, 3), (503, 3), (429, 3), (501, 1), (404, 1)])
def test_what_may_be_repeated_is_and_the_text_of_a_server_error_is_kept(
    status: int, attempts: int
) -> None:
    async def story() -> None:
        async with served((status, "out of order")) as server:
            world = World()
            answer = await world.hook(server.url, retries=2)
            times = f" ({attempts} attempts)" if attempts > 1 else ""
            assert answer.message.endswith(f"answered {status}: out of order{times}")
            assert len(server.seen) == attempts
            assert world.sleeps == [1.0, 2.0][: attempts - 1]

    running(story)


def test_without_retries_there_is_one_attempt() -> None:
    async def story() -> None:
        async with served((503, "")) as server:
            answer = await World().hook(server.url)
            assert answer.message.endswith("answered 503: without a text")
            assert len(server.seen) == 1

    running(story)


def test_waits_double_up_to_thirty_seconds() -> None:
    async def story() -> None:
        async with served(500) as server:
            world = World()
            await world.hook(server.url, retries=7)
            assert world.sleeps == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]

    running(story)


def test_a_server_that_says_when_is_asked_then() -> None:
    async def story() -> None:
        waits = {"Retry-After": "7"}
        date = {"Retry-After": formatdate(NOW + 9, usegmt=True)}
        script = ((503, "", waits), (429, "", date), (500, "", waits), (200, "done"))
        async with served(*script) as server:
            world = World()
            assert (await world.hook(server.url, retries=5)).ok
            # A 500 says nothing about when: its wait is ours.
            assert world.sleeps == [7.0, 9.0, 4.0]

    running(story)


def test_who_asks_to_be_left_alone_for_an_hour_gets_no_further_attempt() -> None:
    async def story() -> None:
        async with served((503, "later", {"Retry-After": "3600"})) as server:
            world = World()
            answer = await world.hook(server.url, retries=5)
            assert "it asks to be called again in 3600 s, which is too late" in answer.message
            assert (len(server.seen), world.sleeps) == (1, [])

    running(story)


def test_retry_after_is_read_as_number_or_date() -> None:
    assert retry_after({"retry-after": " 12 "}, NOW) == 12.0
    assert retry_after({"retry-after": formatdate(NOW - 5, usegmt=True)}, NOW) == 0.0
    assert retry_after({"retry-after": "soon"}, NOW) is None
    assert retry_after({}, NOW) is None


def test_a_refused_connection_is_told_and_repeated() -> None:
    async def story() -> None:
        url = refused()
        world = World()
        answer = await world.hook(url + "/secret-path?token=4711", retries=1)
        host = url.removeprefix("http://")
        assert answer.message == f"no connection to {host} (refused) (2 attempts)"
        assert world.sleeps == [1.0]

    running(story)


def test_a_name_that_cannot_be_resolved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    no_proxies(monkeypatch)

    async def story() -> None:
        answer = await World().hook("http://me:hunter22@nobody.invalid:81/x?token=4711")
        assert answer.message == "the name of nobody.invalid:81 cannot be resolved"

    running(story)


def test_a_proxy_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", refused())

    async def story() -> None:
        answer = await World().hook("http://nobody.invalid/")
        assert answer.message == "the proxy for nobody.invalid cannot be reached (refused)"

    running(story)


def test_who_never_answers_is_given_up_after_the_hook_s_timeout() -> None:
    async def story() -> None:
        async with served("hang") as server:
            answer = await World().hook(server.url, timeout="50ms")
            assert answer.message.startswith("no answer from 127.0.0.1:")
            assert answer.message.endswith(" within 0.05 s")

    running(story)


def test_a_connection_that_breaks_off_is_told() -> None:
    async def story() -> None:
        async with served("break") as server:
            answer = await World().hook(server.url)
            assert "broke off" in answer.message

    running(story)


def test_a_call_can_be_cancelled_and_leaves_nothing_open() -> None:
    async def story() -> None:
        async with served("hang") as server:
            world = World()
            task = asyncio.create_task(world.hook(server.url))
            while not server.seen:  # noqa: ASYNC110 - the request is on its way
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not list(world.http._sockets._open())

    running(story)


def test_redirects_are_followed_as_a_go_client_does() -> None:
    async def story() -> None:
        async with served(200) as last:
            async with served((307, "", {"Location": last.url + "/kept"})) as first:
                assert (await World().hook(first.url)).ok
            async with served((302, "", {"Location": last.url + "/changed"})) as first:
                assert (await World().hook(first.url)).ok
            kept, changed = last.seen
            assert (kept.method, kept.path, kept.body["name"]) == ("POST", "/kept", "web")
            assert (changed.method, changed.path, changed.body) == ("GET", "/changed", None)

    running(story)


def test_a_circle_of_redirects_ends_and_so_does_one_to_elsewhere_than_http() -> None:
    async def story() -> None:
        async with served((302, "", {"Location": "/again"})) as server:
            world = World()
            answer = await world.hook(server.url, retries=3)
            assert answer.message.endswith(f"redirects more than {REDIRECTS} times")
            assert (len(server.seen), world.sleeps) == (REDIRECTS + 1, [])
        async with served((302, "", {"Location": "file:///etc/passwd"})) as server:
            assert "not an http or https address" in (await World().hook(server.url)).message

    running(story)


def test_an_unknown_certificate_is_refused_unless_the_hook_says_otherwise(tmp_path: Path) -> None:
    tls = own_certificate(tmp_path)

    async def story() -> None:
        async with served(200, tls=tls) as server:
            world = World()
            answer = await world.hook(server.url, retries=2)
            assert "no trusted connection to 127.0.0.1:" in answer.message
            assert (server.seen, world.sleeps) == ([], [])
            assert (await World().hook(server.url, disableTLS=True)).ok

    running(story)


def test_no_message_and_no_line_of_the_log_repeats_what_the_address_holds() -> None:
    async def story() -> None:
        async with served((403, "http://me:hunter22@h/token-4711?k=s3cr3t said no")) as server:
            url = server.url.replace("http://", "http://me:hunter22@") + "/token-4711?k=s3cr3t"
            world = World()
            answer = await world.hook(url)
            assert "said no" in answer.message
            for text in (answer.message, world.log.text):
                for secret in ("hunter22", "4711", "s3cr3t"):
                    assert secret not in text
            (seen,) = server.seen
            assert seen.query == {"k": "s3cr3t"}
            login = base64.b64encode(b"me:hunter22").decode()
            assert seen.headers["authorization"] == f"Basic {login}"

    running(story)


def test_an_address_that_is_none_is_a_failure_and_not_a_crash() -> None:
    async def story() -> None:
        for url in ("", "load.test", "ftp://load.test", "http://[::1", "http://:80"):
            world = World()
            answer = await world.hook(url, retries=2)
            assert not answer.ok
            assert "http" in answer.message, url
            assert "crashed" not in world.log.text, url

    running(story)


def test_a_fault_of_ours_is_a_failed_call_whose_text_stays_out_of_the_log() -> None:
    async def story() -> None:
        world = World()

        async def crash(_: object) -> None:
            msg = "with hunter22 in it"
            raise RuntimeError(msg)

        world.calls._poster.post = crash  # type: ignore[assignment, method-assign]
        answer = await world.hook("http://127.0.0.1/")
        assert (answer.ok, answer.message) == (False, "unexpected RuntimeError")
        assert "hunter22" not in world.log.text
        assert world.log.lines[0]["event"] == "call crashed"
        assert world.log.lines[0]["where"].startswith("test_controller_calls.py:")

    running(story)


def test_texts_from_outside_are_made_short_and_plain() -> None:
    assert cleaned("a\r\n\x00b\u2028c", ()) == "a b c"
    assert cleaned("token-1 and token-12", ("token-1", "token-12")) == "*** and ***"
    assert cleaned("no", ("no",)) == "no"
    assert len(cleaned("x" * 5000)) == LONGEST + 1


def test_the_log_says_what_was_asked_and_answered() -> None:
    async def story() -> None:
        async with served(204) as server:
            world = World()
            await world.hook(server.url)
            (line,) = world.log.lines
            expected = {"event": "called", "canary": "web", "kind": "webhook", "name": "gate"}
            assert expected.items() <= line.items()
            assert line["ok"] is True
            assert json.dumps(line).count("127.0.0.1") == 0

    running(story)
