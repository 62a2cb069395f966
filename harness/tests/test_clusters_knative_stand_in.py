"""The stand-in for Knative: revisions, readiness and traffic, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.clusters.knative_stand_in import (
    LABEL,
    READY_MILLISECONDS,
    REVISION,
    SERVICE,
    delay,
    playing,
)
from harness.kube.testing import FakeCluster, run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

JSON = dict[str, Any]
NS = "n"
SLOWEST = READY_MILLISECONDS.stop / 1000


def template(image: str, **metadata: Any) -> JSON:
    return {"metadata": metadata, "spec": {"containers": [{"image": image}]}}


def cluster() -> FakeCluster:
    made = FakeCluster(SERVICE, REVISION)
    # The kind Service means Knative's here.
    made.server.resources.sort(key=lambda one: one is not SERVICE)
    metadata = {"name": "web", "namespace": NS}
    made.add(
        {
            "apiVersion": SERVICE.api_version,
            "kind": SERVICE.kind,
            "metadata": metadata,
            "spec": {"template": template("app:1")},
        }
    )
    return made


def play(server: FakeCluster, act: Callable[[], Awaitable[None]]) -> list[str]:
    """Play the stand-in while `act` acts; return what it said."""
    said: list[str] = []

    async def main() -> None:
        async with server.client() as client, playing(client, 1, said.append):
            await asyncio.sleep(2 * SLOWEST)
            await act()

    run_virtual(main())
    return said


def service(server: FakeCluster) -> JSON:
    found = server.get("Service", "web", NS)
    assert found is not None
    return found


def revisions(server: FakeCluster) -> list[str]:
    return [one["metadata"]["name"] for one in server.objects("Revision", NS)]


def condition(status: JSON, kind: str = "Ready") -> str:
    return next(str(one["status"]) for one in status["conditions"] if one["type"] == kind)


def test_a_first_revision_gets_everything() -> None:
    server = cluster()

    async def act() -> None:
        await asyncio.sleep(0)

    assert play(server, act) == []
    assert revisions(server) == ["web-00001"]
    (revision,) = server.objects("Revision", NS)
    assert revision["spec"] == {"containers": [{"image": "app:1"}]}
    assert revision["metadata"]["labels"]["serving.knative.dev/service"] == "web"
    status = service(server)["status"]
    assert status["latestCreatedRevisionName"] == status["latestReadyRevisionName"] == "web-00001"
    assert status["observedGeneration"] == service(server)["metadata"]["generation"]
    assert condition(status) == "True"
    assert status["traffic"] == [
        {"percent": 100, "latestRevision": True, "revisionName": "web-00001"}
    ]


def test_a_changed_template_makes_the_next_one_ready_after_a_moment() -> None:
    server = cluster()
    between: list[JSON] = []

    async def act() -> None:
        server.update("Service", "web", NS, {"spec": {"template": template("app:2")}})
        await asyncio.sleep(READY_MILLISECONDS.start / 2000)
        between.append(service(server)["status"])
        await asyncio.sleep(2 * SLOWEST)

    play(server, act)
    assert revisions(server) == ["web-00001", "web-00002"]
    assert between[0]["latestCreatedRevisionName"] == "web-00002"
    assert between[0]["latestReadyRevisionName"] == "web-00001"
    assert condition(between[0]) == "Unknown"
    assert between[0]["observedGeneration"] == service(server)["metadata"]["generation"]
    status = service(server)["status"]
    assert status["latestReadyRevisionName"] == "web-00002"
    assert status["traffic"][0]["revisionName"] == "web-00002"
    assert condition(status) == "True"


def test_traffic_follows_the_spec_and_makes_no_revision() -> None:
    server = cluster()
    wanted = [
        {"latestRevision": True, "percent": 20},
        {"revisionName": "web-00001", "percent": 80, "tag": "primary"},
    ]

    async def act() -> None:
        server.update("Service", "web", NS, {"spec": {"traffic": wanted}})
        await asyncio.sleep(2 * SLOWEST)

    play(server, act)
    assert revisions(server) == ["web-00001"]
    assert service(server)["status"]["traffic"] == [
        {"percent": 20, "latestRevision": True, "revisionName": "web-00001"},
        {"percent": 80, "tag": "primary", "latestRevision": False, "revisionName": "web-00001"},
    ]


def test_empty_fields_that_a_client_writes_back_make_no_revision() -> None:
    server = cluster()

    async def act() -> None:
        container = {"image": "app:1", "resources": {}}
        same = {"metadata": {"creationTimestamp": None}, "spec": {"containers": [container]}}
        server.update("Service", "web", NS, {"spec": {"template": same}})
        await asyncio.sleep(2 * SLOWEST)

    play(server, act)
    assert revisions(server) == ["web-00001"]


def test_traffic_to_a_revision_that_is_not_there_stays_as_it_was() -> None:
    server = cluster()

    async def act() -> None:
        wanted = [{"revisionName": "web-00009", "percent": 100}]
        server.update("Service", "web", NS, {"spec": {"traffic": wanted}})
        await asyncio.sleep(2 * SLOWEST)

    play(server, act)
    status = service(server)["status"]
    assert status["traffic"][0]["revisionName"] == "web-00001"
    assert condition(status, "RoutesReady") == "Unknown"


def test_a_revision_that_is_told_so_is_never_ready() -> None:
    server = cluster()

    async def act() -> None:
        told = template("app:2", labels={LABEL: "never-ready"})
        server.update("Service", "web", NS, {"spec": {"template": told}})
        await asyncio.sleep(60)

    play(server, act)
    status = service(server)["status"]
    assert status["latestCreatedRevisionName"] == "web-00002"
    assert status["latestReadyRevisionName"] == "web-00001"
    assert status["traffic"][0]["revisionName"] == "web-00001"
    assert condition(status) == "Unknown"


def test_nothing_is_written_when_nothing_changes() -> None:
    server = cluster()

    async def act() -> None:
        before = len(server.requests)
        await asyncio.sleep(20)
        server.update("Service", "web", NS, {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(20)
        verbs = {asked.verb for asked in server.requests[before:]}
        assert not verbs & {"create", "patch", "update", "delete"}

    play(server, act)


def test_a_refusal_is_said_once_and_ends_nothing() -> None:
    server = cluster()
    server.fail_next(409, match=lambda asked: asked.verb == "create")

    async def act() -> None:
        server.update("Service", "web", NS, {"spec": {"template": template("app:2")}})
        await asyncio.sleep(2 * SLOWEST)
        server.forbid("create", "revisions")
        for image in ("app:3", "app:4"):
            server.update("Service", "web", NS, {"spec": {"template": template(image)}})
            await asyncio.sleep(2 * SLOWEST)
        # Of one that a revision exists for, it goes on to keep the status.
        server.update("Service", "web", NS, {"spec": {"template": template("app:2")}})
        await asyncio.sleep(2 * SLOWEST)

    (said,) = play(server, act)
    assert revisions(server) == ["web-00001"]
    assert said.startswith("The stand-in for Knative was refused: ")
    observed = service(server)["status"]["observedGeneration"]
    assert observed == service(server)["metadata"]["generation"]


def test_a_namespace_that_goes_takes_revisions_along_in_silence() -> None:
    server = cluster()
    server.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})

    async def act() -> None:
        going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes"]}
        server.update("Namespace", NS, None, {"metadata": going})
        server.remove("Revision", "web-00001", NS)
        await asyncio.sleep(2 * SLOWEST)
        assert any(asked.verb == "create" for asked in server.requests[-3:]), "it tried"

    assert play(server, act) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_the_delay_depends_on_seed_and_name_only(seed: int) -> None:
    first = {"metadata": {"name": "web-00001", "namespace": "a"}}
    same = {"metadata": {"name": "web-00001", "namespace": "b"}}
    other = {"metadata": {"name": "web-00002", "namespace": "a"}}
    assert delay(seed, first) == delay(seed, same) in READY_MILLISECONDS
    assert len({delay(seed, first), delay(seed, other), delay(seed + 7, first)}) > 1
