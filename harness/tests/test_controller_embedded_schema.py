"""A real API server whose Canary CRD is older than the controller: what is asked for is refused visibly, until the CRD has a place for it."""

from __future__ import annotations

import asyncio
import copy
import json
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from harness.kube.client import KubeClient
from harness.kube.resource import CANARY, CRD, DEPLOYMENT, NAMESPACE
from harness.tests.controller_sim import canary, deployment
from harness.tests.test_controller_embedded import ME, Place
from harness.tests.test_controller_embedded_tracking import replace_crd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clusters.embedded.cluster import EmbeddedCluster

pytestmark = pytest.mark.embedded

JSON = dict[str, Any]
WITHIN = 90.0
"""Seconds for anything to come about on a busy machine."""
ANALYSIS: JSON = {"interval": "1s", "threshold": 1, "iterations": 1, "freezeOnFailure": True}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def as_flagger_has_it(spec: JSON) -> JSON:
    """The CRD without any place for a freeze."""
    spec = copy.deepcopy(spec)
    schema = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del schema["spec"]["properties"]["analysis"]["properties"]["freezeOnFailure"]
    schema["status"]["properties"]["phase"]["enum"].remove("Frozen")
    return spec


def manifest(namespace: str) -> JSON:
    """The Canary as `kubectl apply` sends it."""
    obj = canary(analysis=ANALYSIS)
    obj["metadata"]["namespace"] = namespace
    obj["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(obj)}
    return obj


async def until(place: Place, holds: Callable[[JSON], bool], what: str) -> JSON:
    found: JSON = {}
    try:
        async with asyncio.timeout(WITHIN):
            while not holds(found.get("status") or {}):
                await asyncio.sleep(0.1)
                found = await place.canary()
    except TimeoutError:
        log = place.access.log.read_text(encoding="utf-8").splitlines()[-3:]
        msg = f"not {what} within {WITHIN:g} s: {found.get('status')}; {log}"
        raise AssertionError(msg) from None
    return found


async def apply_again(place: Place) -> None:
    """Apply the Canary once more; a server takes a moment to serve another CRD, and drops the field until then."""
    wish = {"spec": {"analysis": ANALYSIS}}
    async with asyncio.timeout(WITHIN):
        while True:
            held = await place.client.patch(CANARY, "web", place.namespace, wish, field_manager=ME)
            if held["spec"]["analysis"].get("freezeOnFailure"):
                return
            await asyncio.sleep(0.2)


def accepted(status: JSON) -> JSON:
    held = status.get("conditions") or []
    return next((each for each in held if each["type"] == "Accepted"), {})


def test_a_freeze_under_a_crd_without_one_is_refused_until_crd_and_canary_are_applied(
    warm_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    async def story(place: Place) -> tuple[JSON, list[str]]:
        client, namespace = place.client, place.namespace
        whole = await client.get(CRD, "canaries.flagger.app")
        try:
            await replace_crd(client, as_flagger_has_it(whole["spec"]))
            target = deployment(replicas=1)
            target["metadata"]["namespace"] = namespace
            await client.create(DEPLOYMENT, target, namespace, field_manager=ME)
            made = await client.create(CANARY, manifest(namespace), namespace, field_manager=ME)
            assert "freezeOnFailure" not in made["spec"]["analysis"]
            await place.start()
            found = await until(place, lambda s: bool(accepted(s)), "refused")
            assert "phase" not in found["status"]
            refused = accepted(found["status"])
        finally:
            await replace_crd(client, whole["spec"])
        await apply_again(place)
        found = await until(place, lambda s: s.get("phase") == "Initialized", "Initialized")
        assert accepted(found["status"]) == {}
        lines = place.access.log.read_text(encoding="utf-8").splitlines()
        return refused, [row["event"] for row in map(json.loads, lines)]

    async def played() -> tuple[JSON, list[str]]:
        async with await KubeClient.connect(
            warm_cluster.kubeconfig, warm_cluster.context, user_agent="rollout-drill/test"
        ) as client:
            place = Place(client, f"schema-{secrets.token_hex(3)}")
            await place.prepare(warm_cluster.kubeconfig, warm_cluster.context, tmp_path)
            try:
                return await story(place)
            finally:
                await place.subject.kill()
                await client.delete(NAMESPACE, place.namespace)
                assert place.forbidden == []

    refused, events = asyncio.run(played())
    assert (refused["status"], refused["reason"]) == ("False", "Unsupported")
    assert "spec.analysis.freezeOnFailure, value 'Frozen' of status.phase" in refused["message"]
    assert "not settling" not in events
