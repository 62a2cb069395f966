"""What etcd remembers of changes that nobody could watch, as its gateway tells it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from harness.clusters.base import Change
from harness.clusters.embedded import history
from harness.controller.shell.kinds import RESOURCES
from harness.kube.resource import CANARY, CONFIGMAP, DEPLOYMENT, HPA, LEASE, NODE, POD, SERVICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.kube.resource import Resource


@pytest.mark.parametrize(
    ("resource", "namespace", "place"),
    [
        (POD, "ns", "/registry/pods/ns/"),
        (DEPLOYMENT, "ns", "/registry/deployments/ns/"),
        (SERVICE, "ns", "/registry/services/specs/ns/"),
        (NODE, None, "/registry/minions/"),
        (CANARY, "ns", "/registry/flagger.app/canaries/ns/"),
        (LEASE, "ns", None),
        (HPA, "ns", "/registry/horizontalpodautoscalers/ns/"),
        (RESOURCES["httproutes"], "ns", "/registry/gateway.networking.k8s.io/httproutes/ns/"),
    ],
)
def test_each_type_has_its_place(
    resource: Resource, namespace: str | None, place: str | None
) -> None:
    assert history.prefix(resource, namespace) == place


def event(key: str, version: int, *, deleted: bool = False) -> dict[str, Any]:
    kv = {"key": base64.b64encode(key.encode()).decode(), "mod_revision": str(version)}
    return {"kv": kv, **({"type": "DELETE"} if deleted else {})}


EVENTS = [
    event("/registry/pods/ns/a", 11),
    event("/registry/pods/nsx/a", 12),
    event("/registry/leases/kube-system/x", 13),
    event("/registry/pods/ns/a", 14, deleted=True),
    event("/registry/pods/ns/b", 15),
]


def asked(
    lines: Sequence[dict[str, Any]], until: int = 14, resource: Resource = POD
) -> tuple[list[Change] | None, list[Any]]:
    """Ask a stand-in for etcd that answers with these lines, cut anywhere, and then stays silent as the real one does."""
    bodies: list[Any] = []
    over = asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        answer = web.StreamResponse()
        await answer.prepare(request)
        text = "".join(json.dumps({"result": line}) + "\n" for line in lines).encode()
        for start in range(0, len(text), 37):
            await answer.write(text[start : start + 37])
        await over.wait()
        return answer

    async def run() -> list[Change] | None:
        app = web.Application()
        app.router.add_post("/v3/watch", watch)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            return await history.missed(runner.addresses[0][1], resource, "ns", 10, until)
        finally:
            over.set()
            await runner.cleanup()

    return asyncio.run(run()), bodies


def test_all_changes_of_the_type_up_to_the_version_come_in_order() -> None:
    found, bodies = asked([{"created": True}, {"events": EVENTS[:2]}, {"events": EVENTS[2:]}])
    assert found == [Change("a", 11), Change("a", 14, deleted=True)]
    assert bodies[0]["create_request"]["start_revision"] == "11"


def test_the_end_may_be_a_change_of_anything() -> None:
    found, _ = asked([{"events": EVENTS}], until=13)
    assert found == [Change("a", 11)]


def test_of_a_type_without_changes_there_are_none() -> None:
    assert asked([{"events": EVENTS}], resource=CONFIGMAP)[0] == []


def test_what_etcd_has_forgotten_cannot_be_known() -> None:
    assert asked([{"canceled": True, "compact_revision": "99"}])[0] is None


def test_an_etcd_that_stays_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "SECONDS", 0.2)
    assert asked([{"created": True}])[0] is None


def test_without_an_etcd_it_cannot_be_known() -> None:
    assert asyncio.run(history.missed(1, POD, "ns", 10, 14)) is None


def test_nothing_is_asked_where_nothing_can_have_been_missed() -> None:
    assert asyncio.run(history.missed(1, POD, "ns", 14, 14)) == []
