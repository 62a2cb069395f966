"""Requests of `harness.kube.client`: retries, preconditions, discovery, and what survives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.discovery import discover
from harness.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
    from_answer,
)
from harness.kube.resource import CANARY, CONFIGMAP, DEPLOYMENT, NAMESPACE, POD, Resource
from harness.kube.retry import Budget
from harness.kube.testing import FakeCluster, run_virtual
from harness.kube.transport import environment_proxy, is_loopback

if TYPE_CHECKING:
    from harness.model.timeline import JSON

ME: Any = {"field_manager": "rollout-drill"}


def test_unknown_fields_survive_every_kind_of_write() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        client = cluster.client()
        obj: JSON = {
            "metadata": {"name": "c"},
            "spec": {"fromTheFuture": {"a": [1, None, {"b": 0.5}]}},
        }
        made = await client.create(CANARY, obj, "ns", **ME)
        assert made["spec"] == obj["spec"]
        made["spec"]["analysis"] = {"interval": "1s"}
        await client.replace(CANARY, made, "ns", **ME)
        await client.patch(CANARY, "c", "ns", {"spec": {"suspend": True}}, **ME)
        await client.patch(
            CANARY, "c", "ns", {"status": {"phase": "New"}}, subresource="status", **ME
        )
        items, _ = await client.list(CANARY, "ns")
        assert items[0]["spec"] == {
            **obj["spec"],
            "analysis": {"interval": "1s"},
            "suspend": True,
        }
        assert items[0]["status"] == {"phase": "New"}
        assert (items[0]["apiVersion"], items[0]["kind"]) == ("flagger.app/v1beta1", "Canary")

    run_virtual(scenario())


def test_status_is_only_written_through_its_subresource() -> None:
    async def scenario() -> None:
        client = FakeCluster().client()
        obj = {"metadata": {"name": "c"}, "spec": {}, "status": {"phase": "Made up"}}
        made = await client.create(CANARY, obj, "ns", **ME)
        assert "status" not in made
        assert (await client.patch(CANARY, "c", "ns", {"status": {"a": 1}}, **ME)) == made

    run_virtual(scenario())


def test_delete_with_a_uid_spares_the_successor_of_that_name() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        client = cluster.client()
        obj = {"metadata": {"name": "c"}}
        first = await client.create(CONFIGMAP, obj, "ns", **ME)
        with pytest.raises(AlreadyExists):
            await client.create(CONFIGMAP, obj, "ns", **ME)
        await client.delete(CONFIGMAP, "c", "ns", uid=first["metadata"]["uid"])
        await client.create(CONFIGMAP, obj, "ns", **ME)
        with pytest.raises(Conflict):
            await client.delete(CONFIGMAP, "c", "ns", uid=first["metadata"]["uid"])
        assert await client.exists(CONFIGMAP, "c", "ns")

    run_virtual(scenario())


def test_replacing_an_outdated_version_is_a_conflict() -> None:
    async def scenario() -> None:
        client = FakeCluster().client()
        old = await client.create(CONFIGMAP, {"metadata": {"name": "c"}}, "ns", **ME)
        await client.patch(CONFIGMAP, "c", "ns", {"data": {"a": "b"}}, **ME)
        with pytest.raises(Conflict):
            await client.replace(CONFIGMAP, old, "ns", **ME)

    run_virtual(scenario())


def test_apply_removes_what_is_no_longer_applied_and_refuses_foreign_fields() -> None:
    async def scenario() -> None:
        client = FakeCluster().client()
        obj = {"metadata": {"name": "d"}, "spec": {"replicas": 2, "paused": True}}
        await client.apply(DEPLOYMENT, obj, "ns", **ME)
        await client.apply(
            DEPLOYMENT, {**obj, "spec": {"minReadySeconds": 1}}, "ns", field_manager="other"
        )
        stored = await client.apply(DEPLOYMENT, {**obj, "spec": {"replicas": 3}}, "ns", **ME)
        assert stored["spec"] == {"replicas": 3, "minReadySeconds": 1}
        clash = {**obj, "spec": {"replicas": 9}}
        with pytest.raises(Conflict):
            await client.apply(DEPLOYMENT, clash, "ns", field_manager="other")
        forced = await client.apply(DEPLOYMENT, clash, "ns", field_manager="other", force=True)
        assert forced["spec"]["replicas"] == 9

    run_virtual(scenario())


def test_finalizers_hold_an_object_and_owners_take_theirs_along() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        client = cluster.client()
        held = {"metadata": {"name": "d", "finalizers": ["x/y"]}, "spec": {}}
        owner = await client.create(DEPLOYMENT, held, "ns", **ME)
        refs = [{"kind": "Deployment", "name": "d", "uid": owner["metadata"]["uid"]}]
        pod = {"metadata": {"name": "p", "ownerReferences": refs}, "spec": {}}
        await client.create(POD, pod, "ns", **ME)
        await client.delete(DEPLOYMENT, "d", "ns")
        assert "deletionTimestamp" in (await client.get(DEPLOYMENT, "d", "ns"))["metadata"]
        await client.patch(DEPLOYMENT, "d", "ns", {"metadata": {"finalizers": None}}, **ME)
        assert cluster.objects("Deployment") == []
        assert cluster.objects("Pod") == []

    run_virtual(scenario())


def test_long_lists_come_in_pages_and_metadata_lists_ask_for_metadata() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        for number in range(1203):
            cluster.add({"kind": "ConfigMap", "metadata": {"name": f"{number}", "namespace": "n"}})
        items, version = await cluster.client().list(CONFIGMAP, metadata_only=True)
        assert len({item["metadata"]["name"] for item in items}) == 1203
        assert version
        asked = cluster.asked("list", "configmaps")
        assert len(asked) == 3
        assert "as=PartialObjectMetadataList" in asked[0].headers["Accept"]
        assert asked[0].headers["User-Agent"] == "rollout-drill/test"

    run_virtual(scenario())


@pytest.mark.parametrize("status", [0, -1, 429, 500, 503, 504])
def test_transient_failures_of_a_read_are_repeated(status: int) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail_next(status, times=3)
        await cluster.client().list(POD, "ns")
        assert len(cluster.requests) == 4

    run_virtual(scenario())


@pytest.mark.parametrize(
    ("status", "error"), [(-1, Unreachable), (500, ServerError), (403, Forbidden), (400, ApiError)]
)
def test_a_creation_that_may_have_happened_is_not_repeated(
    status: int, error: type[Exception]
) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail_next(status)
        with pytest.raises(error):
            await cluster.client().create(POD, {"metadata": {"name": "p"}}, "ns", **ME)
        assert len(cluster.requests) == 1

    run_virtual(scenario())


@pytest.mark.parametrize("status", [0, 429])
def test_a_creation_that_cannot_have_happened_is_repeated(status: int) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail_next(status)
        await cluster.client().create(POD, {"metadata": {"name": "p"}}, "ns", **ME)

    run_virtual(scenario())


@pytest.mark.parametrize(("away", "passes"), [(True, True), (False, False)])
def test_a_server_that_was_away_may_refuse_everything_until_it_has_read_its_roles(
    *, away: bool, passes: bool
) -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        client = cluster.client()
        if away:
            cluster.fail_next(0)
            await client.list(POD, "ns")
        cluster.fail_next(403, times=3)
        if not passes:
            with pytest.raises(Forbidden):
                await client.list(POD, "ns")
            return
        await client.list(POD, "ns")
        # A creation that was refused had no effect either.
        cluster.fail_next(403)
        await client.create(POD, {"metadata": {"name": "p"}}, "ns", **ME)
        # A refusal that stays is told, soon.
        cluster.fail_next(403, times=10_000)
        with pytest.raises(Forbidden):
            await client.list(POD, "ns")
        assert asyncio.get_running_loop().time() < 30

    run_virtual(scenario())


def test_retries_end_with_their_budget_and_say_what_was_seen_last() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail_next(503, "ServiceUnavailable", "etcd has no leader", times=10_000)
        client = cluster.client(Budget(total=20))
        with pytest.raises(ServerError) as raised:
            await client.get(POD, "p", "ns")
        assert asyncio.get_running_loop().time() <= 20
        assert "etcd has no leader (seen last; given up after" in str(raised.value)
        assert "GET /api/v1/namespaces/ns/pods/p" in str(raised.value)

    run_virtual(scenario())


def test_retry_after_is_honoured_unless_it_exceeds_the_budget() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        client = cluster.client(Budget(total=20))
        loop = asyncio.get_running_loop()
        cluster.fail_next(429, headers={"retry-after": "7"})
        await client.list(POD, "ns")
        assert loop.time() == pytest.approx(7)
        cluster.fail_next(429, headers={"retry-after": "600"})
        with pytest.raises(TooManyRequests):
            await client.list(POD, "ns")
        assert loop.time() == pytest.approx(7)

    run_virtual(scenario())


def test_discovery_finds_every_listable_type_despite_a_broken_group() -> None:
    async def scenario() -> None:
        cluster = FakeCluster(Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics"))
        cluster.break_group("metrics.k8s.io")
        found = await discover(cluster.client())
        assert POD in found.resources
        assert CANARY in found.resources
        assert not any("/" in r.plural for r in found.resources)
        assert all("delete" in r.verbs for r in found.resources)
        assert found.broken == ("metrics.k8s.io/v1beta1: the aggregated API does not answer",)
        assert await cluster.client().discover() == list(found.resources)

    run_virtual(scenario())


def test_a_page_that_is_no_status_is_quoted() -> None:
    error = from_answer(502, b"<html>\n Bad   gateway</html>", {}, request="GET /x")
    assert str(error) == "GET /x: 502 Unknown: <html> Bad gateway</html>"


def test_paths_and_labels() -> None:
    assert POD.path("ns", "a", "log") == "/api/v1/namespaces/ns/pods/a/log"
    assert NAMESPACE.path(None, "ns") == "/api/v1/namespaces/ns"
    assert DEPLOYMENT.path() == "/apis/apps/v1/deployments"
    assert DEPLOYMENT.label == "deployments.apps"
    with pytest.raises(ValueError, match="no namespace was given"):
        POD.path(None, "a")


def test_missing_objects_are_not_found() -> None:
    async def scenario() -> None:
        with pytest.raises(NotFound):
            await FakeCluster().client().get(POD, "p", "ns")

    run_virtual(scenario())


@pytest.mark.parametrize(
    ("host", "through"),
    [
        ("https://127.0.0.1:6443", None),
        ("https://[::1]:6443", None),
        ("https://localhost:6443", None),
        ("https://inside.example:6443", None),
        ("https://cluster.example:6443", "http://proxy.example:3128"),
    ],
)
def test_loopback_never_goes_through_a_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, host: str, through: str | None
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "inside.example")
    assert environment_proxy(host) == through


def test_loopback_is_told_from_names_that_only_look_like_it() -> None:
    assert is_loopback("127.8.9.1")
    assert not is_loopback("localhost.example.com")
    assert not is_loopback("10.0.0.1")
