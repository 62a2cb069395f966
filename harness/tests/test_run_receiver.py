"""The receiver of webhooks and alerts, over real sockets on loopback: answers, scripts, callers that give up, and what is kept."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest

from harness.model.actions import GateStep, PatchStep
from harness.model.standins import GateAnswer
from harness.model.standins import Receiver as Declared
from harness.model.timeline import parse
from harness.model.timeline_outside import Call, GateChanged, StandIn
from harness.run.objects import RefusedError
from harness.run.outside import Outside
from harness.run.redact import Redactor
from harness.run.timeline_file import TimelineFile
from harness.scenario.manifests import DrillContext, render
from harness.standins.kept import kept
from harness.standins.receiver import Called, Receiver
from harness.tests.test_run_recorder import HEADER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from harness.model.resolved import Resolved

DECLARED = Declared(
    gates={
        "open": GateAnswer(body="fine"),
        "closed": GateAnswer("closed"),
        "odd": GateAnswer("503", first=("204", "closed")),
        "hang": GateAnswer("hang"),
        "slow": GateAnswer(delay=0.05),
    },
    alerts={"team": GateAnswer()},
)
TOKEN = "T0AB12xyz987secret"
HOOK = {
    "name": "web",
    "namespace": "drill-x",
    "phase": "Progressing",
    "checksum": "abc",
    "metadata": {"password": TOKEN, "eventType": "Normal", "eventMessage": "Advance web"},
}


def answered(
    act: Callable[[Receiver, aiohttp.ClientSession], Awaitable[None]],
    into: list[Called] | None = None,
) -> list[Called]:
    """Run calls against a receiver, and return what it told of them, which is put `into` a list as it comes."""
    seen: list[Called] = [] if into is None else into

    async def run() -> None:
        receiver = Receiver(DECLARED, seen.append)
        await receiver.open()
        try:
            async with aiohttp.ClientSession(trust_env=False) as http:
                await act(receiver, http)
        finally:
            await receiver.close()

    asyncio.run(run())
    return seen


async def post(http: aiohttp.ClientSession, url: str, body: Any = HOOK) -> tuple[int, str]:
    async with http.post(url, json=body) as answer:
        return answer.status, await answer.text()


def test_gates_answer_what_is_declared_and_each_call_is_told() -> None:
    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        assert await post(http, f"{receiver.address}/gate/open") == (200, "fine")
        assert (await post(http, f"{receiver.address}/gate/closed"))[0] == 403

    seen = answered(act)
    assert [(call.sort, call.gate, call.status) for call in seen] == [
        ("gate", "open", 200),
        ("gate", "closed", 403),
    ]
    assert seen[0].fields == {
        "rollout": "web",
        "phase": "Progressing",
        "event_type": "Normal",
        "kind": "",
        "message": "Advance web",
    }


def test_a_script_is_gone_through_once_and_begins_again_with_a_change() -> None:
    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        url = f"{receiver.address}/gate/odd"
        assert [(await post(http, url))[0] for _ in range(4)] == [204, 403, 503, 503]
        before = receiver.change("odd", GateAnswer(first=("500",)))
        assert before.answer == "503"
        assert [(await post(http, url))[0] for _ in range(2)] == [500, 200]

    assert len(answered(act)) == 6


def test_a_caller_that_gives_up_is_told_with_no_status_and_others_are_answered_meanwhile() -> None:
    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        hanging = asyncio.create_task(post(http, f"{receiver.address}/gate/hang"))
        while receiver._gates["hang"].calls == 0:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        assert (await post(http, f"{receiver.address}/gate/open"))[0] == 200
        hanging.cancel()
        async with asyncio.timeout(5):
            while len(seen) < 2:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.01)

    seen: list[Called] = []
    answered(act, seen)
    assert [(call.gate, call.status) for call in seen] == [("open", 200), ("hang", 0)]


def test_calls_that_still_hang_at_the_end_are_given_up_and_not_told() -> None:
    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        task = asyncio.create_task(post(http, f"{receiver.address}/gate/hang"))
        while receiver._gates["hang"].calls == 0:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        await receiver.close()
        with pytest.raises(aiohttp.ClientError):
            await task

    assert answered(act) == []


def test_a_delay_is_kept() -> None:
    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        assert (await post(http, f"{receiver.address}/gate/slow"))[0] == 200

    (call,) = answered(act)
    assert call.seconds >= 0.05


@pytest.mark.parametrize(
    "path", ["/", f"/gate/{TOKEN}", f"/{TOKEN}/x", "/alerts/open", "/gate/team", "/gate"]
)
def test_what_is_not_declared_gets_404_and_nothing_of_it_is_told(path: str) -> None:
    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        assert (await post(http, f"{receiver.address}{path}"))[0] == 404

    (call,) = answered(act)
    assert (call.sort, call.gate, call.status, call.fields) == ("other", "", 404, {})


def test_of_an_alert_the_texts_are_told_and_of_its_path_only_the_name() -> None:
    slack = {
        "channel": "general",
        "username": TOKEN,
        "attachments": [
            {"color": "good", "text": "Promotion\n finished", "fields": [{"title": "T", "value": "Deployment/web"}]}
        ],
    }  # fmt: skip

    async def act(receiver: Receiver, http: aiohttp.ClientSession) -> None:
        url = f"{receiver.address}/alerts/team/services/T0/B0/{TOKEN}?sig={TOKEN}"
        assert (await post(http, url, slack))[0] == 200

    (call,) = answered(act)
    assert (call.sort, call.gate) == ("alert", "team")
    assert call.fields["message"] == "Promotion finished | T | Deployment/web"
    assert TOKEN not in str(call)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"metadata": [], "phase": 7}']
)
def test_any_body_is_taken(body: bytes) -> None:
    assert not any(kept(body, alert=True).values())


def test_fields_of_another_shape_are_not_kept() -> None:
    odd = {"name": "https://user:pw@x", "phase": "a b", "type": {"x": 1}, "eventType": "x" * 99}
    assert not any(kept(json.dumps(odd).encode(), alert=False).values())
    long = json.dumps({"text": "y" * 5000}).encode()
    assert len(kept(long, alert=True)["message"]) == 1000


# In a drill


class Log:
    """What a Live does, as far as the stand-ins see it."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def now(self) -> float:
        return 1.0

    def observe(self, observation: Any) -> None:
        self.seen.append(observation)


def resolved(receiver: Declared | None = DECLARED) -> Resolved:
    from harness.tests.test_run_prometheus import bare

    return bare(receiver=receiver)


def test_a_drill_records_who_stood_in_calls_and_changes(tmp_path: Path) -> None:
    log = Log()

    async def run() -> None:
        outside = Outside(resolved(), tmp_path, print)
        await outside.open()
        outside.attach(cast("Any", log), "drill-x")
        await outside.ready()
        await outside.told()
        step = GateStep("closed", GateAnswer("503", first=("hang",)))
        assert outside.change_gate(step) == "closed: closed → hang, then 503"
        with pytest.raises(RefusedError, match="declares no gate 'absent'"):
            outside.change_gate(GateStep("absent"))
        async with aiohttp.ClientSession(trust_env=False) as http:
            await post(http, f"{outside.addresses['receiver']}/gate/open")
        given = PatchStep("rollout", merge={"url": "http://receiver.drill.invalid/gate/open"})
        local = outside.localised(given)
        assert isinstance(local, PatchStep)
        assert local.merge == {"url": f"{outside.addresses['receiver']}/gate/open"}
        await outside.close()
        await outside.close()

    asyncio.run(run())
    stood, changed, called = log.seen
    assert isinstance(stood, StandIn)
    assert changed == GateChanged(1.0, "closed", "503", "hang, then 503")
    assert isinstance(called, Call)
    assert (called.gate, called.status, called.rollout) == ("open", 200, "web")


def test_without_a_receiver_nothing_is_opened(tmp_path: Path) -> None:
    async def run() -> None:
        outside = Outside(resolved(None), tmp_path, print)
        await outside.open()
        assert outside.addresses == {}
        assert outside.metrics_address == ""
        await outside.close()

    asyncio.run(run())


def test_manifests_get_the_real_address_in_a_drill_and_a_placeholder_without(
    tmp_path: Path,
) -> None:
    manifest = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {url: '{{ receiver }}/x'}\n"
    )
    (tmp_path / "m.yaml.j2").write_text(manifest)
    body = resolved()
    (preview,) = render(body, tmp_path)
    assert preview.object["data"]["url"] == "http://receiver.drill.invalid/x"
    context = DrillContext("ns", "run", outside={"receiver": "http://127.0.0.1:4321"})
    (real,) = render(body, tmp_path, context)
    assert real.object["data"]["url"] == "http://127.0.0.1:4321/x"


def test_calls_are_redacted_and_read_back(tmp_path: Path) -> None:
    redactor = Redactor("salt")
    redactor.learn_value(TOKEN)
    path = tmp_path / "t.jsonl"
    with TimelineFile(path, HEADER, redactor) as file:
        file.append(Call(1.0, "alert", "team", 200, 0.1, message=f"failed with {TOKEN}"))
        file.append(GateChanged(2.0, "approve", "open", "open"))
        file.append(StandIn(3.0, "metrics", "Prometheus 2.42.0"))
    text = path.read_text(encoding="utf-8")
    assert TOKEN not in text
    call, changed, stood = parse(text.splitlines()).observations
    assert isinstance(call, Call)
    assert call.message == "failed with [redacted]"
    assert (changed, stood) == (
        GateChanged(2.0, "approve", "open", "open"),
        StandIn(3.0, "metrics", "Prometheus 2.42.0"),
    )
