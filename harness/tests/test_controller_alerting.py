"""Telling: alerts and event webhooks are posted in order, hold up nobody, and show nothing secret."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from harness.controller.core.decision import Alert, Note
from harness.controller.shell.alerting import WAITING, Alerting
from harness.controller.shell.http import Http
from harness.kube.testing import FakeCluster
from harness.tests.outside_server import (
    NOW,
    PROXIES,
    Log,
    NoNames,
    Sleeps,
    canary,
    refused,
    running,
    served,
)

JSON = dict[str, Any]
WARN = Alert("warn", "Failed checks", facts=True)


@pytest.fixture(autouse=True)
def _proxies_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def entry(name: str) -> JSON:
    return {"name": name, "providerRef": {"name": name}}


class World:
    """An Alerting with everything it needs, and what it left behind."""

    def __init__(self, **options: Any) -> None:
        self.cluster = FakeCluster()
        self.log = Log()
        self.sleeps = Sleeps()
        self.http = Http(user_agent="test", resolver=NoNames())
        self.alerting = Alerting(
            self.cluster.client(),
            self.log.to,
            lambda: NOW,
            http=self.http,
            sleep=self.sleeps,
            **options,
        )

    def provider(self, name: str, url: str, kind: str = "slack", **spec: Any) -> None:
        self.cluster.add(
            {
                "apiVersion": "flagger.app/v1beta1",
                "kind": "AlertProvider",
                "metadata": {"name": name, "namespace": "n"},
                "spec": {"type": kind, "address": url, **spec},
            }
        )

    def secret(self, **data: str) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        meta = {"name": "s", "namespace": "n"}
        self.cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded})

    async def send(self, given: JSON, alert: Alert = WARN) -> None:
        await self.alerting.send(given, alert)
        await self.http.close()


def test_an_alert_is_posted_with_names_and_defaults() -> None:
    async def story() -> None:
        async with served(200) as server:
            world = World(cluster_name="eu-1")
            world.provider("chat", server.url + "/hook")
            await world.send(canary(alerts=[entry("chat")]))
            (seen,) = server.seen
            assert (seen.method, seen.path) == ("POST", "/hook")
            assert (seen.body["username"], seen.body["channel"]) == ("flagger", "general")
            (attachment,) = seen.body["attachments"]
            titles = [field["title"] for field in attachment["fields"]]
            assert titles[:2] == ["Cluster", "Target"]
            assert "authorization" not in seen.headers
            assert world.log.lines == []

    running(story)


def test_the_secret_s_address_goes_first_and_its_token_is_sent_where_it_is_understood() -> None:
    async def story() -> None:
        async with served(200) as server:
            for kind, header in (("slack", "Bearer t0ken"), ("discord", None)):
                world = World()
                world.provider("chat", "http://127.0.0.1:9", kind, secretRef={"name": "s"})
                world.secret(address=server.url + "/from-secret\n", token="t0ken")
                await world.send(canary(alerts=[entry("chat")]))
                assert server.seen[-1].path == "/from-secret"
                assert server.seen[-1].headers.get("authorization") == header

    running(story)


def test_who_cannot_be_told_is_logged_without_secrets_and_the_others_are_told() -> None:
    async def story() -> None:
        async with served(200) as server, served((403, "bad t0ken")) as closed:
            world = World()
            world.provider("chat", server.url)
            world.provider("closed", f"{closed.url}/t0ken/x", secretRef={"name": "s"})
            world.provider("strange", server.url, kind="pager")
            world.provider("down", refused() + "/t0ken")
            world.secret(address=f"{closed.url}/t0ken/x", token="t0ken")
            names = ("missing", "closed", "strange", "down", "chat")
            await world.send(canary(alerts=[entry(name) for name in names]))
            assert len(server.seen) == 1
            told = {line["name"]: line["message"] for line in world.log.lines}
            assert list(told) == ["missing", "closed", "strange", "down"]
            assert told["missing"] == "there is no AlertProvider 'missing' in namespace 'n'"
            assert told["closed"].endswith("answered 403: bad ***")
            assert (
                "spec.type 'pager' is not implemented; allowed: slack, msteams" in told["strange"]
            )
            assert told["down"].endswith("(refused) (3 attempts)")
            assert world.sleeps == [1.0, 2.0]
            assert "t0ken" not in world.log.text
            assert {line["canary"] for line in world.log.lines} == {"web"}

    running(story)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"secretRef": {"name": "s"}}, "Secret 's' has no key address"),
        ({}, "it has neither spec.address nor spec.secretRef"),
    ],
)
def test_a_provider_without_address_is_told_apart(spec: JSON, said: str) -> None:
    async def story() -> None:
        world = World()
        world.provider("chat", "", **spec)
        world.secret(token="t0ken")
        await world.send(canary(alerts=[entry("chat")]))
        (line,) = world.log.lines
        assert line["message"] == f"AlertProvider 'chat' in namespace 'n': {said}"

    running(story)


def test_slack_s_own_no_is_a_failure_though_it_comes_with_200() -> None:
    async def story() -> None:
        async with served((200, {"ok": False, "error": "channel_not_found"})) as server:
            world = World()
            world.provider("chat", server.url)
            await world.send(canary(alerts=[entry("chat")]))
            (line,) = world.log.lines
            assert line["message"] == "Slack refused it: channel_not_found"

    running(story)


def test_a_provider_s_proxy_is_used() -> None:
    async def story() -> None:
        async with served(200) as proxy:
            world = World()
            world.provider("chat", "http://chat.invalid/hook", proxy=proxy.url)
            await world.send(canary(alerts=[entry("chat")]))
            (seen,) = proxy.seen
            assert seen.headers["host"] == "chat.invalid"

    running(story)


# -- events, order, and the end ----------------------------------------------------------------------------------------------


def note(message: str, alert: Alert | None = None) -> Note:
    return Note("Warning", message, message, alert)


def hooked(*urls: str) -> JSON:
    hooks = [{"name": f"e{at}", "type": "event", "url": url} for at, url in enumerate(urls)]
    return canary(webhooks=[*hooks, {"name": "load", "url": "http://127.0.0.1:9"}])


def test_events_go_to_the_canary_s_own_webhooks_and_otherwise_to_the_global_one() -> None:
    async def story() -> None:
        async with served(200) as own, served(200) as common:
            world = World(event_webhook=common.url)
            world.alerting.tell(hooked(own.url + "/a", own.url + "/b"), note("One"))
            world.alerting.tell(canary(), note("Two"))
            await world.alerting.idle()
            await world.http.close()
            assert [seen.path for seen in own.seen] == ["/a", "/b"]
            (seen,) = common.seen
            assert seen.body["metadata"] == {
                "eventMessage": "Two",
                "eventType": "Warning",
                "timestamp": "1800000000000",
            }

    running(story)


def test_without_any_webhook_nothing_is_sent() -> None:
    async def story() -> None:
        world = World()
        world.alerting.tell(canary(), note("One"))
        await world.alerting.idle()
        assert world.http._session is None
        assert world.log.lines == []

    running(story)


def test_what_happened_first_is_told_first_whatever_the_receiver_takes() -> None:
    async def story() -> None:
        async with served((503, "", {"Retry-After": "5"}), 200) as server:
            world = World()
            given = hooked(server.url)
            given["spec"]["analysis"]["webhooks"][0]["retries"] = 1
            for message in ("One", "Two", "Three"):
                world.alerting.tell(given, note(message))
            await world.alerting.idle()
            await world.http.close()
            told = [seen.body["metadata"]["eventMessage"] for seen in server.seen]
            assert told == ["One", "One", "Two", "Three"]
            assert world.sleeps == [5.0]

    running(story)


def test_a_receiver_that_hangs_holds_up_no_other_canary_and_ends_with_the_controller() -> None:
    async def story() -> None:
        async with served("hang") as stuck, served(200) as server:
            world = World()
            for at in range(WAITING + 5):
                world.alerting.tell(hooked(stuck.url), note(f"{at}"))
            other = hooked(server.url)
            other["metadata"] = {"name": "other", "namespace": "n", "uid": "u2"}
            world.provider("chat", server.url + "/alert")
            other["spec"]["analysis"]["alerts"] = [entry("chat")]
            world.alerting.tell(other, note("Two", WARN))
            while len(server.seen) < 2 or not stuck.seen:  # noqa: ASYNC110 - both are on their way
                await asyncio.sleep(0)
            assert [seen.path for seen in server.seen] == ["/", "/alert"]
            dropped = [line for line in world.log.lines if line["event"] == "not told"]
            assert len(dropped) == 5
            assert len(stuck.seen) == 1
            await world.alerting.close()
            await world.http.close()
            assert not world.alerting._tasks
            assert not list(world.http._sockets._open())

    running(story)


def test_a_webhook_that_fails_is_only_logged_and_the_next_note_is_told() -> None:
    async def story() -> None:
        async with served((500, "x"), 200) as server:
            world = World()
            world.alerting.tell(hooked(server.url), note("One"))
            world.alerting.tell(hooked(server.url), note("Two"))
            await world.alerting.idle()
            await world.http.close()
            (line,) = world.log.lines
            assert (line["event"], line["name"]) == ("event webhook failed", "e0")
            assert len(server.seen) == 2

    running(story)


def test_a_fault_of_ours_costs_one_message() -> None:
    async def story() -> None:
        async with served(200) as server:
            world = World()
            broken = hooked(server.url)
            del broken["metadata"]["namespace"]
            world.alerting.tell(broken, note("One"))
            world.alerting.tell(hooked(server.url), note("Two"))
            await world.alerting.idle()
            await world.http.close()
            (line,) = world.log.lines
            assert (line["event"], line["error"]) == ("telling crashed", "KeyError")
            assert len(server.seen) == 1

    running(story)
