"""Client, discovery, watches and recorder against a real API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube import discovery
from harness.kube.client import KubeClient
from harness.kube.errors import Conflict
from harness.kube.resource import DEPLOYMENT, NAMESPACE, POD, SECRET
from harness.model.timeline import (
    HarnessError,
    ObjectSeen,
    RolloutKind,
    SubjectFacts,
    WatchState,
    parse,
)
from harness.run.recorder import Recorder
from harness.run.redact import Redactor
from harness.run.timeline_file import TimelineFile
from harness.tests.test_run_recorder import HEADER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster
    from harness.model.timeline import JSON

pytestmark = pytest.mark.embedded

ME: Any = {"field_manager": "rollout-drill"}
PLANTED = "pl4nted-S3cret-77"
STAND_IN = RolloutKind(api_version="apps/v1", kind="StatefulSet", plural="statefulsets")
"""The recorder needs some rollout object; this type is there without any CRD."""


@contextlib.asynccontextmanager
async def namespace(cluster: EmbeddedCluster) -> AsyncIterator[tuple[KubeClient, str]]:
    name = f"kube-{secrets.token_hex(4)}"
    client = await KubeClient.connect(cluster.kubeconfig, user_agent="rollout-drill/test")
    async with client:
        await client.create(NAMESPACE, {"metadata": {"name": name}}, **ME)
        try:
            yield client, name
        finally:
            await client.delete(NAMESPACE, name)


def deployment() -> JSON:
    container = {
        "name": "web",
        "image": "example/web:1",
        "env": [{"name": "TOKEN", "value": PLANTED}],
        "args": [f"--token={PLANTED}"],
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def test_both_forms_of_discovery_agree_and_metadata_lists_hold_metadata_only(
    warm_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with namespace(warm_cluster) as (client, _):
            found = await discovery.discover(client)
            monkeypatch.setattr(discovery, "_AGGREGATED", "application/json")
            assert await discovery.discover(client) == found
            assert found.broken == ()
            assert {POD, DEPLOYMENT, NAMESPACE} <= set(found.resources)
            for resource in found.resources:
                items, _version = await client.list(resource, metadata_only=True)
                assert all(item.keys() <= {"apiVersion", "kind", "metadata"} for item in items)
                assert all(item["kind"] == resource.kind for item in items)

    asyncio.run(scenario())


def test_preconditions_and_field_managers_are_enforced(warm_cluster: EmbeddedCluster) -> None:
    async def scenario() -> None:
        async with namespace(warm_cluster) as (client, ns):
            made = await client.apply(DEPLOYMENT, deployment(), ns, **ME)
            other = deployment() | {"spec": deployment()["spec"] | {"replicas": 5}}
            with pytest.raises(Conflict, match="replicas"):
                await client.apply(DEPLOYMENT, other, ns, field_manager="other")
            with pytest.raises(Conflict):
                await client.delete(
                    DEPLOYMENT, "web", ns, uid="00000000-0000-0000-0000-000000000000"
                )
            await client.delete(DEPLOYMENT, "web", ns, uid=made["metadata"]["uid"])

    asyncio.run(scenario())


def test_a_rollout_is_recorded_completely_and_without_the_planted_secret(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "timeline.jsonl"

    async def scenario() -> None:
        async with namespace(warm_cluster) as (client, ns):
            subject = SubjectFacts("none", "1", rollout=STAND_IN)
            header = dataclasses.replace(HEADER, namespace=ns, subject=subject)
            redactor = Redactor()
            began = time.monotonic()
            with TimelineFile(path, header, redactor) as timeline:
                recorder = Recorder(
                    client, header, timeline.append, redactor, lambda: time.monotonic() - began
                )
                recording = asyncio.create_task(recorder.run())
                await recorder.synced()
                secret = {"metadata": {"name": "s"}, "stringData": {"password": PLANTED}}
                await client.create(SECRET, secret, ns, **ME)
                await client.apply(DEPLOYMENT, deployment(), ns, **ME)
                async with asyncio.timeout(60):
                    while (await client.get(DEPLOYMENT, "web", ns)).get("status", {}).get(  # noqa: ASYNC110 - the server is what is waited for
                        "readyReplicas"
                    ) != 2:
                        await asyncio.sleep(0.2)
                assert await recorder.complete()
                recording.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await recording

    asyncio.run(scenario())
    text = path.read_text(encoding="utf-8")
    assert PLANTED not in text
    assert base64.b64encode(PLANTED.encode()).decode().rstrip("=") not in text
    timeline = parse(text.splitlines())
    assert not timeline.of(HarnessError)
    assert {state.state for state in timeline.of(WatchState)} == {"synced"}
    seen = {(o.object["kind"], o.change) for o in timeline.of(ObjectSeen)}
    assert {
        ("Pod", "ADDED"),
        ("ReplicaSet", "ADDED"),
        ("Secret", "ADDED"),
        ("Node", "ADDED"),
    } <= seen
